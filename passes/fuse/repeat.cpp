//===- repeat.cpp - whether a value is computed again or kept ---------------------------------------------===//
#include "passes/fuse/former.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::fuse {

namespace {

/// How many of the tensors have about as many elements or more.
int large(ArrayRef<Value> tensors, int64_t elements) {
  return llvm::count_if(tensors, [&](Value t) { return elementsOf(t) * 4 > elements; });
}

} // namespace

const SmallVector<Value, 2> &Former::leavesOf(Value v) {
  v = viewed(v);
  if (auto it = leaves.find(v); it != leaves.end()) return it->second;
  SmallVector<Value, 2> found;
  Operation *op = v.getDefiningOp();
  bool isReduction = op && isa<ReduceOp>(op) && reductionOf(cast<ReduceOp>(op)).kind != Reduction::Trivial;
  if (!op || isBarrier(op) || (!isFree(op) && leavesKernels(v)) || isReduction || isa<ScatterAddOp, CumSumOp, GatherOp>(op)) {
    found.push_back(v);
  } else {
    for (Value operand : op->getOperands())
      for (Value leaf : SmallVector<Value, 2>(leavesOf(operand)))
        if (!llvm::is_contained(found, leaf)) found.push_back(leaf);
    if (!isFree(op) && !v.hasOneUse() && large(found, elementsOf(v)) > 1) found.assign(1, v);
  }
  return leaves[v] = found;
}

bool Former::cheapToRepeat(Operation *op, const Consumers &consumers) {
  if (isa<ScatterAddOp, CumSumOp, GatherOp>(op)) return false;
  if (auto reduce = dyn_cast<ReduceOp>(op); reduce && reductionOf(reduce).kind != Reduction::Trivial) return false;
  SmallVector<Value, 4> from;
  for (Value operand : op->getOperands())
    for (Value leaf : SmallVector<Value, 2>(leavesOf(operand)))
      if (!llvm::is_contained(from, leaf)) from.push_back(leaf);
  // Gathered rows that only this operation reads would have to be kept in its place.
  if (llvm::any_of(op->getOperands(), [](Value v) { return isa_and_nonnull<GatherOp>(v.getDefiningOp()) && v.hasOneUse(); })) return false;
  int64_t points =
      elementsOf(op->getResult(0)); // what counts is what the kernels touch anyway: values per row weigh nothing beside the rows
  for (auto &[cluster, where] : consumers) points = std::max(points, clusters[cluster].points);
  int tensors = large(from, points);
  // Sums over rows cannot share the kernel that would write the value: reading two tensors there costs no more.
  int others = llvm::count_if(consumers, [&](auto &c) { return clusters[c.first].kind != Cluster::Columns; });
  return tensors <= 1 || (tensors == 2 && others <= 1);
}

bool Former::holdsExpensive(Operation *op) {
  if (isExpensive(op)) return true;
  return llvm::any_of(op->getOperands(), [&](Value v) {
    v = viewed(v);
    Operation *from = v.getDefiningOp();
    return from && !isBarrier(from) && !leavesKernels(v) && !isa<ReduceOp, ScatterAddOp, CumSumOp>(from) && holdsExpensive(from);
  });
}

} // namespace zero::fuse
