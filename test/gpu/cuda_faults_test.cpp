// Every function of the short lists fails once: the run ends with one sentence and exit status 1, and does not hang. (Those that give back
// what was given out have nobody to tell.)
#include "test/gpu/short_lists.h"
#include "test/unit/run_fixtures.h"
#include <set>

namespace {

using zero::test::Folder;
using zero::test::functionsOf;

struct Outcome {
  int status;
  std::string error;
};

Outcome run(const Folder &folder, const std::string &environment) {
  static const Folder made;
  static const std::string kernels = made / "kernels.so";
  static const int compiled = std::system((SCENARIO " --kernels " + kernels).c_str());
  EXPECT_EQ(compiled, 0);
  int status = std::system(("env ZERORUN_CACHE= ZERO_FAKE_KERNELS=" + kernels + " " + environment + " timeout -k 1 60 " SCENARIO " >" +
                            (folder / "out") + " 2>" + (folder / "err"))
                               .c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, folder.read("err")};
}

const std::string kLibraries = "ZERO_CUDA_LIBRARIES=" FAKES " ";

bool isOneSentence(const std::string &error) {
  return error.starts_with("cuda_scenario: ") && std::ranges::count(error, '\n') == 1 && error.ends_with("\n") && error.size() > 40;
}

TEST(Faults, NoneIsNone) {
  Folder folder;
  Outcome outcome = run(folder, kLibraries);
  EXPECT_EQ(outcome.status, 0) << outcome.error;
  EXPECT_EQ(outcome.error, "");
}

TEST(Faults, EveryFunctionGivesOneSentence) {
  const std::set<std::string> silent{"cuDevicePrimaryCtxRelease_v2",
                                     "cuMemFree_v2",
                                     "cuMemFreeHost",
                                     "cuMemHostUnregister",
                                     "cuStreamDestroy_v2",
                                     "cuEventDestroy_v2",
                                     "cuModuleUnload",
                                     "cuLinkDestroy",
                                     "cuGraphDestroy",
                                     "cuGraphExecDestroy",
                                     "cublasLtDestroy",
                                     "cublasLtMatmulDescDestroy",
                                     "cublasLtMatrixLayoutDestroy",
                                     "cublasLtMatmulPreferenceDestroy",
                                     "cuGetErrorName", // of an error alone
                                     "cuEventQuery",   // of several ranks alone
                                     "cublasLtGetStatusName",
                                     "cublasLtGetVersion",      // a number
                                     "cublasLtMatmulAlgoCheck", // of a measured table alone: cuda_tune_test
                                     "cublasLtMatmulAlgoConfigGetAttribute"};
  Folder folder;
  std::vector<std::string> names = functionsOf({"driver.cpp", "blas_lt.cpp"});
  EXPECT_GE(names.size(), 60u);
  for (const std::string &function : names)
    for (const char *when : {":1", ":2"}) { // a second call there is of few
      Outcome outcome = run(folder, kLibraries + "ZERO_FAKE_FAIL=" + function + when);
      SCOPED_TRACE(function + when + ": " + outcome.error);
      if (silent.contains(function) || (*(when + 1) == '2' && outcome.status == 0)) {
        EXPECT_EQ(outcome.status, 0);
        EXPECT_EQ(outcome.error, "");
        continue;
      }
      EXPECT_EQ(outcome.status, 1);
      EXPECT_TRUE(isOneSentence(outcome.error));
    }
}

// What the driver accepts and the GPU then fails at, early and late in a run; with an error that has no name, too.
TEST(Faults, WhatFailsInAStreamGivesOneSentence) {
  Folder folder;
  for (const char *function : {"cuMemcpyAsync", "cuMemsetD32Async", "cuMemsetD8Async", "cuStreamWaitEvent", "cuStreamWaitValue32_v2",
                               "cuEventRecord", "cuLaunchKernel", "cuLaunchHostFunc", "cuGraphLaunch", "cublasLtMatmul"})
    for (const char *call : {"1", "2", "3", "6"})
      for (const char *other : {"", "ZERO_FAKE_SEED=7 "}) {
        Outcome outcome = run(folder, kLibraries + other + "ZERO_FAKE_FAIL=" + function + ":" + call + ":later");
        SCOPED_TRACE(std::string(function) + " " + call + ": " + outcome.error);
        if (outcome.status == 0) {
          EXPECT_EQ(outcome.error, ""); // it was not called as often
          EXPECT_NE(*call, '1');
          continue;
        }
        EXPECT_EQ(outcome.status, 1);
        EXPECT_TRUE(isOneSentence(outcome.error));
        EXPECT_NE(outcome.error.find("a kernel failed while it ran (CUDA_ERROR_LAUNCH_FAILED)"), std::string::npos);
      }
}

// What the driver made of the kernels is there for the next run on such a machine, unless it is damaged.
TEST(Cache, SparesTheDriverItsCompiler) {
  Folder folder;
  std::string cached = kLibraries + "ZERORUN_CACHE=" + (folder / "cache") + " ", noCompiler = "ZERO_FAKE_FAIL=cuLinkAddData_v2:0 ";
  EXPECT_EQ(run(folder, cached + noCompiler).status, 1);
  EXPECT_EQ(run(folder, cached).status, 0);
  Outcome outcome = run(folder, cached + noCompiler);
  EXPECT_EQ(outcome.status, 0) << outcome.error;
  EXPECT_EQ(run(folder, cached + noCompiler + "ZERO_FAKE_VERSION=12090").status, 1) << "another driver makes something else";
  for (const auto &entry : std::filesystem::directory_iterator(folder / "cache"))
    std::filesystem::resize_file(entry, std::filesystem::file_size(entry) - 1);
  EXPECT_EQ(run(folder, cached + noCompiler).status, 1);
  outcome = run(folder, cached);
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.error, "");
  EXPECT_EQ(run(folder, cached + noCompiler).status, 0);
}

TEST(Machine, WithoutADriver) {
  Folder folder;
  Outcome outcome = run(folder, "ZERO_CUDA_LIBRARIES=" + (folder / ""));
  if (outcome.status != 1 || outcome.error.find("was not found") == std::string::npos)
    GTEST_SKIP() << "this machine has one: " << outcome.error;
  EXPECT_EQ(outcome.error.find("cuda_scenario: the CUDA driver was not found: there is no libcuda.so.1 where the loader looks, nor in "),
            0u)
      << outcome.error;
  EXPECT_TRUE(isOneSentence(outcome.error)) << outcome.error;
}

TEST(Machine, WithADriverThatIsTooOld) {
  Folder folder;
  Outcome outcome = run(folder, kLibraries + "ZERO_FAKE_VERSION=11040");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.error,
            "cuda_scenario: the CUDA driver of this machine serves CUDA 11.4, and zerorun needs 12.0 or later; install a newer driver\n");
}

TEST(Machine, WithoutAGpu) {
  Folder folder;
  Outcome outcome = run(folder, kLibraries + "ZERO_FAKE_DEVICES=0");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.error, "cuda_scenario: this machine has a CUDA driver and no GPU that it can use (is CUDA_VISIBLE_DEVICES set?)\n");
}

TEST(Machine, WithLittleMemory) {
  Folder folder;
  Outcome outcome = run(folder, kLibraries + "ZERO_FAKE_MEMORY=1000000");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.error.find("of GPU memory, but 'fake device' has 1.0 MiB left; compile with a smaller --device-memory"),
            std::string::npos)
      << outcome.error;
}

// A file of the right name with none of its functions; one that is no library.
TEST(Machine, WithALibraryThatIsNotOne) {
  Folder folder;
  folder.write("libcuda.so.1", zero::test::compileKernels("int nothing;\n"));
  Outcome outcome = run(folder, "ZERO_CUDA_LIBRARIES=" + (folder / ""));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.error.find("is too old: it has no function cuGetErrorName"), std::string::npos) << outcome.error;
  EXPECT_TRUE(isOneSentence(outcome.error)) << outcome.error;
  folder.write("libcuda.so.1", "text");
  outcome = run(folder, "ZERO_CUDA_LIBRARIES=" + (folder / ""));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.error.find("cannot open the CUDA driver: "), std::string::npos) << outcome.error;
  EXPECT_TRUE(isOneSentence(outcome.error)) << outcome.error;
}

} // namespace
