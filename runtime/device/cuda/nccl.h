// NCCL: the functions that are called, declared by us so that nothing of CUDA is needed to build. Types and numbers are those of the
// documented ABI (nccl.h, version 2); test/gpu/abi_test.cpp holds them against NVIDIA's header.
#pragma once
#include "runtime/device/cuda/driver.h"

namespace zero::runtime::cuda {

using NcclStatus = int;              // ncclResult_t
using NcclHandle = struct NcclTag *; // ncclComm_t
struct NcclId {                      // ncclUniqueId
  char bytes[128];
};

inline constexpr NcclStatus kNcclInProgress = 7; // ncclInProgress
inline constexpr int kNcclBytes = 0;             // ncclInt8
inline constexpr int kNcclReal32 = 7;            // ncclFloat32
inline constexpr int kNcclSum = 0;               // ncclSum

struct Nccl {
  // Opens it, once in a process. Throws a sentence if there is none.
  static const Nccl &get();

  // Throws "WHAT: why" unless the status says success.
  void require(NcclStatus status, const std::string &what) const;
  std::string sentence(NcclStatus status) const;

  const char *(*errorString)(NcclStatus);
  NcclStatus (*makeId)(NcclId *);
  NcclStatus (*join)(NcclHandle *, int ranks, NcclId, int rank);
  NcclStatus (*destroy)(NcclHandle);
  NcclStatus (*abort)(NcclHandle);
  NcclStatus (*asyncError)(NcclHandle, NcclStatus *);
  NcclStatus (*enroll)(NcclHandle, void *memory, size_t bytes, void **entry); // since 2.19
  NcclStatus (*withdraw)(NcclHandle, void *entry);
  NcclStatus (*groupStart)();
  NcclStatus (*groupEnd)();
  NcclStatus (*send)(const void *src, size_t count, int type, int peer, NcclHandle, StreamHandle);
  NcclStatus (*receive)(void *dst, size_t count, int type, int peer, NcclHandle, StreamHandle);
  NcclStatus (*allGather)(const void *src, void *dst, size_t count, int type, NcclHandle, StreamHandle);
  NcclStatus (*reduceScatter)(const void *src, void *dst, size_t count, int type, int operation, NcclHandle, StreamHandle);
  NcclStatus (*allReduce)(const void *src, void *dst, size_t count, int type, int operation, NcclHandle, StreamHandle);

private:
  Nccl();
};

} // namespace zero::runtime::cuda
