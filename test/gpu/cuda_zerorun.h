// zerorun on plans for cuda, made by hand, with the stand-ins for NVIDIA's libraries.
#pragma once
#include "test/gpu/fake_machine.h"
#include "test/unit/zerorun_fixture.h"

namespace zero::test {

class CudaZerorun : public Zerorun {
protected:
  void SetUp() override {
    Zerorun::SetUp();
    folder.write("cuda.plan", ""), folder.write("disk.plan", "");
    forCuda("one.plan", "cuda.plan");
    writePlan(folder, "one disk.plan", 1, 4, true);
    forCuda("one disk.plan", "disk.plan");
    ::setenv("ZERO_CUDA_LIBRARIES", FAKES, 1), ::setenv("ZERORUN_CACHE", "", 1);
  }

  // The same plan for a GPU, and its kernels for the fake one: they are those of all plans here.
  void forCuda(const std::string &from, const std::string &to, bool librarySums = false) {
    PlanFile file = load(folder / from);
    makeCuda(file.plan);
    if (librarySums) sumByLibrary(file.plan);
    std::string ptx = ptxOf(file.plan);
    save(folder / to, file.plan, std::as_bytes(std::span(ptx)), file.constants);
    static const std::string object = launches(file.plan, kKernels);
    ::setenv("ZERO_FAKE_KERNELS", folder.write("kernels.so", object).c_str(), 1);
  }
};

inline void expectClose(const std::vector<float> &a, const std::vector<float> &b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5);
}

} // namespace zero::test
