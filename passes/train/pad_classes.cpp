//===- pad_classes.cpp - nn-pad-classes ------------------------------------------------------------------===//
#include "passes/train/Passes.h"
#include "passes/train/logits.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;

namespace zero::train {
#define GEN_PASS_DEF_PADCLASSESPASS
#include "passes/train/Passes.h.inc"

namespace {

struct PadClasses : impl::PadClassesPassBase<PadClasses> {
  using PadClassesPassBase::PadClassesPassBase;

  void runOnOperation() override {
    if (multiple < 1) {
      getOperation().emitError() << "classes are padded to a multiple of one or more, not of " << int64_t(multiple);
      return signalPassFailure();
    }
    SmallVector<std::pair<nn::MatMulOp, Logits>> found;
    getOperation().walk([&](nn::MatMulOp product) {
      if (nn::typeOf(product).getRank() != 2 || product.getOnto()) return;
      auto logits = logitsOf(product);
      if (logits && wanted(nn::typeOf(product).getDimSize(1)) && logits->loss.smoothing() == 0 && nobodyElseReads(*logits))
        found.push_back({product, *logits});
    });
    for (auto &[product, logits] : found) pad(product, logits);
    padded += found.size();
  }

  /// What is added is an eighth of the classes at most.
  bool wanted(int64_t classes) const { return classes % multiple != 0 && classes >= 8 * multiple; }

  static bool nobodyElseReads(const Logits &logits) {
    return llvm::all_of(ArrayRef(logits.path).drop_back(), [](Operation *op) { return op->getResult(0).hasOneUse(); });
  }

  /// The product and what follows it once more, with more classes, which the loss takes for impossible.
  void pad(nn::MatMulOp product, const Logits &logits) {
    OpBuilder builder(product);
    nn::Build b{builder, product.getLoc()};
    int64_t classes = nn::typeOf(product).getDimSize(1), more = int64_t(llvm::alignTo(uint64_t(classes), uint64_t(multiple))) - classes;
    unsigned dim = product.getTransposeRhs() ? 0 : 1;
    SmallVector<int64_t> none(2, 0), high(2, 0);
    high[dim] = more;
    auto wide = builder.create<nn::MatMulOp>(b.loc, product.getLhs(), b.pad(product.getRhs(), none, high, none), product.getTransposeLhs(),
                                             product.getTransposeRhs(), product.getRecompute());
    wide.setKeepLhs(product.getKeepLhs());
    nn::CrossEntropyOp loss = logits.loss;
    builder.setInsertionPoint(loss);
    Value v = logits.from(builder, wide, [&](nn::Build of, Value numbers) { return of.pad(numbers, {0}, {more}, {0}); });
    nn::Build at{builder, loss.getLoc()};
    Value number = at.iota(nn::withElement(v, builder.getI32Type()), 1);
    Value exists = at.compare(nn::Predicate::lt, number, at.like(number, double(classes)));
    loss.getLogitsMutable().assign(at.select(exists, v, at.like(v, -INFINITY)));
    for (Operation *op : llvm::reverse(ArrayRef(logits.path).drop_back())) op->erase();
  }
};

} // namespace
} // namespace zero::train
