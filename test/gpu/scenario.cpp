// A run on the device for cuda that uses every function on the short lists, and ends as zerorun does: with exit status 0, or one sentence
// on stderr and 1. cuda_faults_test breaks it everywhere. usage: cuda_scenario (ZERO_CUDA_LIBRARIES and the others from the environment;
// test/gpu/fake/README.md)
#include "runtime/device/devices.h"
#include "runtime/plan/error.h"
#include "test/gpu/fake_machine.h"
#include "test/unit/sample_plans.h"
#include <cstdio>

using namespace zero;
using namespace zero::plan;
using namespace zero::runtime;
using namespace zero::test;

namespace {

// Three tiers, a product, a kernel with much shared memory, fills of every width, and a program behind itself.
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
    boundKernels();
    makeCuda(plan);
    plan.mutable_kernels(0)->mutable_gpu()->set_shared_bytes(64 << 10);
  }
};

constexpr const char *kTwice = "void twice(void *const *args, long begin, long end) { const float *x = args[0]; float *y = args[1];"
                               "for (long i = begin; i < end; ++i) y[i] = 2 * x[i]; }\n";

int run() {
  Folder folder;
  EverythingPlan b;
  std::string ptx = ptxOf(b.plan);
  PlanFile file = b.file();
  file.kernels = std::as_bytes(std::span(ptx));
  validate(file.plan, 0);
  auto factory = connect();
  auto device = deviceFor(file.plan.target(), "p.bin").make({.diskPaths = {folder / "disk"}});
  Engine engine(file, *device, *factory, {.programs = {}, .trace = true});
  std::vector<float> given(16, 1.0f), square(64);
  std::vector<HostTransfer> writes{engine.transfer(b.input, std::as_writable_bytes(std::span(given)))},
      reads{engine.transfer(b.square, std::as_writable_bytes(std::span(square)))};
  for (int i = 0; i < 2; ++i) engine.submit({.program = 0, .writes = writes, .reads = reads});
  engine.finish(), engine.finish();
  engine.endTrace(); // then once as streams, and as graphs
  for (int i = 0; i < 3; ++i) engine.submit({.program = 0, .writes = writes, .reads = reads}), engine.finish();
  for (float value : square)
    if (value != 4) throw Error("the scenario computed " + std::to_string(value) + " where 4 is right");
  return 0;
}

} // namespace

int main(int count, char **arguments) {
  if (count == 3) {
    std::ofstream(arguments[2], std::ios::binary) << launches(EverythingPlan().plan, kTwice);
    return 0;
  }
  try {
    return run();
  } catch (const Error &error) {
    std::fprintf(stderr, "cuda_scenario: %s\n", error.what());
    return 1;
  }
}
