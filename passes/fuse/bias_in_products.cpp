//===- bias_in_products.cpp - nn-bias-in-products ----------------------------------------------------------===//
#include "compiler/nn/build.h"
#include "compiler/nn/rows.h"
#include "passes/fuse/Passes.h"
#include <optional>

using namespace mlir;
using namespace zero::nn;

namespace zero::fuse {
#define GEN_PASS_DEF_BIASINPRODUCTSPASS
#include "passes/fuse/Passes.h.inc"

namespace {

enum class Side { Arguments, Results };

/// What `v` is in another shape, or as it lies in memory: what a kernel reads it widens, and what it has made it rounds.
Value rootOf(Value v, Side side) {
  for (Operation *op; (op = v.getDefiningOp()); v = op->getOperand(0)) {
    if (isa<ReshapeOp>(op)) continue;
    if (!isa<CastOp>(op)) break;
    auto narrow = dyn_cast<FloatType>(elementOf(op->getOperand(0))), wide = dyn_cast<FloatType>(elementOf(v));
    if (side == Side::Results) std::swap(narrow, wide);
    if (!narrow || !wide || narrow.getWidth() >= wide.getWidth()) break;
  }
  return v;
}

/// Arguments of a kernel that adds one of them, a vector, to each row of the other, and does nothing else.
struct BiasSum {
  unsigned matrix, bias;
};

std::optional<BiasSum> biasSumOf(func::FuncOp kernel) {
  ValueRange results = kernel.getBody().front().getTerminator()->getOperands();
  auto sum = rootOf(results[0], Side::Results).getDefiningOp<AddOp>();
  if (results.size() != 1 || kernel.getNumArguments() != 2 || !sum) return {};
  for (unsigned i = 0; i < 2; ++i) {
    auto repeated = rootOf(sum->getOperand(1 - i), Side::Arguments).getDefiningOp<BroadcastOp>();
    auto matrix = dyn_cast<BlockArgument>(rootOf(sum->getOperand(i), Side::Arguments));
    auto bias = repeated ? dyn_cast<BlockArgument>(rootOf(repeated.getInput(), Side::Arguments)) : BlockArgument();
    if (!matrix || !bias) continue;
    auto shape = typeOf(repeated).getShape();
    bool toRows = typeOf(repeated.getInput()).getRank() == 1 && repeated.getDims().back() == int64_t(shape.size()) - 1 &&
                  typeOf(matrix).getShape().back() == shape.back();
    if (toRows) return BiasSum{matrix.getArgNumber(), bias.getArgNumber()};
  }
  return {};
}

struct BiasInProducts : impl::BiasInProductsPassBase<BiasInProducts> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isExternal() || function->hasAttr(NnDialect::kKernelAttr)) continue;
      for (auto product : llvm::make_early_inc_range(function.getOps<MatMulOp>()))
        if (isPlain(product)) take(product, symbols);
    }
  }

  /// A product of two matrices, in their type, that is not added to anything.
  static bool isPlain(MatMulOp product) {
    return !product.getOnto() && product.getType().getRank() == 2 && elementOf(product.getLhs()) == elementOf(product);
  }

  /// Launches that read the product, all of them sums with the same bias; none if anything else reads it.
  SmallVector<LaunchOp> sumsWithBias(MatMulOp product, SymbolTable &symbols, Value &bias) {
    SmallVector<LaunchOp> sums;
    SmallVector<Value> work{product};
    while (!work.empty()) {
      Value v = work.pop_back_val();
      for (Operation *user : v.getUsers()) {
        if (isa<ReshapeOp>(user)) {
          work.push_back(user->getResult(0));
          continue;
        }
        auto launch = dyn_cast<LaunchOp>(user);
        auto sum = launch ? biasSumOf(symbols.lookup<func::FuncOp>(launch.getKernel())) : std::nullopt;
        if (!sum || launch.getInputs()[sum->matrix] != v) return {};
        Value added = viewed(launch.getInputs()[sum->bias]);
        bool fits = typeOf(added).getShape() == product.getType().getShape().take_back() && elementOf(added) == elementOf(product) &&
                    elementOf(launch.getResult(0)) == elementOf(product) && typeOf(v).getShape().back() == product.getType().getDimSize(1);
        if (!fits || (bias && bias != added)) return {};
        bias = added;
        sums.push_back(launch);
      }
    }
    return sums;
  }

  void take(MatMulOp product, SymbolTable &symbols) {
    Value bias;
    SmallVector<LaunchOp> sums = sumsWithBias(product, symbols, bias);
    if (sums.empty()) return;
    LaunchOp first = *llvm::min_element(sums, [](LaunchOp a, LaunchOp b) { return a->isBeforeInBlock(b); });
    OpBuilder builder(first);
    Build b{builder, product.getLoc()};
    Value made = builder
                     .create<MatMulEpilogueOp>(b.loc, product.getType(), Type(), Epilogue::bias, product.getLhs(), product.getRhs(), bias,
                                               product.getTransposeLhs(), product.getTransposeRhs())
                     .getResult();
    for (LaunchOp sum : sums) {
      Value result = sum.getResult(0);
      result.replaceAllUsesWith(b.reshape(made, typeOf(result).getShape()));
      Operation *read = sum.getInputs()[0].getDefiningOp(), *other = sum.getInputs()[1].getDefiningOp();
      sum.erase();
      for (Operation *view : {read, other})
        while (view && isa<ReshapeOp>(view) && view->use_empty()) {
          Operation *next = view->getOperand(0).getDefiningOp();
          view->erase();
          view = next;
        }
    }
    product.erase();
    ++spared;
  }
};

} // namespace
} // namespace zero::fuse
