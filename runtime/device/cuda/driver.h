// The CUDA driver: the functions of libcuda.so.1 that are called, declared by us so that nothing of CUDA is needed to build. Types and
// numbers are those of the driver API's documented ABI (cuda.h, CUDA 12.0 and later), where a type is called CU… and a constant as in the
// remark after it; test/gpu/abi_test.cpp holds them against NVIDIA's header.
#pragma once
#include "runtime/device/cuda/library.h"
#include <cstddef>
#include <string>

namespace zero::runtime::cuda {

using Status = int;                        // CUresult
using Ordinal = int;                       // CUdevice
using Pointer = unsigned long long;        // CUdeviceptr: of device memory, or of pinned host memory
using ContextHandle = struct ContextTag *; // CUcontext
using StreamHandle = struct StreamTag *;
using EventHandle = struct EventTag *;
using ModuleHandle = struct ModuleTag *;
using FunctionHandle = struct FunctionTag *;
using LinkHandle = struct LinkTag *;
using GraphHandle = struct GraphTag *;
using GraphExecHandle = struct GraphExecTag *;
using HostFunction = void(void *); // CUhostFn

inline constexpr Status kSuccess = 0;         // CUDA_SUCCESS
inline constexpr Status kNotReady = 600;      // CUDA_ERROR_NOT_READY
inline constexpr int kCapabilityMajor = 75;   // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
inline constexpr int kCapabilityMinor = 76;   // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR
inline constexpr unsigned kNonBlocking = 1;   // CU_STREAM_NON_BLOCKING
inline constexpr unsigned kTimed = 0;         // CU_EVENT_DEFAULT
inline constexpr unsigned kUntimed = 2;       // CU_EVENT_DISABLE_TIMING
inline constexpr unsigned kBlocking = 1;      // CU_EVENT_BLOCKING_SYNC: who waits for it sleeps
inline constexpr unsigned kAtLeast = 0;       // CU_STREAM_WAIT_VALUE_GEQ, of numbers modulo 2^32
inline constexpr unsigned kPortable = 1;      // CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTREGISTER_PORTABLE
inline constexpr int kThreadLocalCapture = 1; // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
inline constexpr int kErrorLog = 5;           // CU_JIT_ERROR_LOG_BUFFER
inline constexpr int kErrorLogBytes = 6;      // CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES
inline constexpr int kPtx = 1;                // CU_JIT_INPUT_PTX
inline constexpr int kMaxDynamicShared = 8;   // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES

struct Driver {
  // Opens and initialises it, once in a process. Throws a sentence if there is none, it is too old, or has no device.
  static const Driver &get();

  // Throws "WHAT: why" unless the status says success.
  void require(Status status, const std::string &what) const;
  // What a status means, for people.
  std::string sentence(Status status) const;

  Status (*getErrorName)(Status, const char **name);
  Status (*init)(unsigned flags);
  Status (*driverGetVersion)(int *version); // 1000 * major + 10 * minor
  Status (*deviceGetCount)(int *count);
  Status (*deviceGet)(Ordinal *, int number);
  Status (*deviceGetName)(char *name, int bytes, Ordinal);
  Status (*deviceGetAttribute)(int *value, int attribute, Ordinal);
  Status (*contextRetain)(ContextHandle *, Ordinal);
  Status (*contextRelease)(Ordinal);
  Status (*contextSetCurrent)(ContextHandle);
  Status (*contextGetDevice)(Ordinal *); // of the current one
  Status (*memoryInfo)(size_t *free, size_t *total);
  Status (*memoryAllocate)(Pointer *, size_t bytes);
  Status (*memoryFree)(Pointer);
  Status (*hostAllocate)(void **, size_t bytes, unsigned flags);
  Status (*hostFree)(void *);
  Status (*hostRegister)(void *, size_t bytes, unsigned flags); // memory that is there already
  Status (*hostUnregister)(void *);
  Status (*copyAsync)(Pointer to, Pointer from, size_t bytes, StreamHandle);
  Status (*fill32Async)(Pointer to, unsigned pattern, size_t words, StreamHandle);
  Status (*fill8Async)(Pointer to, unsigned char pattern, size_t bytes, StreamHandle);
  Status (*streamCreate)(StreamHandle *, unsigned flags);
  Status (*streamDestroy)(StreamHandle);
  Status (*streamSynchronize)(StreamHandle);
  Status (*streamWaitEvent)(StreamHandle, EventHandle, unsigned flags);
  Status (*streamWaitValue)(StreamHandle, Pointer, unsigned value, unsigned flags); // until memory holds it
  Status (*eventCreate)(EventHandle *, unsigned flags);
  Status (*eventDestroy)(EventHandle);
  Status (*eventRecord)(EventHandle, StreamHandle);
  Status (*eventSynchronize)(EventHandle);
  Status (*eventQuery)(EventHandle);
  Status (*eventElapsedTime)(float *milliseconds, EventHandle from, EventHandle to);
  Status (*beginCapture)(StreamHandle, int mode);
  Status (*endCapture)(StreamHandle, GraphHandle *);
  Status (*graphInstantiate)(GraphExecHandle *, GraphHandle, unsigned long long flags);
  Status (*graphLaunch)(GraphExecHandle, StreamHandle);
  Status (*graphDestroy)(GraphHandle);
  Status (*graphExecDestroy)(GraphExecHandle);
  Status (*linkCreate)(unsigned options, int *names, void **values, LinkHandle *);
  Status (*linkAddData)(LinkHandle, int kind, void *data, size_t bytes, const char *name, unsigned options, int *names, void **values);
  Status (*linkComplete)(LinkHandle, void **code, size_t *bytes);
  Status (*linkDestroy)(LinkHandle);
  Status (*moduleLoad)(ModuleHandle *, const void *image, unsigned options, int *names, void **values);
  Status (*moduleUnload)(ModuleHandle);
  Status (*moduleGetFunction)(FunctionHandle *, ModuleHandle, const char *symbol);
  Status (*moduleGetGlobal)(Pointer *, size_t *bytes, ModuleHandle, const char *symbol);
  Status (*functionSetAttribute)(FunctionHandle, int attribute, int value);
  Status (*launchKernel)(FunctionHandle, unsigned blocksX, unsigned blocksY, unsigned blocksZ, unsigned threadsX, unsigned threadsY,
                         unsigned threadsZ, unsigned sharedBytes, StreamHandle, void **args, void **extra);
  Status (*launchHostFunction)(StreamHandle, HostFunction *, void *data);

private:
  Driver();
};

} // namespace zero::runtime::cuda
