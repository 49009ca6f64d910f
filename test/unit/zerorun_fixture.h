// zerorun as users call it, on a plan made by hand: linear regression y = x·w with AdamW, its kernels compiled from C. Nothing
// of the compiler takes part.
#pragma once
#include "runtime/data/safetensors.h"
#include "runtime/data/tensor_file.h"
#include "runtime/plan/validate.h"
#include "test/unit/plan_builder.h"
#include "test/unit/run_fixtures.h"
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <sys/wait.h>

namespace zero::test {

using namespace zero::plan;

constexpr const char *kKernels = R"(
#include <math.h>
void mse(void *const *a, long begin, long end) { /* pred, y, scale, diff, loss */
  const float *pred = a[0], *y = a[1], *scale = a[2], *n = a[3]; float *diff = a[4], *loss = a[5];
  for (long i = begin; i < end; ++i) {
    *loss = 0;
    for (long r = 0; r < (long)*n; ++r) { float d = pred[r] - y[r]; diff[r] = 2 * *scale * d; *loss += *scale * d * d; }
  }
}
void norm(void *const *a, long begin, long end) { /* gradient shard, sum */
  const float *g = a[0]; float *sum = a[1];
  for (long i = begin; i < end; ++i) { *sum = 0; for (int k = 0; k < 16; ++k) *sum += g[k] * g[k]; }
}
void adamw(void *const *a, long begin, long end) {
  const float *g = a[1], *h = a[4]; float *w = a[5], *m = a[6], *v = a[7];
  for (long i = begin; i < end; ++i) {
    m[i] = h[1] * m[i] + (1 - h[1]) * g[i]; v[i] = h[2] * v[i] + (1 - h[2]) * g[i] * g[i];
    w[i] -= h[0] * (m[i] / h[5] / (sqrtf(v[i] / h[6]) + h[3]) + h[4] * w[i]);
  }
}
)";

inline const std::vector<float> kWeights{0.5f, -0.25f, 1.0f, 0.0f};

// y = x·w; the bucket is padded to 16 elements per rank, each rank updates its shard and all gather the rest. `disk`: the optimizer's state
// is kept there, read before each update and written after it.
inline void writePlan(const Folder &folder, const std::string &name, uint32_t world, uint64_t batch, bool disk = false) {
  PlanBuilder b(world);
  if (disk) b.plan.mutable_arenas(0)->set_alignment(4096);
  b.plan.set_samples(batch), b.plan.set_tokens(batch), b.plan.set_stage(2);
  plan::Loss *mse = b.plan.add_losses();
  mse->set_kind(MSE), mse->set_labels("y");
  Ref x = b.floats("x", batch * 4), y = b.floats("y", batch), scale = b.floats("scale", 1), hyper = b.floats("hyper", 16);
  Ref w = b.floats("w", 16 * world), m = b.floats("m", 1024), v = b.floats("v", 1024), keptM = m, keptV = v,
      gradient = b.floats("gradient", 16 * world);
  Ref pred = b.floats("pred", batch), diff = b.floats("diff", batch), loss = b.floats("loss", 1), sum = b.floats("norm", 1);
  Ref staging = b.floats("staging", 16 * world), few = b.floats("few", world), count = b.floats("count", 1);
  if (int arena = disk ? b.addArena(DISK, 4096) : 0) keptM = b.bytesIn(arena, "m", 4096), keptV = b.bytesIn(arena, "v", 4096);
  Ref myW = part(w, 0, 64, 64), myGradient = part(gradient, 0, 64, 64);
  auto input = [&](const char *name, Input::Role role, std::vector<int64_t> shape, const Ref &ref) {
    Input *in = b.plan.add_inputs();
    in->set_name(name), in->set_role(role), in->set_dtype(F32), *in->mutable_ref() = ref;
    in->mutable_shape()->Add(shape.begin(), shape.end());
  };
  auto rows = static_cast<int64_t>(batch);
  input("x", Input::DATA, {rows, 4}, x), input("y", Input::LABELS, {rows, 1}, y);
  b.plan.mutable_inputs(0)->set_limit(100); // for data files that hold integers
  input("scale", Input::LOSS_SCALE, {1}, scale), input("hyper", Input::HYPER, {16}, hyper);
  Constant *constant = b.plan.add_constants();
  *constant->mutable_ref() = count;
  Bucket *bucket = b.plan.add_buckets();
  bucket->set_name("all"), bucket->set_elements(16 * world), bucket->set_shard_elements(16), bucket->set_trainable(true);
  addTensor(*bucket, StateTensor::MASTER, w, WHOLE), bucket->set_padding_elements(16 * world - 4);
  addTensor(*bucket, StateTensor::FIRST_MOMENT, part(keptM, 0, 64), SHARD),
      addTensor(*bucket, StateTensor::SECOND_MOMENT, part(keptV, 0, 64), SHARD);
  Parameter *parameter = b.plan.add_parameters();
  parameter->set_name("linear.weight"), parameter->add_shape(4), parameter->add_shape(1), parameter->set_decay(true),
      parameter->add_pieces();
  Source *source = parameter->mutable_source();
  source->set_file(folder / "w.raw"), source->set_bytes(16), source->set_dtype(F32);

  for (const char *symbol : {"mse", "norm", "adamw"}) b.plan.add_kernels()->set_symbol(symbol);
  auto launch = [](Launch *launch, uint32_t kernel, uint64_t extent) { launch->set_kernel(kernel), launch->set_extent(extent); };
  auto product = [&](const char *name, const Ref &a, const Ref &c, const Ref &right, bool transposed, uint64_t rowsOut, uint64_t inner) {
    MatMul *mm = b.step(name, {a, right}, {c}).mutable_matmul();
    mm->set_dtype(F32), mm->set_c_dtype(F32), mm->set_trans_a(transposed);
    mm->set_m(rowsOut), mm->set_n(1), mm->set_k(inner), mm->set_batch(1), mm->set_lda(4), mm->set_ldb(1), mm->set_ldc(1);
  };
  auto sumOver = [&](const char *name, const Ref &ref, uint64_t tick) {
    Step &step = b.step(name, {ref}, b.staged(ref, few), REDUCE);
    waitFor(step, COMPUTE, tick);
    collect(step, Collective::ALL_REDUCE, 1);
  };
  product("forward", x, pred, part(w, 0, 16), false, batch, 4);
  launch(b.step("loss", {pred, y, scale, count}, {diff, loss}).mutable_launch(), 0, 1);
  sumOver("loss of all", loss, 2);
  Program eval = b.program();
  b.fill("clear", gradient, 0);
  product("backward", x, part(gradient, 0, 16), diff, true, 4, batch);
  Step &reduce = b.step("reduce", {gradient}, b.staged(myGradient, staging), REDUCE);
  waitFor(reduce, COMPUTE, 4);
  collect(reduce, Collective::REDUCE_SCATTER, 16);
  Step &square = b.step("square", {myGradient}, {sum});
  waitFor(square, REDUCE, 2);
  launch(square.mutable_launch(), 1, 1);
  sumOver("norm", sum, 5);
  auto moments = {std::pair(keptM, m), std::pair(keptV, v)};
  if (disk)
    for (const auto &[kept, moment] : moments) b.step("read", {kept}, {moment}, DISK_READ).mutable_copy();
  Ref myM = part(m, 0, 64), myV = part(v, 0, 64);
  Step &step = b.step("update", {myW, myGradient, myM, myV, hyper}, {myW, myM, myV}, UPDATE);
  waitFor(step, REDUCE, 2);
  if (disk) waitFor(step, DISK_READ, 2);
  Update *update = step.mutable_update();
  update->set_dtype(F32), update->set_part(SHARD);
  launch(update->mutable_launch(), 2, 16);
  Step &gather = b.step("gather", {myW}, {w}, GATHER);
  waitFor(gather, UPDATE, 1);
  collect(gather, Collective::ALL_GATHER, 16);
  if (disk)
    for (const auto &[kept, moment] : moments) {
      Step &write = b.step("write", {moment}, {kept}, DISK_WRITE);
      waitFor(write, UPDATE, 1);
      write.mutable_copy();
    }
  *b.program().mutable_loss() = loss, *b.program().mutable_gradient_norm() = sum;
  eval.set_name("eval"), eval.set_role(Program::EVAL), *eval.mutable_loss() = loss;
  *b.plan.add_programs() = eval;

  b.boundKernels();
  static std::map<std::string, std::string> objects; // by what their kernels reach
  std::string bounds = boundsInC(b.plan);
  auto [it, fresh] = objects.try_emplace(bounds);
  if (fresh) it->second = test::compileKernels(kKernels + bounds);
  const std::string &object = it->second;
  auto countBytes = static_cast<float>(batch);
  save(folder / name, b.plan, std::as_bytes(std::span(object)), std::as_bytes(std::span(&countBytes, 1)));
}

class Zerorun : public testing::Test {
protected:
  void SetUp() override {
    ::signal(SIGINT, SIG_DFL); // a shell's background jobs ignore it, and so would every run that is started here
    folder.write("w.raw", {reinterpret_cast<const char *>(kWeights.data()), 16});
    for (int i = 0; i < 10 * 4; ++i) x.push_back(std::sin(static_cast<float>(i)));
    for (int i = 0; i < 10; ++i) y.push_back(std::cos(static_cast<float>(3 * i)));
    writeData("data.safetensors", x, y);
    writePlan(folder, "one.plan", 1, 4);
    writePlan(folder, "two.plan", 2, 2);
    writePlan(folder, "disk.plan", 2, 2, true);
  }

  void writeData(const std::string &name, const std::vector<float> &xs, const std::vector<float> &ys) {
    auto layout = runtime::layoutSafetensors({{"x", runtime::Element::F32, {ys.size(), 4}}, {"y", runtime::Element::F32, {ys.size(), 1}}});
    auto bytes = [](const std::vector<float> &v) { return std::string(reinterpret_cast<const char *>(v.data()), v.size() * 4); };
    folder.write(name, layout.header + bytes(xs) + bytes(ys));
  }

  struct Outcome {
    int status;
    std::string error;
  };
  // Flags are seen by a shell in the test's folder.
  Outcome run(const std::string &plan, const std::string &flags, int world = 1) {
    std::string start = world == 1 ? "" : "mpirun -np " + std::to_string(world) + " --oversubscribe --allow-run-as-root ";
    int status = std::system(
        ("cd " + (folder / "") + " && " + start + ZERORUN + " " + plan + " --threads 1 " + flags + " >out.txt 2>err.txt").c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, folder.read("err.txt")}; // a killed shell has no status: 0 would look fine
  }
  // Starts a run, sends it `signal` as soon as `ready`, and returns its exit status.
  int stop(const std::string &launcher, const std::string &flags, int signal, const std::function<bool()> &ready) {
    std::string command = "cd " + (folder / "") + " && exec " + launcher + ZERORUN + " --threads 1 " + flags + " >long.txt 2>err.txt";
    pid_t child = fork();
    if (child == 0) {
      execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      _exit(127);
    }
    auto started = [&] { return std::filesystem::exists(folder / "long.txt") && std::filesystem::file_size(folder / "long.txt") > 0; };
    for (int i = 0; i < 1000 && !(started() && ready()); ++i) usleep(10000);
    kill(child, signal);
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  bool hasSteps(const std::string &metrics) {
    return std::filesystem::exists(folder / metrics) && std::filesystem::file_size(folder / metrics) >= 100;
  }
  void succeed(const std::string &plan, const std::string &flags, int world = 1) {
    Outcome outcome = run(plan, flags, world);
    ASSERT_EQ(outcome.status, 0) << outcome.error;
  }
  std::vector<nlohmann::json> metrics(const std::string &name) {
    std::stringstream lines(folder.read(name));
    std::vector<nlohmann::json> rows;
    for (std::string line; std::getline(lines, line);) rows.push_back(nlohmann::json::parse(line));
    return rows;
  }
  std::vector<float> tensor(const std::string &file, const std::string &name) {
    runtime::TensorFile opened = runtime::openTensorFile(folder / file);
    const runtime::Tensor *found = opened.find(name);
    std::vector<float> values(found ? found->bytes.size() / 4 : 0);
    if (found) std::memcpy(values.data(), found->bytes.data(), found->bytes.size());
    return values;
  }

  Folder folder;
  std::vector<float> x, y;
};

} // namespace zero::test
