//===- sum_in_products.cpp - nn-sum-in-products --------------------------------------------------------===//
#include "compiler/nn/library/sums.h"
#include "mlir/IR/TypeUtilities.h"
#include "passes/fuse/Passes.h"
#include "passes/fuse/access.h"
#include <array>
#include <optional>

using namespace mlir;
using namespace zero::nn;

namespace zero::fuse {
#define GEN_PASS_DEF_SUMINPRODUCTSPASS
#include "passes/fuse/Passes.h.inc"

namespace {

/// The only operation that reads `v`, if it is an `Op`.
template <typename Op> Op onlyReader(Value v) { return v.hasOneUse() ? dyn_cast<Op>(*v.user_begin()) : Op(); }

/// Views and conversions that only `v` leads to, as far as they go.
Value followed(Value v) {
  while (v.hasOneUse() && isa<CastOp, ReshapeOp>(*v.user_begin())) v = v.user_begin()->getResult(0);
  return v;
}

/// k and columns of the matrix whose columns a kernel sums; none if it does anything else.
std::optional<std::array<int64_t, 2>> columnsSummedBy(func::FuncOp kernel) {
  if (kernel.getNumArguments() != 1 || kernel.getNumResults() != 1) return {};
  auto sum = onlyReader<ReduceOp>(followed(kernel.getArgument(0)));
  if (!sum || sum.getKind() != ReductionKind::sum || !onlyReader<func::ReturnOp>(followed(sum.getResult()))) return {};
  Reduction reduction = reductionOf(sum);
  if (reduction.kind != Reduction::Columns) return {};
  return std::array{reduction.whole / reduction.rest, reduction.rest};
}

struct SumInProducts : impl::SumInProductsPassBase<SumInProducts> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isExternal() || function->hasAttr(NnDialect::kKernelAttr)) continue;
      llvm::DenseSet<Operation *> taken; // products that sum something already
      for (auto launch : llvm::make_early_inc_range(function.getOps<LaunchOp>())) {
        if (launch->hasAttr(kInProduct)) continue; // met again where it is now
        if (auto shape = columnsSummedBy(symbols.lookup<func::FuncOp>(launch.getKernel()))) findProduct(launch, *shape, taken);
      }
    }
  }

  /// The launch moves after the product that is to make its result, with a mark; what hands that over follows it.
  void findProduct(LaunchOp launch, ArrayRef<int64_t> shape, llvm::DenseSet<Operation *> &taken) {
    Value sums = launch->getResult(0);
    for (MatMulOp product : productsSumming(launch)) {
      SmallVector<Operation *> handing;
      Value operand = product.getOperand(summedOperand(product, launch));
      if (taken.contains(product) || product.getOnto() || cast<RankedTensorType>(operand.getType()).getShape() != shape ||
          getElementTypeOrSelf(product.getType()) != getElementTypeOrSelf(sums.getType()) || isReadBefore(sums, product, handing))
        continue;
      launch->moveAfter(product);
      for (Operation *last = launch; Operation * op : handing) op->moveAfter(last), last = op;
      launch->setAttr(kInProduct, UnitAttr::get(&getContext()));
      taken.insert(product);
      ++spared;
      return;
    }
  }

  /// Whether anything before the product reads `v`, but for what only hands it over as a gradient: this is added to `handing`.
  static bool isReadBefore(Value v, MatMulOp product, SmallVectorImpl<Operation *> &handing) {
    for (Operation *user : v.getUsers()) {
      if (!user->isBeforeInBlock(product)) continue;
      if (!isa<GradientOp, ReshapeOp>(user)) return true;
      handing.push_back(user);
      for (Value view : user->getResults())
        if (isReadBefore(view, product, handing)) return true;
    }
    return false;
  }
};

} // namespace
} // namespace zero::fuse
