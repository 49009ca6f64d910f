//===- separate_sums.cpp - what is added in place becomes a sum ---------------------------------------------===//
#include "passes/raise/separate_sums.h"
#include "compiler/nn/build.h"
#include "passes/raise/choices.h"
#include "passes/raise/match.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::raise {
namespace {

/// With what only it has read: that would count as a use.
void eraseUnread(Operation *op) {
  SmallVector<Operation *> unread{op};
  while (!unread.empty()) {
    op = unread.pop_back_val();
    SetVector<Operation *> from;
    for (Value v : op->getOperands())
      if (Operation *made = v.getDefiningOp()) from.insert(made);
    op->erase();
    for (Operation *made : from)
      if (isOpTriviallyDead(made)) unread.push_back(made);
  }
}

/// The sum may lie behind movement.
void separate(SelectOp select, Choices &choices) {
  Value rest = select.getOnFalse(), v = select.getOnTrue();
  if (!perRow(select.getCondition()) || splatOf(rest)) return;
  Indices all = choices.anywhere(shapeOf(v)), at = all;
  SmallVector<Operation *> moved;
  while (!v.getDefiningOp<AddOp>()) {
    Operation *op = v.getDefiningOp();
    if (!op || moved.size() > 8 || !choices.movement.follow(v, at)) return;
    moved.push_back(op);
  }
  auto added = v.getDefiningOp<AddOp>();
  // What a mask before this one has added to y is put beside it.
  Value base = rest, before;
  for (int side : {0, 1}) {
    Value y = added->getOperand(side), x = added->getOperand(1 - side);
    auto from = choices.origin(y, at);
    if (from != choices.origin(base, all)) {
      auto earlier = rest.getDefiningOp<AddOp>();
      if (!earlier || from != choices.origin(earlier.getLhs(), all)) continue;
      base = earlier.getLhs(), before = earlier.getRhs();
    }
    OpBuilder b(select);
    Build here{b, select.getLoc()};
    for (Operation *op : llvm::reverse(moved)) {
      SmallVector<Value> operands(op->getOperands());
      operands[0] = x;
      x = b.create(OperationState(op->getLoc(), op->getName(), operands, op->getResultTypes(), op->getAttrs()))->getResult(0);
    }
    // In this order, which the next mask expects.
    Value part = here.select(select.getCondition(), x, before ? before : here.like(x, 0));
    Value sum = b.create<AddOp>(select.getLoc(), base, part);
    select.replaceAllUsesWith(sum);
    eraseUnread(select);
    return;
  }
}

} // namespace

void separateSums(func::FuncOp function) {
  Choices choices;
  SmallVector<SelectOp> selects(function.getOps<SelectOp>());
  for (SelectOp select : selects) separate(select, choices);
}

} // namespace zero::raise
