//===- gelu_in_products.cpp - nn-gelu-in-products ----------------------------------------------------------===//
#include "compiler/nn/rows.h"
#include "passes/train/Passes.h"

using namespace mlir;

namespace zero::train {
#define GEN_PASS_DEF_GELUINPRODUCTSPASS
#include "passes/train/Passes.h.inc"

namespace {

// Elements that rows of aux are multiples of.
constexpr int64_t kColumns = 8;

/// The product that `v` has the elements of, if nobody else reads it and a library can make more of it.
nn::MatMulOp productOf(Value v) {
  for (; v.hasOneUse() && v.getDefiningOp<nn::ReshapeOp>(); v = v.getDefiningOp()->getOperand(0)) {
  }
  auto product = v.getDefiningOp<nn::MatMulOp>();
  bool plain = product && v.hasOneUse() && !product.getOnto() && !product.getRecompute() && !product.getKeepLhs();
  return plain && product.getType().getRank() == 2 && product.getType().getDimSize(1) % kColumns == 0 ? product : nn::MatMulOp();
}

/// The vector that is repeated for every row of so many columns; or null.
Value rowOf(Value v, int64_t columns) {
  auto repeated = v.getDefiningOp<nn::BroadcastOp>();
  bool isRow = repeated && nn::typeOf(repeated.getInput()).getShape() == ArrayRef(columns) &&
               repeated.getDims().back() == nn::typeOf(v).getRank() - 1 && nn::typeOf(v).getShape().back() == columns;
  return isRow ? repeated.getInput() : Value();
}

struct GeluInProducts : impl::GeluInProductsPassBase<GeluInProducts> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (function.getBody().empty()) return;
    Block &block = function.getBody().front();
    for (auto gelu : llvm::make_early_inc_range(block.getOps<nn::GeluOp>()))
      if (gelu.getKind() == nn::GeluKind::tanh) takeGelu(gelu);
    for (auto gradient : llvm::make_early_inc_range(block.getOps<nn::GeluGradOp>()))
      if (gradient.getKind() == nn::GeluKind::tanh) takeGradient(gradient);
  }

  void takeGelu(nn::GeluOp gelu) {
    auto sum = nn::viewed(gelu.getInput()).getDefiningOp<nn::AddOp>();
    if (!sum) return;
    nn::MatMulOp product;
    Value bias;
    for (unsigned i = 0; i < 2 && !bias; ++i)
      if ((product = productOf(sum->getOperand(i)))) bias = rowOf(sum->getOperand(1 - i), product.getType().getDimSize(1));
    if (!bias) return;
    OpBuilder builder(sum);
    nn::Build b{builder, gelu.getLoc()};
    nn::MatMulEpilogueOp made = make(b, nn::Epilogue::gelu, product, bias);
    sum.replaceAllUsesWith(b.reshape(made.getAux(), nn::typeOf(sum).getShape()));
    gelu.replaceAllUsesWith(b.reshape(made.getResult(), nn::typeOf(gelu).getShape()));
    erase(gelu);
    erase(sum);
  }

  void takeGradient(nn::GeluGradOp gradient) {
    Value aux = nn::viewed(gradient.getInput());
    auto forward = aux.getDefiningOp<nn::MatMulEpilogueOp>();
    nn::MatMulOp product = productOf(gradient.getOfResult());
    if (!forward || aux != forward.getAux() || !product || product.getType() != aux.getType()) return;
    OpBuilder builder(gradient);
    nn::Build b{builder, gradient.getLoc()};
    Value made = make(b, nn::Epilogue::gelu_grad, product, aux).getResult();
    gradient.replaceAllUsesWith(b.reshape(made, nn::typeOf(gradient).getShape()));
    erase(gradient);
  }

  nn::MatMulEpilogueOp make(nn::Build &b, nn::Epilogue epilogue, nn::MatMulOp product, Value other) {
    ++taken;
    Type type = product.getType();
    return b.b.create<nn::MatMulEpilogueOp>(b.loc, type, epilogue == nn::Epilogue::gelu ? type : Type(), epilogue, product.getLhs(),
                                            product.getRhs(), other, product.getTransposeLhs(), product.getTransposeRhs());
  }

  /// With what nobody reads any more.
  static void erase(Operation *op) {
    SmallVector<Operation *> unused{op};
    while (!unused.empty()) {
      Operation *next = unused.pop_back_val();
      SmallVector<Value> operands(next->getOperands());
      next->erase();
      for (Value operand : operands)
        if (Operation *from = operand.getDefiningOp(); from && isOpTriviallyDead(from) && !llvm::is_contained(unused, from))
          unused.push_back(from);
    }
  }
};

} // namespace
} // namespace zero::train
