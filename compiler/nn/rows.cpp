//===- rows.cpp - operations on some rows of their tensors -----------------------------------------===//
#include "compiler/nn/rows.h"

using namespace mlir;

namespace zero::nn {

std::optional<int64_t> leadingOf(ArrayRef<int64_t> shape, int64_t rows) {
  int64_t product = 1;
  for (auto [d, n] : llvm::enumerate(shape)) {
    product *= n;
    if (product == rows) return int64_t(d) + 1;
    if (product > rows || product == 0) return std::nullopt;
  }
  return std::nullopt;
}

int64_t widthOf(RankedTensorType type, int64_t rows) { return leadingOf(type.getShape(), rows) ? type.getNumElements() / rows : 0; }

RankedTensorType typeOfRows(RankedTensorType type, const Rows &rows) {
  SmallVector<int64_t> shape{rows.count};
  llvm::append_range(shape, type.getShape().drop_front(*leadingOf(type.getShape(), rows.all)));
  return RankedTensorType::get(shape, type.getElementType());
}

bool readsRows(Operation *op, int64_t rows, llvm::SmallBitVector &cut) {
  cut = llvm::SmallBitVector(op->getNumOperands());
  if (op->hasTrait<Elementwise>()) {
    cut.set();
    return leadingOf(typeOf(op->getResult(0)).getShape(), rows).has_value();
  }
  if (op->hasTrait<RowWise>()) {
    cut.set(0);
    auto type = typeOf(op->getOperand(0));
    auto leading = leadingOf(type.getShape(), rows);
    return leading && *leading < type.getRank();
  }
  auto splittable = dyn_cast<SplittableOpInterface>(op);
  return splittable && splittable.readsRows(rows, cut);
}

bool sumsRows(Operation *op, unsigned result) {
  auto splittable = dyn_cast<SplittableOpInterface>(op);
  return splittable && splittable.sumsRows(result);
}

Operation *makeRows(Build &b, Operation *op, const Rows &rows, ValueRange operands) {
  OperationState part(op->getLoc(), op->getName(), operands, {}, op->getAttrs());
  for (OpResult result : op->getResults()) {
    auto type = typeOf(result);
    part.types.push_back(sumsRows(op, result.getResultNumber()) ? type : typeOfRows(type, rows));
  }
  if (auto splittable = dyn_cast<SplittableOpInterface>(op)) splittable.takeRows(b, rows, part);
  return b.b.create(part);
}

} // namespace zero::nn
