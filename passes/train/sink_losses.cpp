//===- sink_losses.cpp - nn-sink-losses ----------------------------------------------------------------===//
#include "compiler/nn/rows.h"
#include "passes/train/Passes.h"
#include "passes/train/backward.h"
#include <set>

using namespace mlir;

namespace zero::train {
#define GEN_PASS_DEF_SINKLOSSESPASS
#include "passes/train/Passes.h.inc"

namespace {

struct SinkLosses : impl::SinkLossesPassBase<SinkLosses> {
  void runOnOperation() override {
    auto train = getOperation().lookupSymbol<func::FuncOp>("train");
    Operation *loss = train ? lossOf(train) : nullptr;
    if (!loss) return;
    forward.clear(), terms.clear(), total.clear(), position.clear(), added.clear(), sunk.clear();
    for (Operation &op : train.getBody().front()) {
      forward.push_back(&op);
      position[&op] = forward.size();
      if (&op == loss) break;
    }
    if (!findTotal()) return;
    Operation *last = nullptr; // of the terms that were moved
    for (Operation *term : llvm::reverse(terms)) {
      if (sunk.contains(term)) continue;
      SmallVector<Operation *> cone = coneOf(term);
      Operation *anchor = firstReader(cone);
      if (!anchor) continue;
      for (Operation *op : llvm::reverse(cone)) op->moveBefore(anchor);
      sunk.insert(cone.begin(), cone.end());
      if (!last || last->isBeforeInBlock(term)) last = term;
      ++moved;
    }
    if (last)
      for (Operation *op : llvm::reverse(total)) op->moveAfter(last);
  }

private:
  bool isForward(Operation *op) const { return position.contains(op); }

  /// The terms, and what adds them up. False if there are not several, or backward reads their sum. A term is a sum over rows, or what is
  /// made of what such an operation gives beside the sum, as the mean over all labels is of the logarithms of a cross-entropy's sums.
  bool findTotal() {
    DenseSet<Value> sums, derived; // of terms; of anything that they give
    for (Operation *op : forward) {
      auto isIn = [&](const DenseSet<Value> &set) { return llvm::any_of(op->getOperands(), [&](Value v) { return set.contains(v); }); };
      bool adds = isIn(sums), term = false;
      for (OpResult v : op->getResults()) {
        bool sumsRows = nn::sumsRows(op, v.getResultNumber());
        term |= sumsRows && !adds;
        if (!adds && !sumsRows) continue;
        sums.insert(v);
        if (llvm::any_of(v.getUsers(), [&](Operation *user) { return !isForward(user) && !user->hasTrait<OpTrait::IsTerminator>(); }))
          return false;
      }
      if (term || isIn(derived)) derived.insert(op->result_begin(), op->result_end());
      if (adds) total.push_back(op);
    }
    added.insert(total.begin(), total.end());
    for (Operation *op : forward)
      if (!added.contains(op) && llvm::any_of(op->getResults(), [&](Value v) { return derived.contains(v); }) &&
          llvm::any_of(op->getUsers(), [&](Operation *user) { return added.contains(user); }))
        terms.push_back(op);
    return terms.size() > 1;
  }

  /// A term and what forward makes for nothing else, from the last to the first.
  SmallVector<Operation *> coneOf(Operation *term) {
    SmallVector<Operation *> cone{term};
    DenseSet<Operation *> inside{term};
    DenseSet<Operation *> seen;
    // Operands stand before what reads them: the latest first.
    auto later = [&](Operation *a, Operation *b) { return position.lookup(a) > position.lookup(b); };
    std::set<Operation *, decltype(later)> work(later);
    auto offer = [&](Operation *op) {
      for (Value v : op->getOperands())
        if (Operation *from = v.getDefiningOp(); from && seen.insert(from).second) work.insert(from);
    };
    offer(term);
    while (!work.empty()) {
      Operation *op = *work.begin();
      work.erase(work.begin());
      bool alone =
          llvm::all_of(op->getUsers(), [&](Operation *user) { return !isForward(user) || inside.contains(user) || added.contains(user); });
      if (!alone) continue;
      inside.insert(op);
      cone.push_back(op);
      offer(op);
    }
    return cone;
  }

  /// The first operation of backward, or of a term that was moved there, that reads something of these. Null if none does, or if something
  /// that stays in forward reads it too: a term may read what another one gives beside its sum.
  Operation *firstReader(ArrayRef<Operation *> cone) const {
    Operation *first = nullptr;
    DenseSet<Operation *> inside(cone.begin(), cone.end());
    for (Operation *op : cone)
      for (Operation *user : op->getUsers()) {
        if (inside.contains(user) || added.contains(user)) continue;
        if (isForward(user) && !sunk.contains(user)) return nullptr;
        if (!first || user->isBeforeInBlock(first)) first = user;
      }
    return first;
  }

  SmallVector<Operation *> forward, terms, total;
  DenseMap<Operation *, size_t> position;
  DenseSet<Operation *> added, sunk; // what adds the terms up, what was moved
};

} // namespace
} // namespace zero::train
