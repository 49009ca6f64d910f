// The device for cuda on the libraries of test/gpu/fake, with the engine of a plan on it: what holds for the cpu holds here. No GPU takes
// part.
#pragma once
#include "runtime/device/cuda/cuda_device.h"
#include "runtime/device/devices.h"
#include "test/gpu/fake_machine.h"
#include "test/unit/sample_plans.h"
#include <random>

namespace zero::test {

using namespace zero::plan;
using namespace zero::runtime;

struct FakeMachine : testing::Environment {
  void SetUp() override { ::setenv("ZERO_CUDA_LIBRARIES", FAKES, 1), ::setenv("ZERORUN_CACHE", "", 1); }
};
inline auto *fakeMachine = testing::AddGlobalTestEnvironment(new FakeMachine);
inline auto *mpiEnvironment = testing::AddGlobalTestEnvironment(new MpiEnvironment);

// A plan with its engine on either device.
struct Session {
  template <typename Builder>
  Session(Builder &builder, bool cuda, const DeviceOptions &deviceOptions = {}, const std::string &kernels = "",
          EngineOptions options = {}) {
    if (cuda) makeCuda(builder.plan);
    code = cuda ? ptxOf(builder.plan) : kernels.empty() ? "" : compileKernels(kernels + boundsInC(builder.plan));
    if (cuda && !kernels.empty()) {
      ::setenv("ZERO_FAKE_KERNELS", folder.write("kernels.so", launches(builder.plan, kernels)).c_str(), 1);
    }
    file = builder.file();
    if (!kernels.empty()) file.kernels = std::as_bytes(std::span(code));
    validate(file.plan, file.constants.size());
    device = deviceFor(file.plan.target(), "p.bin").make(deviceOptions);
    engine = std::make_unique<Engine>(file, *device, *world, options);
  }

  void write(const Ref &ref, std::span<const float> values) { engine->write(ref, 0, std::as_bytes(values)); }
  std::vector<float> read(const Ref &ref) {
    std::vector<float> values(ref.bytes() / sizeof(float));
    engine->read(ref, 0, std::as_writable_bytes(std::span(values)));
    return values;
  }

  Folder folder;
  std::string code;
  PlanFile file;
  std::unique_ptr<Device> device;
  std::unique_ptr<Engine> engine;
};

inline std::vector<float> randomFloats(size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float &value : values) value = normal(generator);
  return values;
}

inline bool same(const std::vector<float> &a, const std::vector<float> &b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

} // namespace zero::test
