//===- decompose.cpp - nn-decompose --------------------------------------------------------------------===//
#include "compiler/nn/build.h"
#include "passes/train/Passes.h"

using namespace mlir;

namespace zero::train {
#define GEN_PASS_DEF_DECOMPOSEPASS
#include "passes/train/Passes.h.inc"

namespace {

struct Decompose : impl::DecomposePassBase<Decompose> {
  void runOnOperation() override {
    SmallVector<nn::CompositeOpInterface> all;
    getOperation().walk([&](nn::CompositeOpInterface op) { all.push_back(op); });
    for (nn::CompositeOpInterface op : all) {
      OpBuilder builder(op);
      nn::Build b{builder, op->getLoc()};
      op->replaceAllUsesWith(op.decompose(b));
      op->erase();
      ++rewritten;
    }
  }
};

} // namespace
} // namespace zero::train
