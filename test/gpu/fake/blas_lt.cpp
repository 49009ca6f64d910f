// The functions of libcublasLt that runtime/device/cuda/blas_lt.h lists.
#include "runtime/device/cuda/blas_lt.h"
#include "test/gpu/fake/faults.h"
#include "test/gpu/fake/memory.h"
#include "test/gpu/fake/numbers.h"
#include "test/gpu/fake/streams.h"
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <vector>

using namespace zero::runtime::cuda;
namespace fake = zero::fake;
using fake::Fault;
using fake::Memory;
using fake::widened;

namespace {

constexpr BlasStatus kInvalidValue = 7, kExecutionFailed = 13, kInternalError = 14;
constexpr uint64_t kNeeds = 4096; // bytes of workspace that the fake's algorithm writes

struct Layout {
  int type;
  uint64_t rows, columns;
  int64_t ld;
  int32_t batch = 1;
  int64_t stride = 0;

  size_t size() const { return type == kReal32 ? 4 : 2; }
  uint64_t bytes() const {
    return ((columns - 1) * static_cast<uint64_t>(ld) + rows + static_cast<uint64_t>(batch - 1) * static_cast<uint64_t>(stride)) * size();
  }
};
struct Product {
  int compute = kComputeIn32;
  int32_t transA = kNotTransposed, transB = kNotTransposed;
  uint32_t epilogue = kNoEpilogue;
  void *vector = nullptr, *aux = nullptr;
  int64_t auxLd = 0;

  bool bias() const { return epilogue == kBias || epilogue == kGelu; }
  bool gelu() const { return epilogue == kGelu || epilogue == kGeluGradient; }
  // What the header says of a D of so many rows in one batch.
  bool good(uint64_t rows, int32_t batch) const {
    if (epilogue == kNoEpilogue) return true;
    if ((!bias() && !gelu()) || batch != 1) return false;
    if (bias() && !vector) return false;
    return !gelu() || (aux && reinterpret_cast<uint64_t>(aux) % 16 == 0 && auxLd % 8 == 0 && auxLd >= int64_t(rows));
  }
};
struct Preference {
  uint64_t workspace = 0;
  uint32_t schemes = ~0u, alignment[4] = {256, 256, 256, 256};
};
// What an algorithm was chosen for, in its eight words.
struct Chosen {
  uint64_t magic, m, n, k;
  uint32_t alignment[4];
  uint64_t way; // it multiplies
  uint64_t unused;
};
static_assert(sizeof(Chosen) == sizeof(Algorithm));

// How algorithms multiply, in the order of the heuristic. Each takes so many times ZERO_FAKE_PRODUCT_MICROSECONDS.
enum Way : uint64_t {
  Plain,     // 3: each element in the order of k
  Refused,   // 0: when it is to be run
  Restless,  // 0: every second time it runs, an element has another bit
  Halves,    // 1: k in two halves, each summed apart
  Slow,      // 4: like Plain
  InAnyOrder // k in two halves, one of which is added to what the other has written: offered where that is wished for
};
constexpr uint64_t kWays = 6, kTimesAsLong[kWays] = {3, 0, 0, 1, 4, 0};
constexpr uint32_t kInPlaceReduction = 1;
uint32_t schemeOf(uint64_t way) { return way == Halves ? kApartReduction : way == InAnyOrder ? kInPlaceReduction : kNoReduction; }
constexpr uint64_t kMagic = 0x66616b65;

Layout &of(LayoutHandle handle) { return *reinterpret_cast<Layout *>(handle); }
Product &of(ProductHandle handle) { return *reinterpret_cast<Product *>(handle); }
Preference &of(PreferenceHandle handle) { return *reinterpret_cast<Preference *>(handle); }

BlasStatus refusal(const char *function) { return fake::faultOf(function) == Fault::None ? 0 : kInternalError; }

template <typename Value> BlasStatus set(Value &to, const void *value, size_t bytes) {
  if (bytes != sizeof(to)) return kInvalidValue;
  std::memcpy(&to, value, bytes);
  return 0;
}

std::byte *element(const Layout &layout, std::byte *matrix, int64_t batch, uint64_t row, uint64_t column) {
  return matrix + (static_cast<uint64_t>(batch * layout.stride) + column * static_cast<uint64_t>(layout.ld) + row) * layout.size();
}

// The matrix as `k` vectors of `count` numbers, one after another: its rows, or its columns.
std::vector<float> operand(const Layout &layout, std::byte *matrix, int64_t batch, uint64_t count, uint64_t k, bool ofColumns) {
  std::vector<float> vectors(k * count);
  for (uint64_t l = 0, at = 0; l < k; ++l)
    for (uint64_t i = 0; i < count; ++i, ++at)
      vectors[at] = widened(ofColumns ? element(layout, matrix, batch, i, l) : element(layout, matrix, batch, l, i), layout.type);
  return vectors;
}

bool fits(const Product &product, const Layout &a, const Layout &b, const Layout &c, uint64_t &m, uint64_t &n, uint64_t &k) {
  bool ta = product.transA == kTransposed, tb = product.transB == kTransposed;
  m = ta ? a.columns : a.rows, k = ta ? a.rows : a.columns, n = tb ? b.rows : b.columns;
  return k == (tb ? b.columns : b.rows) && m == c.rows && n == c.columns && a.type == b.type && (c.type == a.type || c.type == kReal32) &&
         a.batch == b.batch && b.batch == c.batch && a.ld >= int64_t(a.rows) && b.ld >= int64_t(b.rows) && c.ld >= int64_t(c.rows);
}

} // namespace

extern "C" {

const char *cublasLtGetStatusName(BlasStatus status) {
  switch (status) {
  case kInvalidValue:
    return "CUBLAS_STATUS_INVALID_VALUE";
  case kExecutionFailed:
    return "CUBLAS_STATUS_EXECUTION_FAILED";
  case kInternalError:
    return "CUBLAS_STATUS_INTERNAL_ERROR";
  case kNotSupported:
    return "CUBLAS_STATUS_NOT_SUPPORTED";
  default:
    return nullptr;
  }
}

size_t cublasLtGetVersion() { return fake::setting("ZERO_FAKE_BLAS_VERSION", 130000); }
BlasStatus cublasLtCreate(BlasHandle *handle) {
  *handle = reinterpret_cast<BlasHandle>(1);
  return refusal("cublasLtCreate");
}
BlasStatus cublasLtDestroy(BlasHandle) { return refusal("cublasLtDestroy"); }

BlasStatus cublasLtMatmulDescCreate(ProductHandle *product, int compute, int scale) {
  if (BlasStatus status = refusal("cublasLtMatmulDescCreate")) return status;
  if ((compute != kComputeIn32 && compute != kComputeInTf32) || scale != kReal32) return kInvalidValue;
  *product = reinterpret_cast<ProductHandle>(new Product{compute});
  return 0;
}
BlasStatus cublasLtMatmulDescDestroy(ProductHandle product) {
  delete &of(product);
  return refusal("cublasLtMatmulDescDestroy");
}
BlasStatus cublasLtMatmulDescSetAttribute(ProductHandle product, int attribute, const void *value, size_t bytes) {
  if (BlasStatus status = refusal("cublasLtMatmulDescSetAttribute")) return status;
  if (attribute == kEpilogue) return set(of(product).epilogue, value, bytes);
  if (attribute == kBiasPointer) return set(of(product).vector, value, bytes);
  if (attribute == kAuxPointer) return set(of(product).aux, value, bytes);
  if (attribute == kAuxLd) return set(of(product).auxLd, value, bytes);
  if (attribute != kTransposesA && attribute != kTransposesB) return kInvalidValue;
  return set(attribute == kTransposesA ? of(product).transA : of(product).transB, value, bytes);
}

BlasStatus cublasLtMatrixLayoutCreate(LayoutHandle *layout, int type, uint64_t rows, uint64_t columns, int64_t ld) {
  if (BlasStatus status = refusal("cublasLtMatrixLayoutCreate")) return status;
  *layout = reinterpret_cast<LayoutHandle>(new Layout{type, rows, columns, ld});
  return 0;
}
BlasStatus cublasLtMatrixLayoutDestroy(LayoutHandle layout) {
  delete &of(layout);
  return refusal("cublasLtMatrixLayoutDestroy");
}
BlasStatus cublasLtMatrixLayoutSetAttribute(LayoutHandle layout, int attribute, const void *value, size_t bytes) {
  if (BlasStatus status = refusal("cublasLtMatrixLayoutSetAttribute")) return status;
  if (attribute == kBatchCount) return set(of(layout).batch, value, bytes);
  return attribute == kBatchStride ? set(of(layout).stride, value, bytes) : kInvalidValue;
}

BlasStatus cublasLtMatmulPreferenceCreate(PreferenceHandle *preference) {
  if (BlasStatus status = refusal("cublasLtMatmulPreferenceCreate")) return status;
  *preference = reinterpret_cast<PreferenceHandle>(new Preference);
  return 0;
}
BlasStatus cublasLtMatmulPreferenceDestroy(PreferenceHandle preference) {
  delete &of(preference);
  return refusal("cublasLtMatmulPreferenceDestroy");
}
BlasStatus cublasLtMatmulPreferenceSetAttribute(PreferenceHandle preference, int attribute, const void *value, size_t bytes) {
  if (BlasStatus status = refusal("cublasLtMatmulPreferenceSetAttribute")) return status;
  if (attribute == kMaxWorkspace) return set(of(preference).workspace, value, bytes);
  if (attribute == kReductionSchemes) return set(of(preference).schemes, value, bytes);
  if (attribute < kAlignmentA || attribute > kAlignmentA + 3) return kInvalidValue;
  return set(of(preference).alignment[attribute - kAlignmentA], value, bytes);
}

BlasStatus cublasLtMatmulAlgoGetHeuristic(BlasHandle, ProductHandle product, LayoutHandle a, LayoutHandle b, LayoutHandle c, LayoutHandle,
                                          PreferenceHandle preference, int wanted, Heuristic *results, int *found) {
  if (BlasStatus status = refusal("cublasLtMatmulAlgoGetHeuristic")) return status;
  Chosen chosen{kMagic, 0, 0, 0, {}, Plain, 0};
  *found = 0;
  if (!fits(of(product), of(a), of(b), of(c), chosen.m, chosen.n, chosen.k)) return kInvalidValue;
  if (!of(product).good(chosen.m, of(c).batch)) return kInvalidValue;
  bool refused = of(product).epilogue != kNoEpilogue && fake::setting("ZERO_FAKE_NO_EPILOGUES", 0);
  if (of(preference).workspace < kNeeds || wanted < 1 || refused) return kNotSupported;
  std::memcpy(chosen.alignment, of(preference).alignment, sizeof(chosen.alignment));
  for (; chosen.way < kWays && *found < wanted; ++chosen.way) {
    if ((schemeOf(chosen.way) & of(preference).schemes) != schemeOf(chosen.way)) continue;
    Heuristic &next = results[(*found)++];
    std::memcpy(&next.algorithm, &chosen, sizeof(chosen));
    next.workspaceBytes = kNeeds, next.status = 0;
  }
  if (*found < wanted) results[(*found)++].status = kNotSupported; // one that it has found not to fit
  return 0;
}

BlasStatus cublasLtMatmulAlgoCheck(BlasHandle, ProductHandle product, LayoutHandle a, LayoutHandle b, LayoutHandle c, LayoutHandle,
                                   const Algorithm *algorithm, Heuristic *result) {
  if (BlasStatus status = refusal("cublasLtMatmulAlgoCheck")) return status;
  Chosen chosen{};
  std::memcpy(&chosen, algorithm, sizeof(chosen));
  uint64_t m, n, k;
  if (!fits(of(product), of(a), of(b), of(c), m, n, k) || chosen.magic != kMagic || chosen.way >= kWays) return kInvalidValue;
  if (m != chosen.m || n != chosen.n || k != chosen.k) return kNotSupported;
  result->algorithm = *algorithm, result->workspaceBytes = kNeeds, result->status = 0;
  return 0;
}

BlasStatus cublasLtMatmulAlgoConfigGetAttribute(const Algorithm *algorithm, int attribute, void *value, size_t bytes, size_t *written) {
  if (BlasStatus status = refusal("cublasLtMatmulAlgoConfigGetAttribute")) return status;
  Chosen chosen{};
  std::memcpy(&chosen, algorithm, sizeof(chosen));
  uint32_t scheme = schemeOf(chosen.way), splits = scheme == kNoReduction ? 1 : 2;
  if (bytes != sizeof(uint32_t) || (attribute != kSplits && attribute != kReductionScheme)) return kInvalidValue;
  std::memcpy(value, attribute == kSplits ? &splits : &scheme, bytes);
  *written = bytes;
  return 0;
}

// By columns: D = alpha · op(A) · op(B) + beta · C, or what an epilogue makes of that.
BlasStatus cublasLtMatmul(BlasHandle, ProductHandle product, const void *alpha, const void *a, LayoutHandle layoutA, const void *b,
                          LayoutHandle layoutB, const void *beta, const void *c, LayoutHandle layoutC, void *d, LayoutHandle,
                          const Algorithm *algorithm, void *workspace, size_t workspaceBytes, StreamHandle stream) {
  Fault fault = fake::faultOf("cublasLtMatmul");
  if (fault == Fault::Now) return kInternalError;
  Chosen chosen{};
  std::memcpy(&chosen, algorithm, sizeof(chosen));
  Layout la = of(layoutA), lb = of(layoutB), lc = of(layoutC);
  bool ta = of(product).transA == kTransposed, tb = of(product).transB == kTransposed;
  uint64_t m, n, k;
  if (!fits(of(product), la, lb, lc, m, n, k) || chosen.magic != kMagic || m != chosen.m || n != chosen.n || k != chosen.k || c != d)
    return kInvalidValue;
  auto place = [](const void *at, uint64_t bytes) { return Memory::get().reach(reinterpret_cast<uint64_t>(at), bytes); };
  const void *operands[] = {a, b, c, d};
  for (int i = 0; i < 4; ++i)
    if (reinterpret_cast<uint64_t>(operands[i]) % chosen.alignment[i]) return kInvalidValue;
  std::byte *pa = place(a, la.bytes()), *pb = place(b, lb.bytes()), *pd = place(d, lc.bytes()), *room = place(workspace, workspaceBytes);
  if (!pa || !pb || !pd || !room || workspaceBytes < kNeeds) return kInvalidValue;
  if (chosen.way == Refused) return kNotSupported;
  Product p = of(product);
  Layout lx = lc; // of aux
  lx.ld = p.auxLd;
  std::byte *vector = p.bias() ? place(p.vector, m * lc.size()) : nullptr;
  std::byte *aux = p.gelu() ? place(p.aux, lx.bytes()) : nullptr;
  if (!p.good(m, lc.batch) || (p.bias() && !vector) || (p.gelu() && !aux)) return kInvalidValue;
  for (const void *beside : {p.vector, p.aux})
    if (reinterpret_cast<uint64_t>(beside) % chosen.alignment[3]) return kInvalidValue;
  float by = *static_cast<const float *>(alpha), plus = *static_cast<const float *>(beta);
  static std::atomic<uint64_t> runs{0};
  bool otherBit = chosen.way == Restless && runs.fetch_add(1) % 2;
  static const uint64_t microseconds = fake::setting("ZERO_FAKE_PRODUCT_MICROSECONDS", 0);
  bool tf32 = of(product).compute == kComputeInTf32 && la.type == kReal32;
  auto run = [=] {
    fake::pretend(std::chrono::microseconds(microseconds * kTimesAsLong[chosen.way]));
    std::memset(room, 0x5a, kNeeds);
    for (int64_t batch = 0; batch < lc.batch; ++batch) {
      // The elements of a column of D side by side, each in the order of k.
      std::vector<float> columnsA = operand(la, pa, batch, m, k, !ta), rowsB = operand(lb, pb, batch, n, k, tb), sums(m), first(m);
      if (tf32) columnsA = fake::inTf32(std::move(columnsA)), rowsB = fake::inTf32(std::move(rowsB));
      for (uint64_t j = 0; j < n; ++j) {
        std::ranges::fill(sums, 0.0f);
        std::ranges::fill(first, 0.0f);
        for (uint64_t l = 0; l < k; ++l) {
          if (chosen.way == Halves && l == (k + 1) / 2) std::swap(first, sums);
          const float *column = &columnsA[l * m], factor = rowsB[l * n + j];
          for (uint64_t i = 0; i < m; ++i) sums[i] += column[i] * factor;
        }
        for (uint64_t i = 0; i < m; ++i) {
          sums[i] += first[i];
          std::byte *to = element(lc, pd, batch, i, j), *beside = aux ? element(lx, aux, 0, i, j) : nullptr;
          float value = by * sums[i] + (plus != 0 ? plus * widened(to, lc.type) : 0);
          if (p.bias()) value += widened(vector + i * lc.size(), lc.type);
          if (p.epilogue == kGelu) fake::round(beside, lc.type, value), value = fake::gelu(value);
          if (p.epilogue == kGeluGradient) value *= fake::geluSlope(widened(beside, lc.type));
          fake::round(to, lc.type, value);
        }
      }
    }
    if (otherBit) *pd ^= std::byte{1};
    return 0;
  };
  auto *on = reinterpret_cast<fake::Stream *>(stream);
  if (fault == Fault::Later)
    on->put([] { return 719; });
  else
    on->put(run);
  return 0;
}

} // extern "C"
