//===- classify.cpp - which kind of kernel a body is -----------------------------------------------===//
#include "compiler/codegen/classify.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::codegen {

Reach reachOf(ReduceOp op) {
  bool reducedBeforeKept = false, keptBeforeReduced = false, sawReduced = false, sawKept = false;
  for (auto [i, n] : llvm::enumerate(shapeOf(op.getInput()))) {
    if (n == 1) continue;
    if (llvm::is_contained(op.getDims(), int64_t(i))) {
      sawReduced = true;
      keptBeforeReduced |= sawKept;
    } else {
      sawKept = true;
      reducedBeforeKept |= sawReduced;
    }
  }
  if (!sawReduced) return Reach::Nothing;
  if (!reducedBeforeKept) return Reach::Trailing;
  return keptBeforeReduced ? Reach::Mixed : Reach::Leading;
}

namespace {

void splitShape(KernelForm &form, ReduceOp op) {
  for (auto [i, n] : llvm::enumerate(shapeOf(op.getInput())))
    if (llvm::is_contained(op.getDims(), int64_t(i)) == (form.kind == Program::Rows))
      form.innerShape.push_back(n);
    else
      form.outerShape.push_back(n);
}

/// The rows of a part, if the result sums the columns of each: [parts, rows, columns] over the rows. 0 if it does not.
int64_t rowsSummedBy(Value result, int64_t whole, int64_t columns) {
  auto sum = result.getDefiningOp<ReduceOp>();
  if (!sum || sum.getKind() != ReductionKind::sum || sum.getDims() != ArrayRef<int64_t>{1} || elementsOf(sum.getInput()) != whole) return 0;
  auto shape = shapeOf(sum.getInput());
  bool fits = columns <= kMostSummedColumns && columns % kSummedColumns == 0;
  return fits && shape.size() == 3 && shape[0] > 1 && shape[2] == columns ? shape[1] : 0;
}

} // namespace

FailureOr<KernelForm> classify(func::FuncOp kernel) {
  KernelForm form;
  if (!kernel.getBody().hasOneBlock()) return kernel.emitOpError("is no kernel: its body must be one block");
  for (Operation &op : kernel.getBody().front())
    for (Value v : op.getOperands())
      if (elementsOf(v) == 0) return op.emitOpError("has an operand without elements");
  SmallVector<ReduceOp> reduces;
  for (auto op : kernel.getOps<ReduceOp>())
    if (reachOf(op) != Reach::Nothing) reduces.push_back(op);
  auto outputs = kernel.getBody().front().getTerminator()->getOperands();
  if (outputs.empty()) return kernel.emitOpError("is no kernel: it returns nothing");

  if (auto scans = kernel.getOps<CumSumOp>(); !scans.empty()) {
    CumSumOp scan = *scans.begin();
    if (outputs.size() != 1 || !std::none_of(std::next(scans.begin()), scans.end(), [](auto) { return true; }) ||
        outputs[0] != scan.getResult())
      return scan.emitOpError("must be the one result of its kernel");
    form.kind = Program::Scan;
    auto shape = shapeOf(outputs[0]);
    form.outerShape.assign(shape.begin(), shape.end() - !shape.empty());
    form.innerShape.assign(shape.end() - !shape.empty(), shape.end());
    return form;
  }
  if (auto scatters = kernel.getOps<ScatterAddOp>(); !scatters.empty()) {
    form.kind = Program::Scatter;
    if (outputs.size() != 1) return kernel.emitOpError("holds an nn.scatter_add and must have one result");
    return form;
  }

  // Columns: every reduction takes away the same leading dimensions and every result has the remaining elements.
  if (!reduces.empty()) {
    int64_t whole = elementsOf(reduces[0].getInput()), rest = elementsOf(reduces[0]);
    bool columns = llvm::all_of(reduces,
                                [&](ReduceOp r) {
                                  return reachOf(r) == Reach::Leading && elementsOf(r.getInput()) == whole && elementsOf(r) == rest;
                                }) &&
                   llvm::all_of(outputs, [&](Value v) { return elementsOf(v) == rest; });
    if (columns) {
      form.kind = Program::Columns;
      form.wide.insert(reduces.begin(), reduces.end());
      splitShape(form, reduces[0]);
      return form;
    }
  }
  // Rows: results have one element per point or one per row, or sum columns over equal parts of the rows.
  int64_t largest = 0;
  for (Value v : outputs) largest = std::max(largest, elementsOf(v));
  for (ReduceOp candidate : reduces) {
    if (reachOf(candidate) != Reach::Trailing || largest > elementsOf(candidate.getInput())) continue;
    int64_t whole = elementsOf(candidate.getInput()), rows = elementsOf(candidate);
    int64_t part = 0; // rows of one
    llvm::SmallPtrSet<Operation *, 4> sums;
    bool fits = llvm::all_of(outputs, [&](Value v) {
      if (elementsOf(v) == whole || elementsOf(v) == rows) return true;
      int64_t summed = rowsSummedBy(v, whole, whole / rows);
      if (summed <= 1 || (part && part != summed)) return false;
      part = summed;
      return sums.insert(v.getDefiningOp()), true;
    });
    if (!fits) continue;
    for (ReduceOp r : reduces)
      if (reachOf(r) == Reach::Trailing && elementsOf(r.getInput()) == whole && elementsOf(r) == rows) form.wide.insert(r);
    splitShape(form, candidate);
    if (part) form.outerShape = {rows / part, part};
    form.sums = std::move(sums);
    return form;
  }
  // No reduction that orders the kernel: a map, perhaps with results that have one element per row.
  Value root;
  int64_t rows = largest;
  for (Value v : outputs) {
    if (!root && elementsOf(v) == largest) root = v;
    rows = std::min(rows, elementsOf(v));
  }
  form.innerShape.assign(shapeOf(root).begin(), shapeOf(root).end());
  for (int64_t have = 1; have < rows && !form.innerShape.empty() && rows < largest;) {
    have *= form.innerShape.front();
    form.outerShape.push_back(form.innerShape.front());
    form.innerShape.erase(form.innerShape.begin());
  }
  int64_t outer = 1;
  for (int64_t n : form.outerShape) outer *= n;
  for (Value v : outputs)
    if (elementsOf(v) != largest && elementsOf(v) != outer)
      return kernel.emitOpError("is no kernel: its results have ")
             << largest << " and " << elementsOf(v) << " elements, which share no rows";
  return form;
}

} // namespace zero::codegen
