// zerorun on a plan for cuda, made by hand, with the stand-ins for NVIDIA's libraries: it trains like the cpu, and says in a sentence what
// is missing.
#include "test/gpu/cuda_zerorun.h"

using namespace zero;
using namespace zero::test;

namespace {

TEST_F(CudaZerorun, TrainsLikeTheCpu) {
  std::string flags =
      "--data data.safetensors --steps 6 --lr 0.1 --eval-data data.safetensors --eval-every 2 --trace t.json --gradients g.safetensors "
      "--metrics ";
  succeed("one.plan", flags + "cpu.jsonl --export cpu.safetensors");
  auto gradient = tensor("g.safetensors", "linear.weight");
  succeed("cuda.plan", flags + "cuda.jsonl --export cuda.safetensors --checkpoint c --every 3");
  expectClose(tensor("cpu.safetensors", "linear.weight"), tensor("cuda.safetensors", "linear.weight"));
  expectClose(gradient, tensor("g.safetensors", "linear.weight"));
  auto cpu = metrics("cpu.jsonl"), cuda = metrics("cuda.jsonl");
  ASSERT_EQ(cpu.size(), cuda.size());
  for (size_t i = 0; i < cpu.size(); ++i)
    for (const char *key : {"loss", "grad_norm"}) EXPECT_NEAR(cpu[i][key], cuda[i][key].get<double>(), 1e-5);
  EXPECT_GT(nlohmann::json::parse(folder.read("t.json")).size(), 40u);
}

TEST_F(CudaZerorun, GraphsChangeNoBit) {
  forCuda("two.plan", "cuda2.plan", true);
  std::string flags = "--data data.safetensors --steps 8 --lr 0.05 --eval-data data.safetensors --eval-every 2 --metrics ";
  for (auto [plan, ranks] : {std::pair("cuda.plan", 1), {"disk.plan", 1}, {"cuda2.plan", 2}}) {
    succeed(plan, flags + "graphs.jsonl --export graphs.safetensors", ranks);
    succeed(plan, flags + "streams.jsonl --export streams.safetensors --no-graphs", ranks);
    EXPECT_EQ(tensor("graphs.safetensors", "linear.weight"), tensor("streams.safetensors", "linear.weight"));
    auto graphs = metrics("graphs.jsonl"), streams = metrics("streams.jsonl");
    for (size_t i = 0; i < graphs.size(); ++i)
      for (const char *key : {"loss", "grad_norm", "bytes"}) EXPECT_EQ(graphs[i][key], streams[i][key]);
  }
}

TEST_F(CudaZerorun, AResumedRunEndsWithTheSameBits) {
  std::string flags = "--data data.safetensors --lr 0.05 ";
  succeed("cuda.plan", flags + "--steps 7 --checkpoint c --every 3 --export whole.safetensors");
  succeed("cuda.plan", flags + "--steps 3 --checkpoint d");
  succeed("cuda.plan", flags + "--steps 7 --resume d --export resumed.safetensors");
  EXPECT_EQ(tensor("whole.safetensors", "linear.weight"), tensor("resumed.safetensors", "linear.weight"));
  succeed("one.plan", flags + "--steps 7 --resume d --export cpu.safetensors"); // the cpu takes it too
  expectClose(tensor("whole.safetensors", "linear.weight"), tensor("cpu.safetensors", "linear.weight"));
}

TEST_F(CudaZerorun, StateOnDisk) {
  std::string flags = "--data data.safetensors --steps 5 --lr 0.05 --export ";
  succeed("cuda.plan", flags + "w.safetensors");
  succeed("disk.plan", flags + "v.safetensors --disk-path a");
  EXPECT_EQ(tensor("w.safetensors", "linear.weight"), tensor("v.safetensors", "linear.weight"));
}

TEST_F(CudaZerorun, AFailingGpuEndsTheRunWithASentence) {
  ::setenv("ZERO_FAKE_FAIL", "cuLaunchKernel:9:later", 1);
  Outcome outcome = run("cuda.plan", "--data data.safetensors --steps 6");
  ::unsetenv("ZERO_FAKE_FAIL");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(std::ranges::count(outcome.error, '\n'), 1) << outcome.error;
  EXPECT_NE(outcome.error.find("a kernel failed while it ran (CUDA_ERROR_LAUNCH_FAILED)"), std::string::npos) << outcome.error;
}

TEST_F(CudaZerorun, AMachineWithoutADriverIsToldSo) {
  ::unsetenv("ZERO_CUDA_LIBRARIES");
  Outcome outcome = run("cuda.plan", "--data data.safetensors --steps 6");
  if (outcome.error.find("was not found") == std::string::npos) GTEST_SKIP() << "this machine has one: " << outcome.error;
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(
      outcome.error,
      "zerorun: the CUDA driver was not found: there is no libcuda.so.1 where the loader looks; a plan for cuda needs a machine with an "
      "NVIDIA GPU and its driver; install the driver, or compile with --target cpu, or name its folder in ZERO_CUDA_LIBRARIES\n");
}

} // namespace
