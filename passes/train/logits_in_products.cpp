//===- logits_in_products.cpp - nn-logits-in-products ------------------------------------------------------===//
#include "passes/train/Passes.h"
#include "passes/train/epilogues.h"

using namespace mlir;

namespace zero::train {
#define GEN_PASS_DEF_LOGITSINPRODUCTSPASS
#include "passes/train/Passes.h.inc"

namespace {

struct LogitsInProducts : impl::LogitsInProductsPassBase<LogitsInProducts> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (function.getBody().empty()) return;
    for (auto loss : llvm::make_early_inc_range(function.getBody().front().getOps<nn::CrossEntropyOp>())) take(loss);
  }

  void take(nn::CrossEntropyOp loss) {
    Value logits = nn::viewed(loss.getLogits());
    // Of padded classes the loss sees none (nn-pad-classes).
    if (auto padded = logits.getDefiningOp<nn::SelectOp>()) logits = padded.getOnTrue();
    auto [product, bias, sum] = biasedProductOf(logits);
    if (!product) return;
    OpBuilder builder(sum);
    nn::Build b{builder, product.getLoc()};
    auto made = builder.create<nn::MatMulEpilogueOp>(b.loc, product.getType(), Type(), nn::Epilogue::bias, product.getLhs(),
                                                     product.getRhs(), bias, product.getTransposeLhs(), product.getTransposeRhs());
    sum->getResult(0).replaceAllUsesWith(b.reshape(made.getResult(), nn::typeOf(sum->getResult(0)).getShape()));
    eraseWithUnused(sum);
    ++taken;
  }
};

} // namespace
} // namespace zero::train
