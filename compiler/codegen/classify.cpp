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

/// A running sum is the one result of its kernel.
FailureOr<KernelForm> scanForm(CumSumOp scan, OperandRange outputs) {
  bool alone = llvm::hasSingleElement(scan->getBlock()->getOps<CumSumOp>());
  if (!alone || outputs.size() != 1 || outputs[0] != scan.getResult()) return scan.emitOpError("must be the one result of its kernel");
  KernelForm form;
  form.kind = Program::Scan;
  auto shape = shapeOf(outputs[0]);
  form.outerShape.assign(shape.begin(), shape.end() - !shape.empty());
  form.innerShape.assign(shape.end() - !shape.empty(), shape.end());
  return form;
}

/// Columns: every reduction takes away the same leading dimensions and every result has the remaining elements.
std::optional<KernelForm> columnsForm(ArrayRef<ReduceOp> reduces, OperandRange outputs) {
  if (reduces.empty()) return std::nullopt;
  int64_t whole = elementsOf(ReduceOp(reduces[0]).getInput()), rest = elementsOf(ReduceOp(reduces[0]));
  for (ReduceOp r : reduces)
    if (reachOf(r) != Reach::Leading || elementsOf(r.getInput()) != whole || elementsOf(r) != rest) return std::nullopt;
  if (!llvm::all_of(outputs, [&](Value v) { return elementsOf(v) == rest; })) return std::nullopt;
  KernelForm form;
  form.kind = Program::Columns;
  form.wide.insert(reduces.begin(), reduces.end());
  splitShape(form, reduces[0]);
  return form;
}

/// Rows, in the order of one reduction: results have one element per point or one per row, or sum columns over equal parts of the rows.
std::optional<KernelForm> rowsForm(ReduceOp order, ArrayRef<ReduceOp> reduces, OperandRange outputs) {
  int64_t whole = elementsOf(order.getInput()), rows = elementsOf(order);
  if (reachOf(order) != Reach::Trailing) return std::nullopt;
  KernelForm form;
  int64_t part = 0; // rows of one
  for (Value v : outputs) {
    if (elementsOf(v) > whole) return std::nullopt;
    if (elementsOf(v) == whole || elementsOf(v) == rows) continue;
    int64_t summed = rowsSummedBy(v, whole, whole / rows);
    if (summed <= 1 || (part && part != summed)) return std::nullopt;
    part = summed;
    form.sums.insert(v.getDefiningOp());
  }
  for (ReduceOp r : reduces)
    if (reachOf(r) == Reach::Trailing && elementsOf(r.getInput()) == whole && elementsOf(r) == rows) form.wide.insert(r);
  splitShape(form, order);
  if (part) form.outerShape = {rows / part, part};
  return form;
}

/// No reduction that orders the kernel: a map, perhaps with results that have one element per row.
FailureOr<KernelForm> mapForm(func::FuncOp kernel, OperandRange outputs) {
  KernelForm form;
  Value root = *llvm::max_element(outputs, [](Value a, Value b) { return elementsOf(a) < elementsOf(b); });
  int64_t largest = elementsOf(root), rows = largest;
  for (Value v : outputs) rows = std::min(rows, elementsOf(v));
  form.innerShape.assign(shapeOf(root).begin(), shapeOf(root).end());
  int64_t outer = 1;
  while (rows < largest && outer < rows && !form.innerShape.empty()) {
    outer *= form.innerShape.front();
    form.outerShape.push_back(form.innerShape.front());
    form.innerShape.erase(form.innerShape.begin());
  }
  for (Value v : outputs)
    if (elementsOf(v) != largest && elementsOf(v) != outer)
      return kernel.emitOpError("is no kernel: its results have ")
             << largest << " and " << elementsOf(v) << " elements, which share no rows";
  return form;
}

} // namespace

FailureOr<KernelForm> classify(func::FuncOp kernel) {
  if (!kernel.getBody().hasOneBlock()) return kernel.emitOpError("is no kernel: its body must be one block");
  for (Operation &op : kernel.getBody().front())
    for (Value v : op.getOperands())
      if (elementsOf(v) == 0) return op.emitOpError("has an operand without elements");
  OperandRange outputs = kernel.getBody().front().getTerminator()->getOperands();
  if (outputs.empty()) return kernel.emitOpError("is no kernel: it returns nothing");

  if (auto scans = kernel.getOps<CumSumOp>(); !scans.empty()) return scanForm(*scans.begin(), outputs);
  if (!kernel.getOps<ScatterAddOp>().empty()) {
    if (outputs.size() != 1) return kernel.emitOpError("holds an nn.scatter_add and must have one result");
    KernelForm form;
    form.kind = Program::Scatter;
    return form;
  }
  SmallVector<ReduceOp> reduces;
  for (auto op : kernel.getOps<ReduceOp>())
    if (reachOf(op) != Reach::Nothing) reduces.push_back(op);
  if (auto columns = columnsForm(reduces, outputs)) return *columns;
  for (ReduceOp candidate : reduces)
    if (auto rows = rowsForm(candidate, reduces, outputs)) return *rows;
  return mapForm(kernel, outputs);
}

} // namespace zero::codegen
