#include "runtime/device/cuda/products.h"
#include "runtime/base/error.h"
#include "runtime/plan/epilogue.h"
#include "runtime/plan/validate.h"
#include <algorithm>

namespace zero::runtime::cuda {
namespace {

int typeOf(plan::DType type) { return type == plan::F32 ? kReal32 : type == plan::BF16 ? kRealBf16 : kReal16; }

std::string nameOf(const MatMulShape &shape) {
  return "a product of " + shape.text() + (shape.batch > 1 ? ", " + std::to_string(shape.batch) + " of them," : "") + " in " +
         plan::DType_Name(shape.dtype) + plan::formOf(shape.epilogue).text;
}

// The library's number for it.
uint32_t numberOf(plan::MatMul::Epilogue epilogue) {
  switch (epilogue) {
  case plan::MatMul::BIAS:
    return kBias;
  case plan::MatMul::GELU:
    return kGelu;
  case plan::MatMul::GELU_GRADIENT:
    return kGeluGradient;
  default:
    return kNoEpilogue;
  }
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

// Whether it always adds in the same order, in f32.
bool addsInOrder(const Algorithm &algorithm, const std::string &what) {
  const BlasLt &blas = BlasLt::get();
  int32_t splits = 1;
  uint32_t scheme = kNoReduction;
  size_t written = 0;
  blas.require(blas.algorithmGet(&algorithm, kSplits, &splits, sizeof(splits), &written), what);
  blas.require(blas.algorithmGet(&algorithm, kReductionScheme, &scheme, sizeof(scheme), &written), what);
  return splits <= 1 || scheme == kNoReduction || scheme == kApartReduction;
}

} // namespace

Products::Products(const MeasuredDevice *measured, std::string source) : measured(measured), source(std::move(source)) {
  const BlasLt &blas = BlasLt::get();
  blas.require(blas.create(&handle), "cannot start cuBLASLt");
}

Products::~Products() {
  prepared.clear();
  BlasLt::get().destroy(handle);
}

Products::Prepared Products::describe(const ProductCall &call) {
  const BlasLt &blas = BlasLt::get();
  std::string what = "cannot prepare " + nameOf(call);
  if (call.batch > INT32_MAX) throw Error(what + ": cuBLASLt takes batches of up to " + std::to_string(INT32_MAX));
  auto u = [](int64_t value) { return static_cast<uint64_t>(value); };
  ProductHandle made{};
  blas.require(blas.productCreate(&made, call.tf32 ? kComputeInTf32 : kComputeIn32, kReal32), what);
  Prepared next{call, OwnedProduct(made, blas.productDestroy), {}, {}, {}, {}};
  auto set = [&](int attribute, auto value) { blas.require(blas.productSet(made, attribute, &value, sizeof(value)), what); };
  set(kTransposesA, int32_t(call.transB ? kTransposed : kNotTransposed));
  set(kTransposesB, int32_t(call.transA ? kTransposed : kNotTransposed));
  set(kEpilogue, numberOf(call.epilogue));
  plan::EpilogueForm epilogue = plan::formOf(call.epilogue);
  if (epilogue.readsBias) set(kBiasPointer, call.bias);
  if (epilogue.hasAux()) set(kAuxPointer, call.aux), set(kAuxLd, call.ldc);
  int type = typeOf(call.dtype);
  next.first = makeLayout(type, u(call.transB ? call.k : call.n), u(call.transB ? call.n : call.k), call.ldb, call.batch, call.strideB);
  next.second = makeLayout(type, u(call.transA ? call.m : call.k), u(call.transA ? call.k : call.m), call.lda, call.batch, call.strideA);
  next.result = makeLayout(typeOf(call.cDtype), u(call.n), u(call.m), call.ldc, call.batch, call.strideC);
  return next;
}

std::vector<Heuristic> Products::ask(const Prepared &of, int most) const {
  const BlasLt &blas = BlasLt::get();
  const ProductCall &call = of.call;
  std::string what = "cannot prepare " + nameOf(call);
  PreferenceHandle wish{};
  blas.require(blas.preferenceCreate(&wish), what);
  Owned<PreferenceHandle> preference(wish, blas.preferenceDestroy);
  auto prefer = [&](int attribute, auto value) { blas.require(blas.preferenceSet(wish, attribute, &value, sizeof(value)), what); };
  auto align = [&](int operand, Pointer at, int64_t stride, plan::DType type) {
    prefer(kAlignmentA + operand, alignmentOf(at, call.batch, stride * static_cast<int64_t>(plan::bytesOf(type))));
  };
  prefer(kMaxWorkspace, kWorkspaceBytes);
  prefer(kReductionSchemes, kNoReduction | kApartReduction);
  align(0, call.b, call.strideB, call.dtype);
  align(1, call.a, call.strideA, call.dtype);
  align(2, call.c, call.strideC, call.cDtype);
  align(3, call.c | call.bias | call.aux, call.strideC, call.cDtype); // what is written, and lies beside it
  std::vector<Heuristic> list(static_cast<size_t>(most));
  int found = 0;
  BlasStatus status = blas.heuristic(handle, of.product.get(), of.first.get(), of.second.get(), of.result.get(), of.result.get(), wish,
                                     most, list.data(), &found);
  if (status == kNotSupported) return {};
  blas.require(status, what);
  list.resize(static_cast<size_t>(std::clamp(found, 0, most)));
  return list;
}

// What a file says is taken only as the library itself understands it.
Algorithm Products::checked(const Prepared &of, const Algorithm &algorithm) const {
  const BlasLt &blas = BlasLt::get();
  std::string what = "'" + source + "' has an algorithm for " + nameOf(of.call) + " that cannot be taken";
  std::string advice = "; delete it, and measure again with --tune";
  Heuristic about{};
  BlasStatus status =
      blas.algorithmCheck(handle, of.product.get(), of.first.get(), of.second.get(), of.result.get(), of.result.get(), &algorithm, &about);
  if (status != 0) throw Error(what + ": " + blas.sentence(status) + advice);
  if (about.workspaceBytes > kWorkspaceBytes)
    throw Error(what + ": it needs " + std::to_string(about.workspaceBytes) + " bytes to work in, and there are " +
                std::to_string(kWorkspaceBytes) + advice);
  if (!addsInOrder(algorithm, what))
    throw Error(what + ": it adds parts of a sum in any order, and would give other bits each time" + advice);
  return algorithm;
}

size_t Products::prepare(const ProductCall &call) {
  Prepared next = describe(call);
  const MeasuredProduct *entry = nullptr;
  if (measured) {
    auto found = measured->products.find(keyOf(call));
    if (found != measured->products.end()) entry = &found->second;
  }
  if (entry) {
    next.algorithm = checked(next, entry->algorithm);
  } else {
    std::vector<Heuristic> best = ask(next, 1);
    std::string what = "cannot prepare " + nameOf(call);
    if (best.empty())
      throw Error(what + ": cuBLASLt has no algorithm for it that sums in one order" +
                  (call.epilogue == plan::MatMul::NONE ? "" : "; compile the plan with `zeroc --epilogues none`"));
    BlasLt::get().require(best[0].status, what);
    next.algorithm = best[0].algorithm;
    ++withoutEntry;
  }
  prepared.push_back(std::move(next));
  return prepared.size() - 1;
}

std::vector<Algorithm> Products::candidates(size_t product, int most) const {
  std::vector<Algorithm> list;
  for (const Heuristic &each : ask(prepared[product], most))
    if (each.status == 0 && addsInOrder(each.algorithm, "cannot ask cuBLASLt about an algorithm")) list.push_back(each.algorithm);
  return list;
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
