//===- split_reductions.cpp - nn-split-reductions -----------------------------------------------------------===//
#include "compiler/codegen/classify.h"
#include "compiler/nn/build.h"
#include "passes/fuse/Passes.h"
#include "passes/fuse/access.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::fuse {
#define GEN_PASS_DEF_SPLITREDUCTIONSPASS
#include "passes/fuse/Passes.h.inc"

namespace {

struct SplitReductions : impl::SplitReductionsPassBase<SplitReductions> {
  using SplitReductionsPassBase::SplitReductionsPassBase;

  void runOnOperation() override {
    getOperation().walk([&](ReduceOp op) {
      int64_t results = elementsOf(op), terms = elementsOf(op.getInput()) / std::max<int64_t>(results, 1);
      if (codegen::reachOf(op) != codegen::Reach::Mixed || results >= most || terms < least) return;
      // Dimensions that follow each other to the last one.
      SmallVector<int64_t> before(op.getDims()), last;
      for (int64_t dim = typeOf(op.getInput()).getRank() - 1; !before.empty() && before.back() == dim; --dim) {
        last.insert(last.begin(), dim);
        before.pop_back();
      }
      if (last.empty() || before.empty()) return;
      OpBuilder builder(op);
      Build b{builder, op.getLoc()};
      op.replaceAllUsesWith(b.reduce(op.getKind(), b.reduce(op.getKind(), op.getInput(), last), before));
      op.erase();
      ++split;
    });
  }
};

} // namespace
} // namespace zero::fuse
