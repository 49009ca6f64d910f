//===- pieces.cpp - slice, pad and concat ------------------------------------------------------===//
#include "compiler/nn/implement.h"

using namespace mlir;

namespace zero::nn {

//===----------------------------------------------------------------------===//
// Slice
//===----------------------------------------------------------------------===//

LogicalResult SliceOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor a, Types &out) {
  auto in = typeOf(a.getInput());
  size_t rank = in.getRank();
  if (a.getStarts().size() != rank || a.getSizes().size() != rank || a.getSteps().size() != rank)
    return reject(loc, "nn.slice: starts, sizes and steps need one entry per dimension of ", in);
  for (size_t i = 0; i < rank; ++i) {
    int64_t first = a.getStarts()[i], last = first + (a.getSizes()[i] - 1) * a.getSteps()[i];
    if (a.getSizes()[i] < 0 || (a.getSizes()[i] > 0 && (std::min(first, last) < 0 || std::max(first, last) >= in.getDimSize(i))))
      return reject(loc, "nn.slice: dimension ", i, " of ", in, " has no elements ", first, " to ", last);
  }
  out.push_back(with(in, a.getSizes()));
  return success();
}

OpFoldResult SliceOp::fold(FoldAdaptor) {
  bool unit = llvm::all_of(getSteps(), [](int64_t s) { return s == 1; });
  return unit && getInput().getType() == getType() ? getInput() : Value();
}

Number SliceOp::read(ElementReader &reader, At at) {
  Indices from;
  for (auto [i, start, step] : llvm::zip(at, getStarts(), getSteps())) from.push_back(Index(start) + i * step);
  return reader.operand(0, from);
}

unsigned SliceOp::getWork() { return 0; }

bool SliceOp::readsRows(int64_t rows, llvm::SmallBitVector &cut) {
  cut.set(0);
  auto lead = leadingOf(typeOf(getInput()).getShape(), rows);
  return lead && typeOf(getInput()).getShape().take_front(*lead) == getSizes().take_front(*lead) &&
         llvm::all_of(getSteps().take_front(*lead), [](int64_t s) { return s == 1; });
}

void SliceOp::takeRows(Build &b, const Rows &rows, OperationState &part) {
  int64_t lead = *leadingOf(typeOf(getInput()).getShape(), rows.all);
  auto set = [&](StringAttr name, int64_t first, ArrayRef<int64_t> of) {
    SmallVector<int64_t> numbers{first};
    llvm::append_range(numbers, of.drop_front(lead));
    part.attributes.set(name, b.b.getDenseI64ArrayAttr(numbers));
  };
  set(getStartsAttrName(), 0, getStarts());
  set(getSizesAttrName(), rows.count, getSizes());
  set(getStepsAttrName(), 1, getSteps());
}

/// The elements go back to where they were taken, zeros everywhere else. Dimensions read backwards are first turned
/// round, so that the padding between neighbours is never negative.
LogicalResult SliceOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &out) {
  Build b{builder, getLoc()};
  auto from = typeOf(getInput()).getShape();
  if (typeOf(d[0]).getNumElements() == 0) {
    out[0] = b.like(getInput(), 0);
    return success();
  }
  size_t rank = from.size();
  SmallVector<int64_t> starts(rank, 0), turn(rank, 1), low(rank), high(rank), interior(rank);
  bool backwards = false;
  for (size_t i = 0; i < rank; ++i) {
    int64_t first = getStarts()[i], step = getSteps()[i], size = getSizes()[i];
    int64_t last = first + (size - 1) * step;
    if (step < 0) {
      backwards = true;
      starts[i] = size - 1;
      turn[i] = -1;
      std::swap(first, last);
      step = -step;
    }
    low[i] = first;
    high[i] = from[i] - 1 - last;
    interior[i] = size > 1 ? step - 1 : 0;
  }
  Value forwards = backwards ? b.slice(d[0], starts, getSizes(), turn) : Value(d[0]);
  out[0] = b.pad(forwards, low, high, interior);
  return success();
}

LogicalResult SliceOp::evaluate(Operands operands, Results results) {
  const Tensor &in = *operands[0];
  Tensor &out = results[0];
  SmallVector<int64_t> strides = stridesOf(in.shape());
  int64_t offset = 0;
  for (size_t i = 0; i < strides.size(); ++i) {
    offset += getStarts()[i] * strides[i];
    strides[i] *= getSteps()[i];
  }
  if (out.size())
    copyStrided(in.bytes.data() + offset * int64_t(widthOf(in)), strides, out.bytes.data(), stridesOf(out.shape()), out.shape(),
                widthOf(in));
  return success();
}

//===----------------------------------------------------------------------===//
// Pad
//===----------------------------------------------------------------------===//

LogicalResult PadOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor a, Types &out) {
  auto in = typeOf(a.getInput());
  size_t rank = in.getRank();
  if (a.getLow().size() != rank || a.getHigh().size() != rank || a.getInterior().size() != rank)
    return reject(loc, "nn.pad: low, high and interior need one entry per dimension of ", in);
  SmallVector<int64_t> shape;
  for (size_t i = 0; i < rank; ++i) {
    if (a.getLow()[i] < 0 || a.getHigh()[i] < 0 || a.getInterior()[i] < 0)
      return reject(loc, "nn.pad: amounts must not be negative (slice instead)");
    shape.push_back(a.getLow()[i] + a.getHigh()[i] + in.getDimSize(i) + std::max<int64_t>(0, in.getDimSize(i) - 1) * a.getInterior()[i]);
  }
  out.push_back(with(in, shape));
  return success();
}

LogicalResult PadOp::verify() {
  if (isa<FloatAttr, IntegerAttr>(getValue()) && getValue().getType() == elementOf(getInput())) return success();
  return emitOpError() << "surrounds " << getInput().getType() << " with " << getValue();
}

Number PadOp::read(ElementReader &reader, At at) {
  Indices from;
  SmallVector<Guard> inside;
  auto shape = typeOf(getInput()).getShape();
  for (size_t i = 0; i < at.size(); ++i) {
    Index shifted = at[i] - Index(getLow()[i]);
    int64_t step = getInterior()[i] + 1, span = (shape[i] - 1) * step + 1;
    if (getLow()[i] || getHigh()[i] || step > 1) inside.push_back({shifted, 0, span, step});
    from.push_back(step == 1 ? shifted : reader.space().quotient(shifted, step));
  }
  return reader.choose(
      inside, [&] { return reader.operand(0, from); }, [&] { return reader.constant(getValue()); });
}

LogicalResult PadOp::differentiate(OpBuilder &b, ValueRange d, Gradients &out) {
  SmallVector<int64_t> steps;
  for (int64_t between : getInterior()) steps.push_back(between + 1);
  out[0] = Build{b, getLoc()}.slice(d[0], getLow(), typeOf(getInput()).getShape(), steps);
  return success();
}

LogicalResult PadOp::evaluate(Operands operands, Results results) {
  const Tensor &in = *operands[0];
  Tensor &out = results[0];
  size_t width = widthOf(in);
  Tensor value(RankedTensorType::get({1}, in.elementType()));
  if (auto number = dyn_cast<FloatAttr>(getValue()))
    value.set(0, number.getValueAsDouble());
  else if (auto integer = dyn_cast<IntegerAttr>(getValue()))
    value.set(0, integer.getType().isInteger(1) ? double(integer.getValue().getZExtValue()) : double(integer.getInt()));
  else
    return emitOpError() << "pads with " << getValue() << ", which is no number";
  for (size_t i = 0; i < out.bytes.size(); i += width) std::memcpy(out.bytes.data() + i, value.bytes.data(), width);
  SmallVector<int64_t> strides = stridesOf(out.shape());
  int64_t offset = 0;
  for (size_t i = 0; i < strides.size(); ++i) {
    offset += getLow()[i] * strides[i];
    strides[i] *= getInterior()[i] + 1;
  }
  if (in.size())
    copyStrided(in.bytes.data(), stridesOf(in.shape()), out.bytes.data() + offset * int64_t(width), strides, in.shape(), width);
  return success();
}

//===----------------------------------------------------------------------===//
// Concat
//===----------------------------------------------------------------------===//

LogicalResult ConcatOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor a, Types &out) {
  if (a.getInputs().empty()) return reject(loc, "nn.concat: nothing to join");
  auto first = typeOf(a.getInputs()[0]);
  int64_t dim = a.getDim();
  if (dim < 0 || dim >= first.getRank()) return reject(loc, "nn.concat: dimension ", dim, " of ", first);
  SmallVector<int64_t> shape(first.getShape());
  shape[dim] = 0;
  for (Value v : a.getInputs()) {
    auto t = typeOf(v);
    bool fits = t.getRank() == first.getRank() && t.getElementType() == first.getElementType();
    for (int64_t i = 0; fits && i < t.getRank(); ++i) fits = i == dim || t.getDimSize(i) == first.getDimSize(i);
    if (!fits) return reject(loc, "nn.concat: ", t, " does not fit beside ", first, " along dimension ", dim);
    shape[dim] += t.getDimSize(dim);
  }
  out.push_back(with(first, shape));
  return success();
}

/// The pieces from `first` to before `end`, which begin at `start`.
static Number readPieces(ConcatOp op, ElementReader &reader, At at, unsigned first, unsigned end, int64_t start) {
  constexpr unsigned kPiecesInARow = 16;
  int64_t dim = op.getDim();
  auto sizeOf = [&](unsigned from, unsigned to) {
    int64_t sum = 0;
    for (unsigned i = from; i < to; ++i) sum += typeOf(op.getInputs()[i]).getDimSize(dim);
    return sum;
  };
  auto within = [&](unsigned from, unsigned to) { return Guard{at[dim] - Index(start + sizeOf(first, from)), 0, sizeOf(from, to), 1}; };
  auto readFirst = [&] {
    Indices from(at);
    from[dim] = at[dim] - Index(start);
    return reader.operand(first, from);
  };
  // The last piece is read under its own guard as well: where it does not hold an earlier piece was chosen.
  if (end - first == 1) return reader.under(within(first, end), readFirst);
  // Few pieces one after another, many by halves: branches do not nest deep.
  unsigned middle = end - first <= kPiecesInARow ? first + 1 : first + (end - first) / 2;
  std::optional<Guard> rest;
  if (middle != first + 1 || end - middle == 1) rest = within(middle, end); // one piece, or many, but no others
  return reader.choose(
      {within(first, middle)}, [&] { return middle - first > 1 ? readPieces(op, reader, at, first, middle, start) : readFirst(); },
      [&] { return readPieces(op, reader, at, middle, end, start + sizeOf(first, middle)); }, rest);
}

Number ConcatOp::read(ElementReader &reader, At at) { return readPieces(*this, reader, at, 0, getInputs().size(), 0); }

bool ConcatOp::readsRows(int64_t rows, llvm::SmallBitVector &cut) {
  cut.set();
  auto lead = leadingOf(typeOf(getResult()).getShape(), rows);
  return lead && int64_t(getDim()) >= *lead;
}

void ConcatOp::takeRows(Build &b, const Rows &rows, OperationState &part) {
  int64_t lead = *leadingOf(typeOf(getResult()).getShape(), rows.all);
  part.attributes.set(getDimAttrName(), b.b.getI64IntegerAttr(int64_t(getDim()) - lead + 1));
}

unsigned ConcatOp::getWork() { return getInputs().size() - 1; }

LogicalResult ConcatOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &out) {
  Build b{builder, getLoc()};
  SmallVector<int64_t> starts(typeOf(d[0]).getRank(), 0), steps(starts.size(), 1);
  for (auto [i, input] : llvm::enumerate(getInputs())) {
    out[i] = b.slice(d[0], starts, typeOf(input).getShape(), steps);
    starts[getDim()] += typeOf(input).getDimSize(getDim());
  }
  return success();
}

LogicalResult ConcatOp::evaluate(Operands in, Results results) {
  Tensor &out = results[0];
  SmallVector<int64_t> strides = stridesOf(out.shape());
  int64_t at = 0, dim = getDim();
  for (const Tensor *part : in) {
    size_t width = widthOf(*part);
    if (part->size())
      copyStrided(part->bytes.data(), stridesOf(part->shape()), out.bytes.data() + at * strides[dim] * int64_t(width), strides,
                  part->shape(), width);
    at += part->shape()[dim];
  }
  return success();
}

} // namespace zero::nn
