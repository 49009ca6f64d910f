#include "runtime/device/cuda/blas_lt.h"
#include "runtime/base/error.h"
#include <array>
#include <utility>

namespace zero::runtime::cuda {
namespace {

constexpr auto kMeanings = std::to_array<std::pair<BlasStatus, const char *>>({
    {1, "it could not start, for want of GPU memory perhaps"},
    {3, "there is not enough memory"},
    {7, "it does not take these sizes"},
    {8, "it has nothing for this GPU; install a newer version"},
    {13, "the GPU failed to run it"},
    {14, "an internal error"},
    {15, "it has no algorithm for this"},
});

} // namespace

BlasLt::BlasLt() {
  Library library({"NVIDIA's library of products (cuBLASLt)",
                   {"libcublasLt.so.13", "libcublasLt.so.12"},
                   true,
                   "install the CUDA toolkit or PyTorch's CUDA wheels"});
  library.find(statusName, "cublasLtGetStatusName");
  library.find(version, "cublasLtGetVersion");
  library.find(create, "cublasLtCreate");
  library.find(destroy, "cublasLtDestroy");
  library.find(productCreate, "cublasLtMatmulDescCreate");
  library.find(productDestroy, "cublasLtMatmulDescDestroy");
  library.find(productSet, "cublasLtMatmulDescSetAttribute");
  library.find(layoutCreate, "cublasLtMatrixLayoutCreate");
  library.find(layoutDestroy, "cublasLtMatrixLayoutDestroy");
  library.find(layoutSet, "cublasLtMatrixLayoutSetAttribute");
  library.find(preferenceCreate, "cublasLtMatmulPreferenceCreate");
  library.find(preferenceDestroy, "cublasLtMatmulPreferenceDestroy");
  library.find(preferenceSet, "cublasLtMatmulPreferenceSetAttribute");
  library.find(heuristic, "cublasLtMatmulAlgoGetHeuristic");
  library.find(algorithmCheck, "cublasLtMatmulAlgoCheck");
  library.find(algorithmGet, "cublasLtMatmulAlgoConfigGetAttribute");
  library.find(multiply, "cublasLtMatmul");
}

const BlasLt &BlasLt::get() {
  static const BlasLt library;
  return library;
}

std::string BlasLt::sentence(BlasStatus status) const {
  const char *name = statusName(status);
  std::string known = name ? name : "status " + std::to_string(status);
  for (auto [number, meaning] : kMeanings)
    if (number == status) return std::string(meaning) + " (" + known + ")";
  return "cuBLASLt says " + known;
}

void BlasLt::require(BlasStatus status, const std::string &what) const {
  if (status != 0) throw Error(what + ": " + sentence(status));
}

} // namespace zero::runtime::cuda
