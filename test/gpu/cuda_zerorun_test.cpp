// zerorun on a plan for cuda, made by hand, with the stand-ins for NVIDIA's libraries: it trains like the cpu, and says in a sentence what
// is missing.
#include "test/gpu/fake_machine.h"
#include "test/unit/zerorun_fixture.h"

using namespace zero;
using namespace zero::test;

namespace {

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

void expectClose(const std::vector<float> &a, const std::vector<float> &b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5);
}

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

// Two ranks, whose GPUs are connected by NCCL, and the plan of the cpu: a sum of two has one order only.
TEST_F(CudaZerorun, RanksShareTheBatch) {
  forCuda("two.plan", "cuda2.plan");
  std::string flags = "--data data.safetensors --steps 5 --lr 0.05 --gradients g.safetensors --metrics ";
  succeed("two.plan", flags + "cpu.jsonl --export cpu.safetensors", 2);
  auto gradient = tensor("g.safetensors", "linear.weight");
  for (const char *seed : {"1", "2", "3"}) {
    ::setenv("ZERO_FAKE_SEED", seed, 1);
    succeed("cuda2.plan", flags + "cuda.jsonl --export cuda.safetensors", 2);
    expectClose(tensor("cpu.safetensors", "linear.weight"), tensor("cuda.safetensors", "linear.weight"));
    expectClose(gradient, tensor("g.safetensors", "linear.weight"));
    auto rows = metrics("cuda.jsonl");
    EXPECT_EQ(rows.back()["bytes"], metrics("cpu.jsonl").back()["bytes"]);
  }
}

// Each function of NCCL, and one of the driver, fails on both ranks or on one: all end, and somebody says why.
TEST_F(CudaZerorun, RanksEndTogether) {
  forCuda("two.plan", "ordered.plan"), forCuda("two.plan", "library.plan", true);
  struct Case {
    std::string fault;
    bool both = false, ordered = false;
  };
  std::vector<Case> cases{{"cuLaunchKernel:9:later", true}, {"ncclCommInitRank:1", true}};
  for (const char *fault : {"ncclGetUniqueId:1", "ncclCommInitRank:1", "ncclCommGetAsyncError:3", "ncclAllGather:2", "ncclReduceScatter:3",
                            "ncclAllReduce:4", "ncclAllReduce:4:later", "cuLaunchKernel:9:later", "cuEventQuery:5"})
    cases.push_back({fault});
  for (const char *fault : {"ncclGroupStart:2", "ncclSend:2", "ncclRecv:1", "ncclGroupEnd:2", "ncclGroupEnd:2:later"})
    cases.push_back({fault, false, true});
  for (const auto &[fault, both, ordered] : cases) {
    std::string command = std::string(" timeout -k 1 60 " ZERORUN) + (ordered ? " ordered.plan" : " library.plan") +
                          " --threads 1 --data data.safetensors --steps 6 ";
    std::string broken = " env ZERO_FAKE_FAIL=" + fault;
    int status = std::system(("cd " + (folder / "") + " && mpirun --oversubscribe --allow-run-as-root -np 1" + broken + command +
                              ": -np 1" + (both ? broken : "") + command + ">out.txt 2>err.txt")
                                 .c_str());
    std::string error = folder.read("err.txt");
    SCOPED_TRACE(fault + (both ? " on both: " : " on one: ") + error);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_NE(WEXITSTATUS(status), 0);
    EXPECT_NE(WEXITSTATUS(status), 124) << "it hung";
    EXPECT_NE(error.find("zerorun: "), std::string::npos);
  }
}

// Sums in the order of ranks and in that of NCCL. Adding is exact here but for rounding, which is another in each order.
TEST_F(CudaZerorun, ManyRanks) {
  for (int ranks : {3, 4}) {
    writePlan(folder, "many.plan", static_cast<uint32_t>(ranks), 2);
    forCuda("many.plan", "ordered.plan"), forCuda("many.plan", "library.plan", true);
    std::string flags = "--data data.safetensors --steps 4 --lr 0.05 --metrics ";
    succeed("many.plan", flags + "cpu.jsonl --export cpu.safetensors", ranks);
    for (const char *plan : {"ordered.plan", "library.plan"}) {
      succeed(plan, flags + "cuda.jsonl --export cuda.safetensors", ranks);
      auto bits = tensor("cuda.safetensors", "linear.weight");
      expectClose(tensor("cpu.safetensors", "linear.weight"), bits);
      ::setenv("ZERO_FAKE_SEED", "5", 1);
      succeed(plan, flags + "again.jsonl --export again.safetensors", ranks);
      EXPECT_EQ(bits, tensor("again.safetensors", "linear.weight"));
    }
    auto sent = [&](const char *name) { return metrics(name).back()["bytes"]["reduce"].get<uint64_t>(); };
    EXPECT_LE(sent("cuda.jsonl"), sent("cpu.jsonl")); // a ring sends less of an all-reduce than everything to everybody
  }
}

} // namespace
