// Kernels of a plan on a GPU, and what is kept of them for the next run.
#include "runtime/device/cuda/cubin_cache.h"
#include "runtime/plan/state.h"
#include "test/gpu/cuda_session.h"
#include <fstream>
#include <regex>

using namespace zero;
using namespace zero::plan;
using namespace zero::runtime;
using namespace zero::test;

namespace {

constexpr const char *kSgd =
    "void sgd(void *const *args, long begin, long end) { const float *g = args[1], *hyper = args[2]; float *x = args[3];"
    "for (long i = begin; i < end; ++i) x[i] -= hyper[0] * g[i]; }\n";

struct SgdPlan : PlanBuilder {
  Ref parameter = floats("parameters", 32), gradient = floats("gradient", 32), hyper = floats("hyper", 16);
  SgdPlan() {
    Bucket *bucket = plan.add_buckets();
    bucket->set_name("layer"), bucket->set_elements(32), bucket->set_shard_elements(32);
    addTensor(*bucket, StateTensor::MASTER, parameter, WHOLE);
    plan.add_kernels()->set_symbol("sgd");
    fill("gradient", gradient, 3);
    Step &update = step("update", {parameter, gradient, hyper}, {parameter}, UPDATE);
    waitFor(update, COMPUTE, 1);
    update.mutable_update()->set_dtype(F32), update.mutable_update()->set_part(WHOLE);
    update.mutable_update()->mutable_launch()->set_extent(32);
    boundKernels();
  }
};

TEST(CudaKernels, HookSeesTheGradientFirst) {
  SgdPlan b;
  Session run(b, true, {}, kSgd);
  run.write(b.hyper, std::vector<float>(16, 2));
  int calls = 0;
  run.engine->run(0, [&](const Step &seen) {
    ++calls;
    EXPECT_EQ(run.read(gradientOf(seen)), std::vector<float>(32, 3));
    EXPECT_EQ(run.read(b.parameter)[1], 0.0f) << "the update has run before the hook";
  });
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(run.read(b.parameter), std::vector<float>(32, -6));
  UpdateHook refuses = [](const Step &) { throw Error("the hook refuses"); };
  run.engine->submit({.program = 0, .beforeUpdate = &refuses});
  run.engine->submit({.program = 0}); // is not run
  EXPECT_EQ(refusalOf([&] { run.engine->finish(); }), "step 1 'update' of program 'step': the hook refuses");
  EXPECT_NE(refusalOf([&] { run.engine->finish(); }), "");
  EXPECT_NE(refusalOf([&] { run.engine->run(0); }), "");
}

// 70 elements in rows of 2, a block for 8 rows, so that the last one is short; and a sum of each row.
struct GroupsPlan : PlanBuilder {
  static constexpr uint64_t kElements = 70, kBlock = 16;
  Ref parameters = floats("parameters", kElements), gradient = floats("gradient", kElements), hyper = floats("hyper", 16),
      sums = floats("sums", kElements / 2);
  Ref momentum = floats("momentum", kElements);
  GroupsPlan() {
    plan.mutable_optimizer()->set_kind(SGD);
    Input *input = plan.add_inputs();
    input->set_name("hyper"), input->set_role(Input::HYPER), input->set_dtype(F32), input->add_shape(16), *input->mutable_ref() = hyper;
    Bucket *bucket = plan.add_buckets();
    bucket->set_name("all"), bucket->set_elements(kElements), bucket->set_shard_elements(kElements), bucket->set_trainable(true);
    addTensor(*bucket, StateTensor::MASTER, parameters, WHOLE), addTensor(*bucket, StateTensor::MOMENTUM, momentum, WHOLE);
    for (uint64_t at : {0, 20, 24, 40, 66}) {
      uint64_t end = at == 0 ? 20 : at == 20 ? 24 : at == 24 ? 40 : at == 40 ? 66 : 70;
      Parameter *parameter = plan.add_parameters();
      parameter->set_name("p" + std::to_string(at)), parameter->add_shape(static_cast<int64_t>(end - at));
      addPiece(*parameter, 0, at);
    }
    plan.add_kernels()->set_symbol("sgd");
    Update *update = step("update", {parameters, gradient, momentum, hyper}, {parameters, momentum, sums}, UPDATE).mutable_update();
    update->set_dtype(F32), update->set_part(WHOLE), update->set_row(kBlock);
    update->mutable_launch()->set_extent((kElements + kBlock - 1) / kBlock);
    boundKernels();
  }
};
constexpr const char *kGroups = "void sgd(void *const *a, long begin, long end) { float *x = a[4], *g = a[1], *h = a[3], *sums = a[6];"
                                "for (long e = begin * 16; e < end * 16 && e < 70; e += 2) { sums[e / 2] = g[e] + g[e + 1];"
                                "x[e] -= h[0] * g[e]; x[e + 1] -= h[0] * g[e + 1]; } }\n";

TEST(CudaKernels, GroupsOfParametersHaveTheirHyperParameters) {
  const std::vector<uint32_t> groupOf{0, 1, 0, 2, 1};
  const std::vector<uint64_t> ends{20, 24, 40, 66, 70};
  GroupsPlan b;
  Session run(b, true, {}, kGroups, {.groups = groupOf});
  std::vector<float> start = randomFloats(GroupsPlan::kElements, 1), gradient = randomFloats(GroupsPlan::kElements, 2);
  run.write(b.parameters, start), run.write(b.gradient, gradient), run.write(b.sums, std::vector<float>(GroupsPlan::kElements / 2, 9));
  std::array<std::array<float, 16>, 3> hyper{};
  for (size_t g = 0; g < 3; ++g) hyper[g][0] = 0.5f + static_cast<float>(g);
  run.write(b.hyper, hyper[0]);
  HostFloats values(*run.engine, 32);
  std::vector<HostTransfer> others;
  for (uint32_t g : {1, 2}) {
    std::ranges::copy(hyper[g], values.all().begin() + 16 * (g - 1));
    others.push_back(run.engine->hyperTransfer(g, values.bytes().subspan(64 * (g - 1), 64)));
  }
  run.engine->submit({.program = 0, .writes = others});
  run.engine->finish();
  std::vector<float> updated = run.read(b.parameters), sums = run.read(b.sums);
  for (size_t e = 0, p = 0; e < updated.size(); ++e) {
    p += e == ends[p];
    EXPECT_EQ(updated[e], start[e] - hyper[groupOf[p]][0] * gradient[e]) << e;
    EXPECT_EQ(sums[e / 2], gradient[e / 2 * 2] + gradient[e / 2 * 2 + 1]) << e;
  }
}

TEST(CudaKernels, AreHeldAgainstThePlan) {
  SgdPlan b;
  makeCuda(b.plan);
  Folder folder;
  ::setenv("ZERO_FAKE_KERNELS", folder.write("kernels.so", launches(b.plan, kSgd)).c_str(), 1);
  auto device = makeCudaDevice({});
  std::string ptx = ptxOf(b.plan);
  auto refusal = [&](const std::string &text, const std::string &name, uint64_t extent) {
    KernelSymbol symbol{name, extent, {128, 128, 64, 128}, 0, b.plan.kernels(0).gpu()};
    return refusalOf([&] { device->loadKernels(std::as_bytes(std::span(text)), {&symbol, 1}); });
  };
  EXPECT_EQ(refusal(ptx, "sgd", 32), "");
  EXPECT_EQ(refusal(ptx, "sgd", 64),
            "kernel 'sgd' is made for 32 iterations over 128, 128, 64, 128 bytes, but the plan says 64 iterations over 128, "
            "128, 64, 128 bytes; compile the plan again");
  EXPECT_EQ(refusal(ptx, "adam", 32),
            "kernel 'adam' is not in the plan's kernel segment; compile the plan again: it is not there (CUDA_ERROR_NOT_FOUND)");
  EXPECT_EQ(refusal("no code", "sgd", 32),
            "cannot load the plan's kernels (ptxas fatal : the fake device finds no .version): the driver refuses the PTX; "
            "compile the plan again (CUDA_ERROR_INVALID_PTX)");
  std::string silent = std::regex_replace(ptx, std::regex("sgd_bounds"), "other_bounds");
  EXPECT_NE(refusal(silent, "sgd", 32).find("kernel 'sgd' "), std::string::npos);
}

// ----------------------------------------------------------------------------------------------------- the cache

std::vector<std::byte> bytesOf(size_t count, unsigned char value) { return std::vector<std::byte>(count, std::byte{value}); }

TEST(CubinCache, KeepsWhatIsWhole) {
  Folder folder;
  cuda::CubinCache cache(folder / "a/b");
  EXPECT_FALSE(cache.find("key"));
  cache.keep("key", bytesOf(1000, 7)), cache.keep("other", bytesOf(10, 8));
  EXPECT_EQ(cache.find("key"), bytesOf(1000, 7));
  EXPECT_EQ(cache.find("other"), bytesOf(10, 8));
  EXPECT_FALSE(cache.find("key "));
  cache.keep("key", bytesOf(5, 9)); // again, by another rank
  EXPECT_EQ(cache.find("key"), bytesOf(5, 9));
  for (const auto &entry : std::filesystem::directory_iterator(folder / "a/b")) {
    std::filesystem::permissions(entry, std::filesystem::perms::group_write, std::filesystem::perm_options::add);
    EXPECT_EQ(cache.find("key").has_value() + cache.find("other").has_value(), 1) << "what others can write is not run";
    std::filesystem::permissions(entry, std::filesystem::perms::group_write, std::filesystem::perm_options::remove);
  }
  for (const auto &entry : std::filesystem::directory_iterator(folder / "a/b")) {
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(33), file.put('x');
  }
  EXPECT_FALSE(cache.find("key") || cache.find("other"));
  cuda::CubinCache none(""), unwritable("/proc/nobody");
  none.keep("key", bytesOf(5, 9)), unwritable.keep("key", bytesOf(5, 9));
  EXPECT_FALSE(none.find("key") || unwritable.find("key"));
}

TEST(CubinCache, IsBounded) {
  Folder folder;
  cuda::CubinCache cache(folder / "", 10000);
  cache.keep("much", bytesOf(6000, 1));
  EXPECT_FALSE(cache.find("much")); // more than half of all there is
  for (unsigned char i = 0; i < 5; ++i) {
    cache.keep(std::to_string(i), bytesOf(3000, i));
    if (i > 0) {
      EXPECT_TRUE(cache.find("0")) << "it was used last but one";
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_FALSE(cache.find("1") || cache.find("2"));
  EXPECT_TRUE(cache.find("0") && cache.find("3") && cache.find("4"));
}

} // namespace
