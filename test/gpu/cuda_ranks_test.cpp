// Ranks with a GPU each, which the stand-in for NCCL connects: they train as those with processors do, and end together.
#include "test/gpu/cuda_zerorun.h"
#include "test/gpu/short_lists.h"
#include "test/unit/tcp_launch.h"
#include <array>
#include <set>

using namespace zero;
using namespace zero::test;

namespace {

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

// Two ranks over TCP, both or the second alone with a fault: how they end, and what they say.
struct Ends {
  std::array<int, 2> statuses{-1, -1};
  std::array<std::string, 2> said;
};
Ends endsOf(const Folder &folder, const std::string &plan, const std::string &fault, bool both = false) {
  std::string port = std::to_string(freePort()), script = "cd " + (folder / "") + "\n";
  for (const char *rank : {"0", "1"})
    script += std::string("(env RANK=") + rank + " WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=" + port +
              (both || *rank == '1' ? " ZERO_FAKE_FAIL=" + fault : "") + " timeout -k 1 60 " ZERORUN " " + plan +
              " --threads 1 --data data.safetensors --steps 6 >out" + rank + " 2>err" + rank + "; echo $? >status" + rank + ") &\n";
  EXPECT_EQ(std::system((script + "wait").c_str()), 0);
  Ends ends;
  for (size_t rank : {0, 1}) {
    ends.statuses[rank] = std::stoi(folder.read("status" + std::to_string(rank)));
    ends.said[rank] = folder.read("err" + std::to_string(rank));
  }
  return ends;
}

// Both fail, and each says one sentence: why, or that the other one has said why.
void expectToldEnds(const Ends &ends, const std::string &what) {
  SCOPED_TRACE(what + ": " + ends.said[0] + ends.said[1]);
  EXPECT_EQ(ends.statuses, (std::array{1, 1}));
  int reasons = 0;
  for (const std::string &said : ends.said) {
    EXPECT_TRUE(said.starts_with("zerorun: ") && said.ends_with("\n") && std::ranges::count(said, '\n') == 1);
    reasons += said.find(" ended the run and has said why") == std::string::npos;
  }
  EXPECT_GE(reasons, 1);
}

// Every function of the short lists fails on the second of two GPUs: both ranks end.
TEST_F(CudaZerorun, RanksEndTogether) {
  forCuda("two.plan", "ordered.plan"), forCuda("two.plan", "library.plan", true);
  const std::set<std::string> silent{
      "cuDevicePrimaryCtxRelease_v2", "cuMemFree_v2", "cuMemFreeHost", "cuMemHostUnregister", "cuStreamDestroy_v2", "cuEventDestroy_v2",
      "cuGraphDestroy", "cuGraphExecDestroy", "cuLinkDestroy", "cuModuleUnload", "cublasLtDestroy", "cublasLtMatmulDescDestroy",
      "cublasLtMatrixLayoutDestroy", "cublasLtMatmulPreferenceDestroy", "ncclCommDestroy", "ncclCommDeregister",
      "ncclCommAbort",                                                   // they give back
      "cuGetErrorName", "cublasLtGetStatusName", "ncclGetErrorString",   // of an error alone
      "cublasLtGetVersion",                                              // a number
      "cublasLtMatmulAlgoCheck", "cublasLtMatmulAlgoConfigGetAttribute", // of a measured table alone
      "ncclGetUniqueId",                                                 // the first rank's
      // Not called for this plan, but in cuda_faults_test: graphs, a disk, much shared memory, updates on the host, fills with numbers.
      "cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuGraphInstantiateWithFlags", "cuGraphLaunch", "cuLaunchHostFunc",
      "cuEventSynchronize", "cuFuncSetAttribute", "cuMemsetD32Async", "cuStreamWaitValue32_v2", "cuMemHostRegister_v2"};
  size_t failed = 0;
  for (const std::string &function : functionsOf({"driver.cpp", "blas_lt.cpp", "nccl.cpp"})) {
    if (silent.contains(function)) continue;
    bool ordered = function == "ncclSend" || function == "ncclRecv" || function.starts_with("ncclGroup");
    expectToldEnds(endsOf(folder, ordered ? "ordered.plan" : "library.plan", function + ":1"), function);
    ++failed;
  }
  EXPECT_GE(failed, 45u);
}

// In the middle of a run, when it is ordered or when it is done.
TEST_F(CudaZerorun, RanksEndTogetherLater) {
  forCuda("two.plan", "ordered.plan"), forCuda("two.plan", "library.plan", true);
  struct Case {
    const char *fault;
    bool ordered = false, both = false;
  };
  for (auto [fault, ordered, both] : {Case{"ncclCommGetAsyncError:3"},
                                      {"ncclAllGather:2"},
                                      {"ncclReduceScatter:3"},
                                      {"ncclAllReduce:4"},
                                      {"ncclAllReduce:4:later"},
                                      {"cuLaunchKernel:9:later"},
                                      {"cuEventQuery:5"},
                                      {"ncclGroupStart:2", true},
                                      {"ncclSend:2", true},
                                      {"ncclGroupEnd:2", true},
                                      {"ncclGroupEnd:2:later", true},
                                      {"cuLaunchKernel:9:later", false, true},
                                      {"ncclCommInitRank:1", false, true},
                                      {"ncclGetUniqueId:1", false, true}})
    expectToldEnds(endsOf(folder, ordered ? "ordered.plan" : "library.plan", fault, both), fault + std::string(both ? " on both" : ""));
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
