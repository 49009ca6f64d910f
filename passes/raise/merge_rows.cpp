//===- merge_rows.cpp - the same computation with weights of each row's own -------------------------------===//
#include "passes/raise/merge_rows.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::raise {

/// Steps from what experts give to what they are given.
static constexpr unsigned kMostSteps = 256;

static bool isBefore(const SmallVector<Value> &x, const SmallVector<Value> &y) {
  return std::lexicographical_compare(x.begin(), x.end(), y.begin(), y.end(), [](Value v, Value w) { return v.getImpl() < w.getImpl(); });
}

MergeRows::MergeRows(ArrayRef<Value> each, int64_t first, int64_t count, Blocks blocks, OpBuilder &builder)
    : b{builder, each[0].getLoc()}, numbers(int64_t(each.size())), count(count), blocks(blocks), known(isBefore) {
  rows.all = typeOf(each[0]).getNumElements(), rows.begin = 0, rows.count = numbers * rows.all;
  auto flat = llvm::map_to_vector(each, [&](Value v) { return b.cast(b.reshape(v, {rows.all}), builder.getI64Type()); });
  Value all = numbers == 1 ? flat[0] : builder.create<ConcatOp>(b.loc, withShape(flat[0], {rows.count}), flat, 0);
  Value from = b.compare(Predicate::ge, all, b.like(all, double(first))),
        to = b.compare(Predicate::lt, all, b.like(all, double(first + count)));
  isHeld = builder.create<AndOp>(b.loc, from, to);
  group = b.select(isHeld, b.sub(all, b.like(all, double(first))), b.like(all, 0));
}

Value MergeRows::merge(ArrayRef<Value> values) { return leadingOf(typeOf(values[0]).getShape(), rows.all) ? merged(values) : Value(); }

Value MergeRows::repeated(Value v) {
  auto type = typeOfRows(typeOf(v), {rows.all, 0, rows.all});
  SmallVector<Value> times(numbers, b.reshape(v, type.getShape()));
  return numbers == 1 ? times[0] : b.b.create<ConcatOp>(b.loc, typeOfRows(typeOf(v), rows), times, 0).getResult();
}

Value MergeRows::merged(ArrayRef<Value> values) {
  auto [entry, isNew] = known.try_emplace(Values(values));
  if (!isNew || steps == kMostSteps) return entry->second;
  ++steps;
  Value result = llvm::all_equal(values) ? repeated(values[0]) : compute(values);
  --steps;
  return known[Values(values)] = result;
}

Value MergeRows::compute(ArrayRef<Value> values) {
  auto number = [](Value v) { return cast<OpResult>(v).getResultNumber(); };
  Operation *op = values[0].getDefiningOp();
  for (Value v : values)
    if (Operation *other = v.getDefiningOp(); !op || !other || other->getName() != op->getName() || number(v) != number(values[0]) ||
                                              other->getResultTypes() != op->getResultTypes() ||
                                              other->getNumOperands() != op->getNumOperands())
      return {};
  bool alike = llvm::all_of(values, [&](Value v) { return v.getDefiningOp()->getAttrDictionary() == op->getAttrDictionary(); });
  if (isa<DropoutOp>(op)) return drop(values);
  if (!alike) return isa<SliceOp>(op) ? pick(values) : Value();
  llvm::SmallBitVector cut;
  if (!readsRows(op, rows.all, cut)) return {};
  SmallVector<Value> operands;
  for (unsigned i = 0; i < op->getNumOperands(); ++i) {
    auto each = llvm::map_to_vector(values, [i](Value v) { return v.getDefiningOp()->getOperand(i); });
    if (cut[i])
      operands.push_back(merged(each));
    else if (llvm::all_equal(each))
      operands.push_back(each[0]);
    else if (isa<MatMulOp>(op) && i == 1)
      return operands[0] ? product(values, operands[0]) : Value();
    else
      return isa<BroadcastOp>(op) ? lookup(values) : Value();
    if (!operands.back()) return {};
  }
  return makeRows(b, op, rows, operands)->getResult(number(values[0]));
}

/// Each number's dropout draws from a stream of its own. What all rows of several choices draw is drawn choice by choice, each from the
/// stream of another number, so that it is that of their samples wherever these are computed.
Value MergeRows::drop(ArrayRef<Value> values) {
  auto first = values[0].getDefiningOp<DropoutOp>();
  SmallVector<Value> inputs;
  for (Value v : values) {
    auto dropout = v.getDefiningOp<DropoutOp>();
    inputs.push_back(dropout.getInput());
    if (dropout.getSeed() != first.getSeed() || dropout.getRateAttr() != first.getRateAttr() || dropout.getSamples() != first.getSamples())
      return {};
  }
  Value input = leadingOf(typeOf(inputs[0]).getShape(), rows.all) ? merged(inputs) : Value();
  if (!input || numbers > int64_t(values.size())) return {};
  auto shape = llvm::to_vector(typeOf(input).getShape());
  SmallVector<int64_t> starts(shape.size(), 0), steps(shape.size(), 1);
  shape[0] = rows.all;
  SmallVector<Value> parts;
  for (int64_t choice = 0; choice < numbers; ++choice) {
    starts[0] = choice * rows.all;
    Value part = numbers == 1 ? input : b.slice(input, starts, shape, steps);
    auto stream = values[choice].getDefiningOp<DropoutOp>().getIdAttr();
    parts.push_back(
        b.b.create<DropoutOp>(first.getLoc(), part.getType(), part, first.getSeed(), first.getRateAttr(), stream, first.getSamplesAttr()));
  }
  return numbers == 1 ? parts[0] : b.b.create<ConcatOp>(b.loc, input.getType(), parts, 0).getResult();
}

/// Rows times the matrix of each row's number.
Value MergeRows::product(ArrayRef<Value> values, Value input) {
  auto first = values[0].getDefiningOp<MatMulOp>();
  auto type = typeOf(first.getResult());
  if (first.getOnto() || first.getTransposeLhs() || type.getRank() != 2 || rows.count >= kMostGroupedRows) return {};
  SmallVector<Value> matrices;
  for (Value v : values) {
    Value matrix = v.getDefiningOp<MatMulOp>().getRhs();
    auto shape = typeOf(matrix).getShape();
    matrices.push_back(Build{b.b, v.getLoc()}.reshape(matrix, {1, shape[0], shape[1]}));
  }
  GroupRowsOp places = groupRows(group, count, blocks, b.b);
  return b.b.create<GroupedMatMulOp>(first.getLoc(), typeOfRows(type, rows), input, matrices, places.getSlot(), places.getRow(),
                                     places.getGroupOf(), first.getTransposeRhs());
}

/// Vectors that are the same for all rows: a table, in which each row looks its own up.
Value MergeRows::lookup(ArrayRef<Value> values) {
  auto first = values[0].getDefiningOp<BroadcastOp>();
  auto from = typeOf(first.getInput()), to = typeOf(values[0]);
  int64_t lead = *leadingOf(to.getShape(), rows.all), width = from.getNumElements();
  SmallVector<int64_t> shape{rows.count}, dims{0};
  for (auto [size, d] : llvm::zip(from.getShape(), first.getDims()))
    if (d >= lead) shape.push_back(size), dims.push_back(d - lead + 1);
  SmallVector<Value> each;
  for (Value v : values) each.push_back(b.reshape(v.getDefiningOp<BroadcastOp>().getInput(), {1, width}));
  Value table = b.b.create<ConcatOp>(b.loc, withShape(each[0], {count, width}), each, 0);
  Value looked = b.b.create<GatherOp>(b.loc, withShape(table, {rows.count, width}), table, group);
  return b.broadcast(b.reshape(looked, shape), typeOfRows(to, rows).getShape(), dims);
}

/// One column of a table for each number: of each row that of its own.
Value MergeRows::pick(ArrayRef<Value> values) {
  auto first = values[0].getDefiningOp<SliceOp>();
  auto table = typeOf(first.getInput());
  if (table.getRank() == 0) return {};
  int64_t last = table.getRank() - 1, from = first.getStarts()[last], width = table.getDimSize(last);
  if (table.getNumElements() != rows.all * width || first.getSizes()[last] != 1) return {};
  for (auto [i, v] : llvm::enumerate(values)) {
    auto slice = v.getDefiningOp<SliceOp>();
    bool isColumn = slice.getInput() == first.getInput() && slice.getSizes() == first.getSizes() &&
                    slice.getStarts()[last] == from + int64_t(i) && slice.getSizes().drop_back() == table.getShape().drop_back() &&
                    llvm::all_of(slice.getSteps(), [](int64_t step) { return step > 0; });
    if (!isColumn) return {};
  }
  Value all = b.reshape(repeated(first.getInput()), {rows.count, width});
  Value picked = b.b.create<TakeAlongOp>(b.loc, withShape(all, {rows.count}), all, b.add(group, double(from)));
  return b.reshape(picked, typeOfRows(typeOf(values[0]), rows).getShape());
}

} // namespace zero::raise
