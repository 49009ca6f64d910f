// A run on the device for cuda that uses every function on the short lists, and ends as zerorun does: with exit status 0, or one sentence
// on stderr and 1. cuda_faults_test breaks it everywhere. usage: cuda_scenario (ZERO_CUDA_LIBRARIES and the others from the environment;
// test/gpu/fake/README.md)
#include "runtime/base/error.h"
#include "runtime/device/devices.h"
#include "test/gpu/fake_machine.h"
#include "test/unit/sample_plans.h"
#include <cstdio>

using namespace zero;
using namespace zero::plan;
using namespace zero::runtime;
using namespace zero::test;

namespace {

// Three tiers, a product, a kernel with much shared memory, fills of every width, an update on the host, and a program after itself.
struct EverythingPlan : TieredPlan {
  Ref odd = bytes("odd", 6), factor = floats("factor", 64), square = floats("square", 64), input = floats("input", 16);
  EverythingPlan() : TieredPlan(1) {
    step("odd", {}, {odd}).mutable_fill()->set_pattern(0x3f803f80);
    fill("factor", factor, 0.5f);
    MatMul *product = step("product", {factor, factor}, {square}).mutable_matmul();
    product->set_dtype(F32), product->set_c_dtype(F32), product->set_m(8), product->set_n(8), product->set_k(8), product->set_batch(1);
    product->set_lda(8), product->set_ldb(8), product->set_ldc(8);
    plan.add_kernels()->set_symbol("twice");
    Step &twice = step("twice", {square}, {square});
    twice.mutable_launch()->set_extent(64);
    step("again", {square}, {factor}).mutable_copy();
    updateOnHost();
    boundKernels();
    makeCuda(plan);
    plan.mutable_kernels(0)->mutable_gpu()->set_shared_bytes(64 << 10);
    plan.mutable_kernels(1)->clear_gpu();
  }

  // Of 64 parameters that rest there, by what lies in `square`.
  void updateOnHost() {
    plan.mutable_optimizer()->set_kind(SGD);
    int host = addArena(HOST, 64);
    Ref master = bytesIn(host, "master", 256), momentum = bytesIn(host, "momentum", 256), gradient = bytesIn(host, "gradient", 256);
    Bucket *bucket = plan.add_buckets();
    bucket->set_name("layer"), bucket->set_elements(64), bucket->set_shard_elements(64), bucket->set_trainable(true);
    addTensor(*bucket, StateTensor::MASTER, master, WHOLE), addTensor(*bucket, StateTensor::MOMENTUM, momentum, WHOLE);
    Step &down = step("down", {square}, {gradient}, TO_HOST);
    down.mutable_copy(), waitFor(down, COMPUTE, static_cast<uint64_t>(std::ranges::count(program().steps(), COMPUTE, &Step::lane)));
    plan.add_kernels()->set_symbol("descend");
    Step &update = step("update", {master, gradient, momentum}, {master, momentum}, UPDATE_HOST);
    update.mutable_update()->set_dtype(F32), update.mutable_update()->set_part(WHOLE);
    update.mutable_update()->mutable_launch()->set_kernel(1), update.mutable_update()->mutable_launch()->set_extent(64);
    waitFor(update, TO_HOST, 2);
    Step &up = step("up", {master}, {factor}, TO_DEVICE);
    up.mutable_copy(), waitFor(up, UPDATE_HOST, 1);
  }
};

constexpr const char *kTwice = "void twice(void *const *args, long begin, long end) { const float *x = args[0]; float *y = args[1];"
                               "for (long i = begin; i < end; ++i) y[i] = 2 * x[i]; }\n";

constexpr const char *kDescend = "void descend(void *const *args, long begin, long end) { const float *g = args[1]; float *p = args[3];"
                                 "for (long i = begin; i < end; ++i) p[i] -= g[i]; }\n";

// Kernels for the host, beside those that stand for a GPU's.
std::string besideOf(const char *kernels) { return std::string(kernels) + ".host"; }

int run() {
  Folder folder;
  EverythingPlan b;
  std::string ptx = ptxOf(b.plan);
  PlanFile file = b.file();
  file.kernels = std::as_bytes(std::span(ptx));
  std::ifstream host(besideOf(std::getenv("ZERO_FAKE_KERNELS")), std::ios::binary);
  std::string object{std::istreambuf_iterator<char>(host), {}};
  file.hostKernels = std::as_bytes(std::span(object));
  validate(file.plan, 0);
  auto factory = connect();
  auto device = deviceFor(file.plan.target(), "p.bin").make({.diskPaths = {folder / "disk"}});
  Engine engine(file, *device, *factory, {.programs = {}, .trace = true});
  HostFloats given(engine, 16), square(engine, 64);
  std::ranges::fill(given.all(), 1.0f);
  std::vector<HostTransfer> writes{engine.transfer(b.input, given.bytes())}, reads{engine.transfer(b.square, square.bytes())};
  for (int i = 0; i < 2; ++i) engine.submit({.program = 0, .writes = writes, .reads = reads});
  engine.finish(), engine.finish();
  engine.endTrace(); // then once as streams, and as graphs
  for (int i = 0; i < 3; ++i) engine.submit({.program = 0, .writes = writes, .reads = reads}), engine.finish();
  for (float value : square.all())
    if (value != 4) throw Error("the scenario computed " + std::to_string(value) + " where 4 is right");
  engine.read(b.plan.buckets(0).tensors(0).ref(), 0, 4, [](uint64_t, std::span<const std::byte> piece) {
    float value = 0;
    std::memcpy(&value, piece.data(), sizeof(value));
    if (value != -20) throw Error("the scenario updated to " + std::to_string(value) + " on the host, where -20 is right");
  });
  return 0;
}

} // namespace

int main(int count, char **arguments) {
  if (count == 3) {
    Plan plan = EverythingPlan().plan, host = plan;
    plan.mutable_kernels()->DeleteSubrange(1, 1), host.mutable_kernels()->DeleteSubrange(0, 1);
    std::ofstream(arguments[2], std::ios::binary) << launches(plan, kTwice);
    std::ofstream(besideOf(arguments[2]), std::ios::binary) << compileKernels(kDescend + boundsInC(host));
    return 0;
  }
  try {
    return run();
  } catch (const Error &error) {
    std::fprintf(stderr, "cuda_scenario: %s\n", error.what());
    return 1;
  }
}
