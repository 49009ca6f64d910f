//===- gelu_in_products.cpp - nn-gelu-in-products ----------------------------------------------------------===//
#include "passes/train/Passes.h"
#include "passes/train/epilogues.h"

using namespace mlir;

namespace zero::train {
#define GEN_PASS_DEF_GELUINPRODUCTSPASS
#include "passes/train/Passes.h.inc"

namespace {

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
    auto [product, bias, sum] = biasedProductOf(gelu.getInput());
    if (!product) return;
    OpBuilder builder(sum);
    nn::Build b{builder, gelu.getLoc()};
    nn::MatMulEpilogueOp made = make(b, nn::Epilogue::gelu, product, bias);
    sum->getResult(0).replaceAllUsesWith(b.reshape(made.getAux(), nn::typeOf(sum->getResult(0)).getShape()));
    gelu.replaceAllUsesWith(b.reshape(made.getResult(), nn::typeOf(gelu).getShape()));
    eraseWithUnused(gelu);
    eraseWithUnused(sum);
  }

  void takeGradient(nn::GeluGradOp gradient) {
    Value aux = nn::viewed(gradient.getInput());
    auto forward = aux.getDefiningOp<nn::MatMulEpilogueOp>();
    nn::MatMulOp product = plainProductOf(gradient.getOfResult());
    if (!forward || aux != forward.getAux() || !product || product.getType() != aux.getType()) return;
    OpBuilder builder(gradient);
    nn::Build b{builder, gradient.getLoc()};
    Value made = make(b, nn::Epilogue::gelu_grad, product, aux).getResult();
    gradient.replaceAllUsesWith(b.reshape(made, nn::typeOf(gradient).getShape()));
    eraseWithUnused(gradient);
  }

  nn::MatMulEpilogueOp make(nn::Build &b, nn::Epilogue epilogue, nn::MatMulOp product, Value other) {
    ++taken;
    Type type = product.getType();
    return b.b.create<nn::MatMulEpilogueOp>(b.loc, type, epilogue == nn::Epilogue::gelu ? type : Type(), epilogue, product.getLhs(),
                                            product.getRhs(), other, product.getTransposeLhs(), product.getTransposeRhs());
  }
};

} // namespace
} // namespace zero::train
