#include "runtime/device/cuda/nccl.h"
#include "runtime/base/error.h"
#include <array>
#include <cstdlib>
#include <utility>

namespace zero::runtime::cuda {
namespace {

constexpr auto kMeanings = std::to_array<std::pair<NcclStatus, const char *>>({
    {1, "a call of CUDA failed in it"},
    {2, "the system refused it memory, a file or a connection"},
    {3, "an internal error"},
    {4, "a wrong argument"},
    {5, "it was used in a wrong way; two ranks on one GPU are one"},
    {6, "another rank has ended, or cannot be reached"},
});

// What decides in which order NCCL adds. It would choose by size and machine, and sums inside switches (NVLS) differ from call to call: so
// one algorithm is fixed whose order is that of the ranks on a ring. What the user has set counts.
void fixOrder() {
  for (auto [name, value] : {std::pair("NCCL_ALGO", "Ring"), {"NCCL_PROTO", "Simple"}, {"NCCL_NVLS_ENABLE", "0"}}) ::setenv(name, value, 0);
}

} // namespace

Nccl::Nccl() {
  fixOrder();
  Library library({"NVIDIA's library of collectives (NCCL)", {"libnccl.so.2"}, true, "install NCCL or PyTorch's CUDA wheels"});
  library.find(errorString, "ncclGetErrorString");
  library.find(makeId, "ncclGetUniqueId");
  library.find(join, "ncclCommInitRank");
  library.find(destroy, "ncclCommDestroy");
  library.find(abort, "ncclCommAbort");
  library.find(asyncError, "ncclCommGetAsyncError");
  library.find(enroll, "ncclCommRegister");
  library.find(withdraw, "ncclCommDeregister");
  library.find(groupStart, "ncclGroupStart");
  library.find(groupEnd, "ncclGroupEnd");
  library.find(send, "ncclSend");
  library.find(receive, "ncclRecv");
  library.find(allGather, "ncclAllGather");
  library.find(reduceScatter, "ncclReduceScatter");
  library.find(allReduce, "ncclAllReduce");
}

const Nccl &Nccl::get() {
  static const Nccl library;
  return library;
}

std::string Nccl::sentence(NcclStatus status) const {
  const char *text = errorString(status);
  std::string known = text ? text : "status " + std::to_string(status);
  for (auto [number, meaning] : kMeanings)
    if (number == status) return std::string(meaning) + " (NCCL: " + known + "; NCCL_DEBUG=WARN says more)";
  return "NCCL says " + known;
}

void Nccl::require(NcclStatus status, const std::string &what) const {
  if (status != 0) throw Error(what + ": " + sentence(status));
}

} // namespace zero::runtime::cuda
