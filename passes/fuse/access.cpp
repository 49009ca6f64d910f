//===- access.cpp - what operations are to fusion, and how values reach their users --------------------===//
#include "passes/fuse/access.h"
#include "compiler/codegen/classify.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::fuse {
namespace {

ArrayRef<int64_t> shapeOf(Value v) { return cast<RankedTensorType>(v.getType()).getShape(); }

/// Would be free, but a library call wants it in memory.
bool isKept(Operation *op) { return !isa<ReshapeOp>(op) && llvm::any_of(op->getResults(), leavesKernels); }

/// Repetition along new last dimensions only: element i of the operand is row i of the result.
bool repeatsRows(BroadcastOp op) {
  int64_t columns = elementsOf(op.getResult()) / elementsOf(op.getInput());
  auto from = shapeOf(op.getInput()), to = shapeOf(op.getResult());
  int64_t fromStride = 1, toStride = 1;
  for (int64_t i = int64_t(from.size()) - 1, d = int64_t(to.size()) - 1; i >= 0; --i) {
    for (; d > op.getDims()[i]; --d) toStride *= to[d];
    if (from[i] > 1 && toStride != fromStride * columns) return false;
    fromStride *= from[i];
  }
  return true;
}

} // namespace

int64_t elementsOf(Value v) { return cast<RankedTensorType>(v.getType()).getNumElements(); }

bool isBarrier(Operation *op) {
  if (auto constant = dyn_cast<ConstantOp>(op)) return !constant.isFree(); // several numbers
  return !isa<PointwiseOpInterface, IndexedOpInterface>(op) && !op->hasTrait<Accumulates>();
}

bool isFree(Operation *op) {
  if (isa<ReshapeOp>(op)) return true;
  auto indexed = dyn_cast<IndexedOpInterface>(op);
  return indexed && indexed.isFree() && !isKept(op);
}

bool isMovement(Operation *op) { return isa<IndexedOpInterface>(op) && !isa<ReshapeOp>(op); }

bool movesLast(Operation *op) {
  auto transpose = dyn_cast<TransposeOp>(op);
  if (!transpose) return false;
  auto shape = shapeOf(transpose.getInput());
  auto last = [&](auto dims) { // the last that has several elements
    int64_t found = -1;
    for (int64_t d : dims)
      if (shape[d] > 1) found = d;
    return found;
  };
  return last(transpose.getPerm()) != last(llvm::seq<int64_t>(0, shape.size()));
}

bool isExpensive(Operation *op) {
  auto formula = dyn_cast<PointwiseOpInterface>(op);
  return formula ? sizeOf(formula).transcendentals > 0 : op->hasTrait<Draws>();
}

unsigned workOf(Operation *op) {
  if (auto formula = dyn_cast<PointwiseOpInterface>(op)) return sizeOf(formula).work();
  if (auto indexed = dyn_cast<IndexedOpInterface>(op)) return indexed.getWork();
  return 1;
}

size_t furtherReads(Operation *op) {
  llvm::SmallDenseSet<Value, 4> distinct(op->operand_begin(), op->operand_end());
  return std::max<size_t>(distinct.size(), 1) - 1;
}

bool leavesKernels(Value v) {
  for (SmallVector<Value> work{v}; !work.empty();)
    for (Operation *user : work.pop_back_val().getUsers()) {
      if (isa<ReshapeOp>(user))
        work.push_back(user->getResult(0));
      else if (isBarrier(user))
        return true;
    }
  return false;
}

SmallVector<Use> usesOf(Value v) {
  SmallVector<Use> uses;
  struct Step {
    Value value;
    Access access;
    OpOperand *repetition;
  };
  SmallVector<Step> work{{v, Access(), nullptr}};
  while (!work.empty()) {
    auto [value, access, repetition] = work.pop_back_val();
    for (OpOperand &operand : value.getUses()) {
      Operation *user = operand.getOwner();
      auto repeat = dyn_cast<BroadcastOp>(user);
      if (isa<ReshapeOp>(user)) {
        work.push_back({user->getResult(0), access, repetition});
      } else if (repeat && isFree(user)) {
        Access through = access;
        int64_t columns = elementsOf(repeat.getResult()) / elementsOf(repeat.getInput());
        if (columns > 1)
          through = access.kind == Access::Same && repeatsRows(repeat) ? Access{Access::Row, columns} : Access{Access::Other};
        work.push_back({repeat.getResult(), through, &operand});
      } else {
        uses.push_back({user, access, &operand, repetition});
      }
    }
  }
  return uses;
}

Reduction reductionOf(ReduceOp op) {
  Reduction::Kind kind = Reduction::Trivial;
  switch (codegen::reachOf(op)) {
  case codegen::Reach::Nothing:
    break;
  case codegen::Reach::Trailing:
    kind = Reduction::Rows;
    break;
  case codegen::Reach::Leading:
    kind = Reduction::Columns;
    break;
  case codegen::Reach::Mixed:
    kind = Reduction::Mixed;
    break;
  }
  return {kind, elementsOf(op.getInput()), elementsOf(op.getResult())};
}

} // namespace zero::fuse
