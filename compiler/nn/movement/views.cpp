//===- views.cpp - broadcast, reshape and transpose --------------------------------------------===//
#include "compiler/nn/implement.h"

using namespace mlir;

namespace zero::nn {

//===----------------------------------------------------------------------===//
// Broadcast
//===----------------------------------------------------------------------===//

LogicalResult BroadcastOp::verify() {
  auto from = typeOf(getInput()), to = typeOf(getResult());
  if (int64_t(getDims().size()) != from.getRank())
    return emitOpError() << "names " << getDims().size() << " dimensions for an operand of rank " << from.getRank();
  int64_t before = -1;
  for (auto [i, d] : llvm::enumerate(getDims())) {
    if (d <= before || d >= to.getRank()) return emitOpError() << "dims must rise and lie below the result's rank " << to.getRank();
    if (from.getDimSize(i) != 1 && from.getDimSize(i) != to.getDimSize(d))
      return emitOpError() << "dimension " << i << " of size " << from.getDimSize(i) << " cannot become " << to.getDimSize(d);
    before = d;
  }
  if (from.getElementType() != to.getElementType()) return emitOpError() << "changes the element type";
  return success();
}

OpFoldResult BroadcastOp::fold(FoldAdaptor) { return getInput().getType() == getType() ? getInput() : Value(); }

Number BroadcastOp::read(ElementReader &reader, At at) {
  Indices from;
  for (auto [n, d] : llvm::zip(typeOf(getInput()).getShape(), getDims())) from.push_back(n == 1 ? Index(0) : at[d]);
  return reader.operand(0, from);
}

bool BroadcastOp::isFree() { return true; }

/// An operand that has rows has all of them; one that has none has sizes of 1 at most where these are.
bool BroadcastOp::readsRows(int64_t rows, llvm::SmallBitVector &cut) {
  auto from = typeOf(getInput()).getShape(), to = typeOf(getResult()).getShape();
  auto lead = leadingOf(to, rows);
  if (!lead) return false;
  size_t leading = llvm::count_if(getDims(), [&](int64_t d) { return d < *lead; });
  if (llvm::all_of(from.take_front(leading), [](int64_t n) { return n == 1; })) return true;
  cut.set(0);
  return leadingOf(from, rows) == int64_t(leading);
}

void BroadcastOp::takeRows(Build &b, const Rows &rows, OperationState &part) {
  int64_t lead = *leadingOf(typeOf(getResult()).getShape(), rows.all);
  llvm::SmallBitVector cut(1);
  readsRows(rows.all, cut);
  auto below = getDims().drop_while([&](int64_t d) { return d < lead; });
  SmallVector<int64_t> dims;
  if (cut[0])
    dims.push_back(0);
  else
    part.operands[0] = b.reshape(part.operands[0], typeOf(getInput()).getShape().take_back(below.size()));
  for (int64_t d : below) dims.push_back(d - lead + 1);
  part.attributes.set(getDimsAttrName(), b.b.getDenseI64ArrayAttr(dims));
}

/// What was repeated is summed: over new dimensions and over those of size 1 that grew.
LogicalResult BroadcastOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &out) {
  Build b{builder, getLoc()};
  auto from = typeOf(getInput()).getShape(), to = typeOf(getResult()).getShape();
  SmallVector<int64_t> summed;
  for (int64_t r = 0; r < int64_t(to.size()); ++r) {
    const int64_t *at = llvm::find(getDims(), r);
    bool kept = at != getDims().end() && from[at - getDims().begin()] == to[r];
    if (!kept) summed.push_back(r);
  }
  out[0] = b.reshape(b.reduce(ReductionKind::sum, d[0], summed), from);
  return success();
}

LogicalResult BroadcastOp::evaluate(Operands operands, Results results) {
  const Tensor &in = *operands[0];
  Tensor &out = results[0];
  SmallVector<int64_t> source = stridesOf(in.shape()), strides(out.shape().size(), 0);
  for (auto [i, d] : llvm::enumerate(getDims())) strides[d] = in.shape()[i] == 1 ? 0 : source[i];
  copyStrided(in.bytes.data(), strides, out.bytes.data(), stridesOf(out.shape()), out.shape(), widthOf(in));
  return success();
}

//===----------------------------------------------------------------------===//
// Reshape
//===----------------------------------------------------------------------===//

LogicalResult ReshapeOp::verify() {
  auto from = typeOf(getInput()), to = typeOf(getResult());
  if (from.getNumElements() != to.getNumElements() || from.getElementType() != to.getElementType())
    return emitOpError() << from << " cannot be seen as " << to;
  return success();
}

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  if (getInput().getType() == getType()) return getInput();
  if (auto inner = getInput().getDefiningOp<ReshapeOp>()) { // reshape(reshape(x)) = reshape(x)
    getInputMutable().assign(inner.getInput());
    return getInput().getType() == getType() ? getInput() : getResult();
  }
  if (auto dense = dyn_cast_or_null<DenseElementsAttr>(adaptor.getInput())) return dense.reshape(cast<ShapedType>(getType()));
  return {};
}

Number ReshapeOp::read(ElementReader &reader, At at) {
  return reader.operand(0, reader.space().reshape(at, typeOf(getResult()).getShape(), typeOf(getInput()).getShape()));
}

bool ReshapeOp::readsRows(int64_t rows, llvm::SmallBitVector &cut) {
  cut.set(0);
  return leadingOf(typeOf(getInput()).getShape(), rows) && leadingOf(typeOf(getResult()).getShape(), rows);
}

void ReshapeOp::takeRows(Build &, const Rows &, OperationState &) {}

LogicalResult ReshapeOp::differentiate(OpBuilder &b, ValueRange d, Gradients &out) {
  out[0] = Build{b, getLoc()}.reshape(d[0], typeOf(getInput()).getShape());
  return success();
}

LogicalResult ReshapeOp::evaluate(Operands in, Results out) {
  out[0].bytes = in[0]->bytes;
  return success();
}

//===----------------------------------------------------------------------===//
// Transpose
//===----------------------------------------------------------------------===//

LogicalResult TransposeOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor a, Types &out) {
  auto in = typeOf(a.getInput());
  SmallVector<int64_t> shape;
  llvm::SmallBitVector seen(in.getRank());
  for (int64_t p : a.getPerm()) {
    if (p < 0 || p >= in.getRank() || seen[p])
      return reject(loc, "nn.transpose: ", text(a.getPerm()), " is no permutation of ", in.getRank(), " dimensions");
    seen.set(p);
    shape.push_back(in.getDimSize(p));
  }
  if (int64_t(shape.size()) != in.getRank())
    return reject(loc, "nn.transpose: ", text(a.getPerm()), " is no permutation of ", in.getRank(), " dimensions");
  out.push_back(with(in, shape));
  return success();
}

OpFoldResult TransposeOp::fold(FoldAdaptor) {
  for (auto [i, p] : llvm::enumerate(getPerm()))
    if (int64_t(i) != p) return {};
  return getInput();
}

Number TransposeOp::read(ElementReader &reader, At at) {
  Indices from(at.size());
  for (auto [i, d] : llvm::enumerate(getPerm())) from[d] = at[i];
  return reader.operand(0, from);
}

unsigned TransposeOp::getWork() { return 0; }

bool TransposeOp::readsRows(int64_t rows, llvm::SmallBitVector &cut) {
  cut.set(0);
  auto lead = leadingOf(typeOf(getInput()).getShape(), rows);
  return lead && llvm::all_of(llvm::seq<int64_t>(0, *lead), [&](int64_t d) { return getPerm()[d] == d; });
}

void TransposeOp::takeRows(Build &b, const Rows &rows, OperationState &part) {
  int64_t lead = *leadingOf(typeOf(getInput()).getShape(), rows.all);
  SmallVector<int64_t> perm{0};
  for (int64_t d : getPerm().drop_front(lead)) perm.push_back(d - lead + 1);
  part.attributes.set(getPermAttrName(), b.b.getDenseI64ArrayAttr(perm));
}

LogicalResult TransposeOp::differentiate(OpBuilder &b, ValueRange d, Gradients &out) {
  SmallVector<int64_t> inverse(getPerm().size());
  for (auto [i, p] : llvm::enumerate(getPerm())) inverse[p] = i;
  out[0] = b.create<TransposeOp>(getLoc(), d[0], b.getDenseI64ArrayAttr(inverse));
  return success();
}

LogicalResult TransposeOp::evaluate(Operands in, Results out) {
  out[0].bytes = transposed(*in[0], getPerm()).bytes;
  return success();
}

} // namespace zero::nn
