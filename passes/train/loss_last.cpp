//===- loss_last.cpp - nn-loss-last ----------------------------------------------------------------------===//
#include "compiler/nn/build.h"
#include "passes/train/Passes.h"
#include "passes/train/backward.h"

using namespace mlir;

namespace zero::train {
#define GEN_PASS_DEF_LOSSLASTPASS
#include "passes/train/Passes.h.inc"

namespace {

/// What it reads takes less than this part of all logits: a few numbers for each token.
constexpr uint64_t kSmall = 256;

struct LossLast : impl::LossLastPassBase<LossLast> {
  void runOnOperation() override {
    auto train = getOperation().lookupSymbol<func::FuncOp>("train");
    Operation *loss = train && keepsLargeLogits(getOperation()) ? lossOf(train) : nullptr;
    if (!loss) return;
    Operation *terminator = train.getBody().front().getTerminator(), *first = terminator; // of what has moved
    auto logits = uint64_t(cast<IntegerAttr>(getOperation()->getAttrOfType<ArrayAttr>(kKeptLogits)[0]).getInt());
    auto isSmall = [&](Value v) { return nn::bytesOf(nn::typeOf(v)) * kSmall <= logits; };
    auto isLast = [&](Operation *user) { return user == terminator || !user->isBeforeInBlock(first); };
    for (Operation *op = loss; op;) {
      Operation *above = op->getPrevNode();
      if (op->getNumOperands() && llvm::all_of(op->getOperands(), isSmall) && !op->use_empty() && llvm::all_of(op->getUsers(), isLast)) {
        op->moveBefore(first);
        first = op;
        ++moved;
      }
      op = above;
    }
  }
};

} // namespace
} // namespace zero::train
