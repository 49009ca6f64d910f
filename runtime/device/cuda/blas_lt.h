// cuBLASLt: the functions that are called, declared by us so that nothing of CUDA is needed to build. Types and numbers are those of the
// documented ABI (cublasLt.h, library_types.h, cublas_api.h, versions 12 and 13); test/gpu/abi_test.cpp holds them against NVIDIA's
// headers.
#pragma once
#include "runtime/device/cuda/driver.h"
#include <cstdint>

namespace zero::runtime::cuda {

using BlasStatus = int;                          // cublasStatus_t
using BlasHandle = struct BlasTag *;             // cublasLtHandle_t
using ProductHandle = struct ProductTag *;       // cublasLtMatmulDesc_t
using LayoutHandle = struct LayoutTag *;         // cublasLtMatrixLayout_t
using PreferenceHandle = struct PreferenceTag *; // cublasLtMatmulPreference_t

inline constexpr int kReal32 = 0, kReal16 = 2, kRealBf16 = 14; // CUDA_R_32F, CUDA_R_16F, CUDA_R_16BF
inline constexpr int kComputeIn32 = 68;                        // CUBLAS_COMPUTE_32F: sums in f32, without TF32
inline constexpr int kComputeInTf32 = 77;                      // CUBLAS_COMPUTE_32F_FAST_TF32: sums in f32
inline constexpr int kTransposesA = 3, kTransposesB = 4;       // CUBLASLT_MATMUL_DESC_TRANSA, …TRANSB: int32
inline constexpr int kEpilogue = 7, kBiasPointer = 8;          // CUBLASLT_MATMUL_DESC_EPILOGUE: uint32, …_BIAS_POINTER
inline constexpr int kAuxPointer = 11, kAuxLd = 12;            // CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, …_LD: int64, a multiple of 8
inline constexpr uint32_t kNoEpilogue = 1;                     // CUBLASLT_EPILOGUE_DEFAULT
inline constexpr uint32_t kBias = 4, kGelu = 164, kGeluGradient = 192; // …BIAS, …GELU_AUX_BIAS, …DGELU: bias and aux in D's type
inline constexpr int kNotTransposed = 0, kTransposed = 1;              // CUBLAS_OP_N, CUBLAS_OP_T
inline constexpr int kBatchCount = 5;                                  // CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT: int32
inline constexpr int kBatchStride = 6;                                 // CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET: int64, elements
inline constexpr int kMaxWorkspace = 1;                                // CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES: uint64
inline constexpr int kReductionSchemes = 3;                            // CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK: uint32
inline constexpr int kAlignmentA = 5;           // CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, B, C and D after it: uint32
inline constexpr uint32_t kNoReduction = 0;     // CUBLASLT_REDUCTION_SCHEME_NONE: k is not split
inline constexpr uint32_t kApartReduction = 2;  // …_COMPUTE_TYPE: parts of k are written apart in f32, then added by a step of their own
inline constexpr BlasStatus kNotSupported = 15; // CUBLAS_STATUS_NOT_SUPPORTED
inline constexpr int kSplits = 2, kReductionScheme = 3; // CUBLASLT_ALGO_CONFIG_SPLITK_NUM: int32, …_REDUCTION_SCHEME: uint32

struct Algorithm { // cublasLtMatmulAlgo_t
  uint64_t data[8];
};
struct Heuristic { // cublasLtMatmulHeuristicResult_t
  Algorithm algorithm;
  size_t workspaceBytes;
  BlasStatus status;
  float waves;
  int reserved[4];
};

struct BlasLt {
  // Opens it, once in a process. Throws a sentence if there is none.
  static const BlasLt &get();

  // Throws "WHAT: why" unless the status says success.
  void require(BlasStatus status, const std::string &what) const;
  std::string sentence(BlasStatus status) const;

  const char *(*statusName)(BlasStatus);
  size_t (*version)();
  BlasStatus (*create)(BlasHandle *);
  BlasStatus (*destroy)(BlasHandle);
  BlasStatus (*productCreate)(ProductHandle *, int compute, int scaleType);
  BlasStatus (*productDestroy)(ProductHandle);
  BlasStatus (*productSet)(ProductHandle, int attribute, const void *value, size_t bytes);
  BlasStatus (*layoutCreate)(LayoutHandle *, int type, uint64_t rows, uint64_t columns, int64_t ld);
  BlasStatus (*layoutDestroy)(LayoutHandle);
  BlasStatus (*layoutSet)(LayoutHandle, int attribute, const void *value, size_t bytes);
  BlasStatus (*preferenceCreate)(PreferenceHandle *);
  BlasStatus (*preferenceDestroy)(PreferenceHandle);
  BlasStatus (*preferenceSet)(PreferenceHandle, int attribute, const void *value, size_t bytes);
  BlasStatus (*heuristic)(BlasHandle, ProductHandle, LayoutHandle a, LayoutHandle b, LayoutHandle c, LayoutHandle d, PreferenceHandle,
                          int wanted, Heuristic *, int *found);
  BlasStatus (*algorithmCheck)(BlasHandle, ProductHandle, LayoutHandle a, LayoutHandle b, LayoutHandle c, LayoutHandle d, const Algorithm *,
                               Heuristic *);
  BlasStatus (*algorithmGet)(const Algorithm *, int attribute, void *value, size_t bytes, size_t *written);
  BlasStatus (*multiply)(BlasHandle, ProductHandle, const void *alpha, const void *a, LayoutHandle, const void *b, LayoutHandle,
                         const void *beta, const void *c, LayoutHandle, void *d, LayoutHandle, const Algorithm *, void *workspace,
                         size_t workspaceBytes, StreamHandle);

private:
  BlasLt();
};

} // namespace zero::runtime::cuda
