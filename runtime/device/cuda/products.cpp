#include "runtime/device/cuda/products.h"
#include "runtime/plan/error.h"
#include "runtime/plan/validate.h"
#include <algorithm>

namespace zero::runtime::cuda {
namespace {

int typeOf(plan::DType type) { return type == plan::F32 ? kReal32 : type == plan::BF16 ? kRealBf16 : kReal16; }

std::string nameOf(const MatMulShape &shape) {
  return "a product of " + std::to_string(shape.m) + " x " + std::to_string(shape.n) + " x " + std::to_string(shape.k) +
         (shape.batch > 1 ? ", " + std::to_string(shape.batch) + " of them," : "") + " in " + plan::DType_Name(shape.dtype);
}

OwnedLayout makeLayout(int type, uint64_t rows, uint64_t columns, int64_t ld, int64_t batch, int64_t stride) {
  const BlasLt &blas = BlasLt::get();
  LayoutHandle made{};
  blas.require(blas.layoutCreate(&made, type, rows, columns, ld), "cannot describe a matrix to cuBLASLt");
  OwnedLayout layout(made, blas.layoutDestroy);
  auto count = static_cast<int32_t>(batch);
  blas.require(blas.layoutSet(made, kBatchCount, &count, sizeof(count)), "cannot describe a batch of matrices to cuBLASLt");
  blas.require(blas.layoutSet(made, kBatchStride, &stride, sizeof(stride)), "cannot describe a batch of matrices to cuBLASLt");
  return layout;
}

// The largest power of two that divides the address and, of a batch, the distance between two of its matrices; 256 is what algorithms ask
// for at most.
uint32_t alignmentOf(Pointer at, int64_t batch, int64_t stride, plan::DType type) {
  uint64_t all = at | 256 | (batch > 1 ? static_cast<uint64_t>(stride) * plan::bytesOf(type) : 0);
  return static_cast<uint32_t>(all & ~(all - 1));
}

} // namespace

// cuBLASLt stores matrices by columns, the plan by rows: what the one calls a matrix is the other's transpose. So C = op(A) · op(B) is
// given as its transpose, op(B)ᵀ · op(A)ᵀ: operands and their sizes change places, and none is moved.
struct Products::Prepared {
  ProductCall call;
  OwnedProduct product;
  OwnedLayout first, second, result; // B, A and C
  Algorithm algorithm{};
};

Products::Products() {
  const BlasLt &blas = BlasLt::get();
  blas.require(blas.create(&handle), "cannot start cuBLASLt");
}

Products::~Products() {
  prepared.clear();
  BlasLt::get().destroy(handle);
}

size_t Products::prepare(const ProductCall &call) {
  const BlasLt &blas = BlasLt::get();
  std::string what = "cannot prepare " + nameOf(call);
  if (call.batch > INT32_MAX) throw Error(what + ": cuBLASLt takes batches of up to " + std::to_string(INT32_MAX));
  auto u = [](int64_t value) { return static_cast<uint64_t>(value); };
  ProductHandle made{};
  blas.require(blas.productCreate(&made, kComputeIn32, kReal32), what);
  Prepared next{call, OwnedProduct(made, blas.productDestroy), {}, {}, {}, {}};
  int32_t transFirst = call.transB ? kTransposed : kNotTransposed, transSecond = call.transA ? kTransposed : kNotTransposed;
  blas.require(blas.productSet(made, kTransposesA, &transFirst, sizeof(transFirst)), what);
  blas.require(blas.productSet(made, kTransposesB, &transSecond, sizeof(transSecond)), what);
  int type = typeOf(call.dtype);
  next.first = makeLayout(type, u(call.transB ? call.k : call.n), u(call.transB ? call.n : call.k), call.ldb, call.batch, call.strideB);
  next.second = makeLayout(type, u(call.transA ? call.m : call.k), u(call.transA ? call.k : call.m), call.lda, call.batch, call.strideA);
  next.result = makeLayout(typeOf(call.cDtype), u(call.n), u(call.m), call.ldc, call.batch, call.strideC);

  PreferenceHandle wish{};
  blas.require(blas.preferenceCreate(&wish), what);
  Owned<PreferenceHandle> preference(wish, blas.preferenceDestroy);
  auto prefer = [&](int attribute, auto value) { blas.require(blas.preferenceSet(wish, attribute, &value, sizeof(value)), what); };
  prefer(kMaxWorkspace, kWorkspaceBytes);
  prefer(kReductionSchemes, kNoReduction);
  uint32_t ofC = alignmentOf(call.c, call.batch, call.strideC, call.cDtype);
  prefer(kAlignmentA, alignmentOf(call.b, call.batch, call.strideB, call.dtype));
  prefer(kAlignmentA + 1, alignmentOf(call.a, call.batch, call.strideA, call.dtype));
  prefer(kAlignmentA + 2, ofC);
  prefer(kAlignmentA + 3, ofC);
  Heuristic best{};
  int found = 0;
  blas.require(
      blas.heuristic(handle, made, next.first.get(), next.second.get(), next.result.get(), next.result.get(), wish, 1, &best, &found),
      what);
  if (found == 0) throw Error(what + ": cuBLASLt has no algorithm for it that sums in one order");
  blas.require(best.status, what);
  next.algorithm = best.algorithm;
  prepared.push_back(std::move(next));
  return prepared.size() - 1;
}

void Products::run(size_t product, int lane, StreamHandle stream) {
  const BlasLt &blas = BlasLt::get();
  Prepared &p = prepared[product];
  const float alpha = 1, beta = p.call.accumulate ? 1 : 0;
  auto at = [](Pointer pointer) { return reinterpret_cast<void *>(pointer); };
  blas.require(blas.multiply(handle, p.product.get(), &alpha, at(p.call.b), p.first.get(), at(p.call.a), p.second.get(), &beta,
                             at(p.call.c), p.result.get(), at(p.call.c), p.result.get(), &p.algorithm, at(workspaces[lane].get()),
                             kWorkspaceBytes, stream),
               "cannot run " + nameOf(p.call));
}

void Products::addLane(int lane) {
  if (!workspaces[lane]) workspaces[lane] = allocateDevice(kWorkspaceBytes, "products to work in");
}

uint64_t Products::workspaceBytes() const {
  return kWorkspaceBytes *
         static_cast<uint64_t>(std::ranges::count_if(workspaces, [](const DeviceMemory &memory) { return bool(memory); }));
}

} // namespace zero::runtime::cuda
