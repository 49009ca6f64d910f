//===- tile_uses.cpp - tables and products tile by tile ------------------------------------------------===//
#include "passes/train/tile.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace zero::train {

SmallVector<int64_t> tileEnds(int64_t extent, int64_t stride, int64_t limit, int64_t unit) {
  int64_t parts = std::clamp<int64_t>(llvm::divideCeil(extent * stride, limit), 1, std::max<int64_t>(extent, 1));
  int64_t size = parts > 1 ? int64_t(llvm::alignTo(llvm::divideCeil(extent, parts), unit)) : extent;
  SmallVector<int64_t> ends;
  for (int64_t end = size; end < extent; end += size) ends.push_back(end);
  ends.push_back(extent);
  return ends;
}

Value TiledParameter::get(const nn::Build &b, size_t tile) const {
  nn::ParameterOp parameter = tiles[tile];
  return b.b.create<nn::GetOp>(b.loc, parameter.getType(), parameter.getSymName());
}

SmallVector<Value> TiledParameter::getAll(const nn::Build &b) const {
  return llvm::map_to_vector(llvm::seq(size()), [&](size_t tile) { return get(b, tile); });
}

bool canBeTiled(OpOperand &use) {
  if (isa<nn::GatherOp>(use.getOwner())) return use.getOperandNumber() == 0;
  if (auto grouped = dyn_cast<nn::GroupedMatMulOp>(use.getOwner())) return use.getOperandNumber() == 1 && grouped.getMatrices().size() == 1;
  if (auto reshape = dyn_cast<nn::ReshapeOp>(use.getOwner())) { // one expert of several
    auto grouped = reshape->hasOneUse() ? dyn_cast<nn::GroupedMatMulOp>(*reshape->user_begin()) : nn::GroupedMatMulOp();
    return grouped && grouped.getMatrices().size() > 1 && nn::typeOf(use.get()).getRank() == 2 &&
           nn::typeOf(reshape).getShape().drop_front() == nn::typeOf(use.get()).getShape();
  }
  auto product = dyn_cast<nn::MatMulOp>(use.getOwner());
  return product && use.getOperandNumber() == 1 && product.getLhs() != use.get() && nn::typeOf(product.getResult()).getRank() == 2;
}

/// An index outside a tile reads its first row, and zeros are taken instead; so the index' gradient adds zeros to that row.
void tileTable(nn::GatherOp user, const TiledParameter &table) {
  OpBuilder builder(user);
  nn::Build b{builder, user.getLoc()};
  Value indices = user.getIndices(), sum;
  auto type = nn::typeOf(user.getResult());
  SmallVector<int64_t> dims;
  for (int64_t d = 0; d < nn::typeOf(indices).getRank(); ++d) dims.push_back(d);
  for (size_t k = 0; k < table.size(); ++k) {
    auto within = [&](nn::Predicate predicate, int64_t bound) { return b.compare(predicate, indices, b.like(indices, double(bound))); };
    Value here = k + 1 < table.size() ? within(nn::Predicate::lt, table.ends[k]) : Value();
    if (k) {
      Value from = within(nn::Predicate::ge, table.begin(k));
      here = here ? builder.create<nn::AndOp>(b.loc, from, here).getResult() : from;
    }
    Value local = b.select(here, b.sub(indices, b.like(indices, double(table.begin(k)))), b.like(indices, 0));
    Value rows = builder.create<nn::GatherOp>(b.loc, type, table.get(b, k), local);
    rows = b.select(b.broadcast(here, type.getShape(), dims), rows, b.like(rows, 0));
    sum = sum ? b.add(sum, rows) : rows;
  }
  user.replaceAllUsesWith(sum);
  user.erase();
}

void tileGroups(nn::GroupedMatMulOp user, const TiledParameter &matrices) {
  OpBuilder builder(user);
  nn::Build b{builder, user.getLoc()};
  Value rows = builder.create<nn::GroupedMatMulOp>(b.loc, user.getType(), user.getInput(), matrices.getAll(b), user.getSlot(),
                                                   user.getRow(), user.getGroupOf(), user.getTranspose());
  user.replaceAllUsesWith(rows);
  user.erase();
}

void tileExpert(nn::ReshapeOp user, const TiledParameter &matrix) {
  OpBuilder builder(user);
  nn::Build b{builder, user.getLoc()};
  Value whole = builder.create<nn::ConcatOp>(b.loc, user.getInput().getType(), matrix.getAll(b), builder.getI64IntegerAttr(matrix.dim));
  user.getInputMutable().assign(whole);
}

void tileExperts(nn::GroupedMatMulOp user) {
  SmallVector<nn::ConcatOp> wholes;
  for (Value matrix : user.getMatrices())
    if (auto reshape = matrix.getDefiningOp<nn::ReshapeOp>())
      if (auto whole = reshape.getInput().getDefiningOp<nn::ConcatOp>()) wholes.push_back(whole);
  if (wholes.size() < 2 || wholes.size() != user.getMatrices().size()) return;
  nn::ConcatOp first = wholes[0];
  for (nn::ConcatOp whole : wholes)
    if (whole.getDim() != 0 || !llvm::equal(whole->getOperandTypes(), first->getOperandTypes())) return;
  OpBuilder builder(user);
  nn::Build b{builder, user.getLoc()};
  bool sideBySide = user.getTranspose();
  SmallVector<Value> results;
  SmallVector<int64_t> starts(2, 0), sizes(nn::typeOf(user.getInput()).getShape()), result(nn::typeOf(user.getResult()).getShape());
  for (size_t k = 0; k < first.getInputs().size(); ++k) {
    auto shape = nn::typeOf(first.getInputs()[k]).getShape();
    auto tiles = llvm::map_to_vector(wholes, [&](nn::ConcatOp whole) {
      return nn::Build{builder, whole.getLoc()}.reshape(whole.getInputs()[k], {1, shape[0], shape[1]});
    });
    (sideBySide ? result : sizes)[1] = shape[0];
    Value rows = sideBySide ? user.getInput() : b.slice(user.getInput(), starts, sizes, {1, 1});
    starts[1] += shape[0];
    results.push_back(builder.create<nn::GroupedMatMulOp>(b.loc, nn::withShape(user.getResult(), result), rows, tiles, user.getSlot(),
                                                          user.getRow(), user.getGroupOf(), user.getTranspose()));
    if (!sideBySide && k) results = {b.add(results[0], results[1])};
  }
  Value all = sideBySide ? builder.create<nn::ConcatOp>(b.loc, results, builder.getI64IntegerAttr(1)).getResult() : results[0];
  user.replaceAllUsesWith(all);
  user.erase();
}

void tileProduct(nn::MatMulOp user, const TiledParameter &weights) {
  OpBuilder builder(user);
  nn::Build b{builder, user.getLoc()};
  bool sideBySide = weights.dim == (user.getTransposeRhs() ? 0 : 1);
  int64_t reduced = user.getTransposeLhs() ? 0 : 1; // dimension of the left operand
  SmallVector<int64_t> starts(2, 0), sizes(nn::typeOf(user.getLhs()).getShape());
  SmallVector<Value> results;
  for (size_t k = 0; k < weights.size(); ++k) {
    Value lhs = user.getLhs();
    if (!sideBySide) {
      starts[reduced] = weights.begin(k);
      sizes[reduced] = weights.extent(k);
      lhs = b.slice(lhs, starts, sizes, {1, 1});
    }
    results.push_back(
        builder.create<nn::MatMulOp>(b.loc, lhs, weights.get(b, k), user.getTransposeLhs(), user.getTransposeRhs(), user.getRecompute()));
    if (!sideBySide && k) results = {b.add(results[0], results[1])};
  }
  Value all = sideBySide ? builder.create<nn::ConcatOp>(b.loc, results, builder.getI64IntegerAttr(1)).getResult() : results[0];
  user.replaceAllUsesWith(all);
  user.erase();
}

} // namespace zero::train
