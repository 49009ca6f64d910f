// What runtime/device/cuda declares of NVIDIA's libraries, held against NVIDIA's headers. It passes if it compiles.
#include "runtime/device/cuda/blas_lt.h"
#include "runtime/device/cuda/driver.h"
#include "runtime/device/cuda/nccl.h"
#include <cublasLt.h>
#include <cuda.h>
#include <nccl.h>
#include <type_traits>

namespace ours = zero::runtime::cuda;

namespace {

// Types that are passed alike: pointers are as good as each other, an enumeration is an int.
template <typename Ours, typename Theirs>
constexpr bool same = std::is_pointer_v<Ours>  ? std::is_pointer_v<Theirs>
                      : std::is_enum_v<Theirs> ? std::is_same_v<Ours, int> && sizeof(Theirs) == sizeof(int)
                      : std::is_class_v<Theirs>
                          ? std::is_class_v<Ours> && sizeof(Ours) == sizeof(Theirs) && alignof(Ours) == alignof(Theirs)
                          : std::is_same_v<Ours, Theirs>;

template <typename Ours, typename Theirs> struct Alike : std::false_type {};
template <typename R, typename... A, typename S, typename... B>
requires(sizeof...(A) == sizeof...(B)) struct Alike<R(A...), S(B...)> : std::bool_constant<same<R, S> && (same<A, B> && ...)> {
};

// A member of Driver, BlasLt or Nccl, and the function that it is bound to.
template <typename Table, typename Ours, typename Theirs> constexpr bool alike(Ours *Table::*, Theirs *) {
  return Alike<Ours, Theirs>::value;
}

using ours::BlasLt, ours::Driver, ours::Nccl;
static_assert(alike(&Driver::getErrorName, cuGetErrorName));
static_assert(alike(&Driver::init, cuInit));
static_assert(alike(&Driver::driverGetVersion, cuDriverGetVersion));
static_assert(alike(&Driver::deviceGetCount, cuDeviceGetCount));
static_assert(alike(&Driver::deviceGet, cuDeviceGet));
static_assert(alike(&Driver::deviceGetName, cuDeviceGetName));
static_assert(alike(&Driver::deviceGetAttribute, cuDeviceGetAttribute));
static_assert(alike(&Driver::contextRetain, cuDevicePrimaryCtxRetain));
static_assert(alike(&Driver::contextRelease, cuDevicePrimaryCtxRelease)); // a macro: …_v2, as all that end so below
static_assert(alike(&Driver::contextSetCurrent, cuCtxSetCurrent));
static_assert(alike(&Driver::memoryInfo, cuMemGetInfo));
static_assert(alike(&Driver::memoryAllocate, cuMemAlloc));
static_assert(alike(&Driver::memoryFree, cuMemFree));
static_assert(alike(&Driver::hostAllocate, cuMemHostAlloc));
static_assert(alike(&Driver::hostFree, cuMemFreeHost));
static_assert(alike(&Driver::hostRegister, cuMemHostRegister));
static_assert(alike(&Driver::hostUnregister, cuMemHostUnregister));
static_assert(alike(&Driver::copyAsync, cuMemcpyAsync));
static_assert(alike(&Driver::fill32Async, cuMemsetD32Async));
static_assert(alike(&Driver::fill8Async, cuMemsetD8Async));
static_assert(alike(&Driver::streamCreate, cuStreamCreate));
static_assert(alike(&Driver::streamDestroy, cuStreamDestroy));
static_assert(alike(&Driver::streamSynchronize, cuStreamSynchronize));
static_assert(alike(&Driver::streamWaitEvent, cuStreamWaitEvent));
static_assert(alike(&Driver::streamWaitValue, cuStreamWaitValue32) && ours::kAtLeast == CU_STREAM_WAIT_VALUE_GEQ);
static_assert(alike(&Driver::eventCreate, cuEventCreate));
static_assert(alike(&Driver::eventDestroy, cuEventDestroy));
static_assert(alike(&Driver::eventRecord, cuEventRecord));
static_assert(alike(&Driver::eventSynchronize, cuEventSynchronize));
static_assert(alike(&Driver::eventQuery, cuEventQuery));
static_assert(alike(&Driver::eventElapsedTime, cuEventElapsedTime));
static_assert(alike(&Driver::contextGetDevice, cuCtxGetDevice));
static_assert(alike(&Driver::linkCreate, cuLinkCreate));
static_assert(alike(&Driver::linkAddData, cuLinkAddData));
static_assert(alike(&Driver::linkComplete, cuLinkComplete));
static_assert(alike(&Driver::linkDestroy, cuLinkDestroy));
static_assert(ours::kPtx == CU_JIT_INPUT_PTX);
static_assert(alike(&Driver::beginCapture, cuStreamBeginCapture));
static_assert(alike(&Driver::endCapture, cuStreamEndCapture));
static_assert(alike(&Driver::graphInstantiate, cuGraphInstantiateWithFlags));
static_assert(alike(&Driver::graphLaunch, cuGraphLaunch));
static_assert(alike(&Driver::graphDestroy, cuGraphDestroy));
static_assert(alike(&Driver::graphExecDestroy, cuGraphExecDestroy));
static_assert(alike(&Driver::moduleLoad, cuModuleLoadDataEx));
static_assert(alike(&Driver::moduleUnload, cuModuleUnload));
static_assert(alike(&Driver::moduleGetFunction, cuModuleGetFunction));
static_assert(alike(&Driver::moduleGetGlobal, cuModuleGetGlobal));
static_assert(alike(&Driver::functionSetAttribute, cuFuncSetAttribute));
static_assert(alike(&Driver::launchKernel, cuLaunchKernel));
static_assert(alike(&Driver::launchHostFunction, cuLaunchHostFunc));
static_assert(same<ours::HostFunction *, CUhostFn> && same<ours::Pointer, CUdeviceptr>);

static_assert(ours::kSuccess == CUDA_SUCCESS && ours::kNotReady == CUDA_ERROR_NOT_READY);
static_assert(ours::kCapabilityMajor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(ours::kCapabilityMinor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(ours::kNonBlocking == CU_STREAM_NON_BLOCKING && ours::kPortable == CU_MEMHOSTALLOC_PORTABLE &&
              ours::kPortable == CU_MEMHOSTREGISTER_PORTABLE);
static_assert(ours::kBlocking == CU_EVENT_BLOCKING_SYNC);
static_assert(ours::kTimed == CU_EVENT_DEFAULT && ours::kUntimed == CU_EVENT_DISABLE_TIMING);
static_assert(ours::kThreadLocalCapture == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
static_assert(ours::kErrorLog == CU_JIT_ERROR_LOG_BUFFER && ours::kErrorLogBytes == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
static_assert(ours::kMaxDynamicShared == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);

static_assert(alike(&BlasLt::statusName, cublasLtGetStatusName));
static_assert(alike(&BlasLt::version, cublasLtGetVersion));
static_assert(alike(&BlasLt::create, cublasLtCreate));
static_assert(alike(&BlasLt::destroy, cublasLtDestroy));
static_assert(alike(&BlasLt::productCreate, cublasLtMatmulDescCreate));
static_assert(alike(&BlasLt::productDestroy, cublasLtMatmulDescDestroy));
static_assert(alike(&BlasLt::productSet, cublasLtMatmulDescSetAttribute));
static_assert(alike(&BlasLt::layoutCreate, cublasLtMatrixLayoutCreate));
static_assert(alike(&BlasLt::layoutDestroy, cublasLtMatrixLayoutDestroy));
static_assert(alike(&BlasLt::layoutSet, cublasLtMatrixLayoutSetAttribute));
static_assert(alike(&BlasLt::preferenceCreate, cublasLtMatmulPreferenceCreate));
static_assert(alike(&BlasLt::preferenceDestroy, cublasLtMatmulPreferenceDestroy));
static_assert(alike(&BlasLt::preferenceSet, cublasLtMatmulPreferenceSetAttribute));
static_assert(alike(&BlasLt::heuristic, cublasLtMatmulAlgoGetHeuristic));
static_assert(alike(&BlasLt::algorithmCheck, cublasLtMatmulAlgoCheck));
static_assert(alike(&BlasLt::algorithmGet, cublasLtMatmulAlgoConfigGetAttribute));
static_assert(alike(&BlasLt::multiply, cublasLtMatmul));

static_assert(ours::kReal32 == CUDA_R_32F && ours::kReal16 == CUDA_R_16F && ours::kRealBf16 == CUDA_R_16BF);
static_assert(ours::kComputeIn32 == CUBLAS_COMPUTE_32F && ours::kComputeInTf32 == CUBLAS_COMPUTE_32F_FAST_TF32);
static_assert(ours::kNotTransposed == CUBLAS_OP_N && ours::kTransposed == CUBLAS_OP_T);
static_assert(ours::kTransposesA == CUBLASLT_MATMUL_DESC_TRANSA && ours::kTransposesB == CUBLASLT_MATMUL_DESC_TRANSB);
static_assert(ours::kEpilogue == CUBLASLT_MATMUL_DESC_EPILOGUE && ours::kBiasPointer == CUBLASLT_MATMUL_DESC_BIAS_POINTER);
static_assert(ours::kAuxPointer == CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER && ours::kAuxLd == CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD);
static_assert(ours::kNoEpilogue == CUBLASLT_EPILOGUE_DEFAULT && ours::kBias == CUBLASLT_EPILOGUE_BIAS &&
              ours::kGelu == CUBLASLT_EPILOGUE_GELU_AUX_BIAS && ours::kGeluGradient == CUBLASLT_EPILOGUE_DGELU);
static_assert(ours::kBatchCount == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
static_assert(ours::kBatchStride == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
static_assert(ours::kMaxWorkspace == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
static_assert(ours::kReductionSchemes == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
static_assert(ours::kNoReduction == CUBLASLT_REDUCTION_SCHEME_NONE && ours::kApartReduction == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
static_assert(ours::kSplits == CUBLASLT_ALGO_CONFIG_SPLITK_NUM && ours::kReductionScheme == CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME);
static_assert(ours::kAlignmentA == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
static_assert(ours::kAlignmentA + 1 == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
static_assert(ours::kAlignmentA + 2 == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
static_assert(ours::kAlignmentA + 3 == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
static_assert(sizeof(ours::Algorithm) == sizeof(cublasLtMatmulAlgo_t) &&
              sizeof(ours::Heuristic) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(ours::Heuristic, workspaceBytes) == offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(ours::Heuristic, status) == offsetof(cublasLtMatmulHeuristicResult_t, state));

static_assert(alike(&Nccl::errorString, ncclGetErrorString));
static_assert(alike(&Nccl::makeId, ncclGetUniqueId));
static_assert(alike(&Nccl::join, ncclCommInitRank));
static_assert(alike(&Nccl::destroy, ncclCommDestroy));
static_assert(alike(&Nccl::abort, ncclCommAbort));
static_assert(alike(&Nccl::asyncError, ncclCommGetAsyncError));
static_assert(alike(&Nccl::enroll, ncclCommRegister));
static_assert(alike(&Nccl::withdraw, ncclCommDeregister));
static_assert(alike(&Nccl::groupStart, ncclGroupStart));
static_assert(alike(&Nccl::groupEnd, ncclGroupEnd));
static_assert(alike(&Nccl::send, ncclSend));
static_assert(alike(&Nccl::receive, ncclRecv));
static_assert(alike(&Nccl::allGather, ncclAllGather));
static_assert(alike(&Nccl::reduceScatter, ncclReduceScatter));
static_assert(alike(&Nccl::allReduce, ncclAllReduce));
static_assert(ours::kNcclInProgress == ncclInProgress && ours::kNcclBytes == ncclInt8 && ours::kNcclReal32 == ncclFloat32 &&
              ours::kNcclSum == ncclSum);

} // namespace
