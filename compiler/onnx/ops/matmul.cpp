//===- matmul.cpp - MatMul, Gemm, Einsum ---------------------------------------------------------===//
// Products become nn.matmul of rank 2 (leading dimensions of an activation are its rows) or rank 3 (one
// product per batch entry). A transposition of the last two dimensions is a flag of the product, not a copy.
#include "compiler/onnx/importer.h"

namespace zero::onnx {
namespace {

/// Takes a transposition of the last two dimensions off `x`, leaving at most one that moves leading dimensions.
/// True where one was taken off.
bool takeTranspose(NodeContext &c, Val &x) {
  auto op = x.value ? x.value.getDefiningOp<nn::TransposeOp>() : nn::TransposeOp();
  if (!op || x.rank() < 2) return false;
  Ints perm(op.getPerm());
  size_t n = perm.size();
  // Only where the column dimension stood before the row dimension: [0, 2, 3, 1] is [0, 2, 1, 3] transposed.
  if (perm[n - 1] > perm[n - 2]) return false;
  std::swap(perm[n - 1], perm[n - 2]);
  x = c.e.transpose(Val(op.getInput()), perm);
  return true;
}

Ints with(Shape lead, Shape tail) {
  Ints s(lead.begin(), lead.end());
  s.append(tail.begin(), tail.end());
  return s;
}

/// numpy's matmul for operands of two or more dimensions.
Val product(NodeContext &c, Val x, Val y) {
  bool tx = takeTranspose(c, x), ty = takeTranspose(c, y);
  if (!x || !y) return {};
  int64_t rx = x.rank(), ry = y.rank();
  Shape leadX = x.shape().drop_back(2), leadY = y.shape().drop_back(2);
  int64_t m = x.dim(rx - (tx ? 1 : 2)), n = y.dim(ry - (ty ? 2 : 1)), k = x.dim(rx - (tx ? 2 : 1)), k2 = y.dim(ry - (ty ? 1 : 2));
  if (k != k2) return c.e.fail("inner dimensions " + llvm::Twine(k) + " and " + llvm::Twine(k2) + " differ");
  auto lead = broadcastShapes(leadX, leadY);
  if (!lead) return c.e.fail("leading dimensions do not broadcast");
  Ints shape = with(*lead, {m, n});
  Shape matrixX = x.shape().take_back(2), matrixY = y.shape().take_back(2);
  if (k == 1) { // an outer product is elementwise
    Val column = c.e.reshape(x, with(leadX, {m, 1})), row = c.e.reshape(y, with(leadY, {1, n}));
    return c.e.mul(column, row);
  }
  if (*elementsOf(leadY) == 1 && !tx) { // activation · weight
    Val flat = c.e.reshape(x, {*elementsOf(leadX) * m, k});
    return c.e.reshape(c.e.matmul(flat, c.e.reshape(y, matrixY), false, ty), shape);
  }
  if (*elementsOf(*lead) == 1) return c.e.reshape(c.e.matmul(c.e.reshape(x, matrixX), c.e.reshape(y, matrixY), tx, ty), shape);
  int64_t batch = *elementsOf(*lead);
  x = c.e.reshape(c.e.broadcastTo(x, with(*lead, matrixX)), with({batch}, matrixX));
  y = c.e.reshape(c.e.broadcastTo(y, with(*lead, matrixY)), with({batch}, matrixY));
  return c.e.reshape(c.e.matmul(x, y, tx, ty), shape);
}

Vals matmul(NodeContext &c) {
  Val x = c.in(0), y = c.in(1);
  if (!x || !y) return {};
  if (!x.isFloat() || !y.isFloat()) return c.fail("products of integers are not supported");
  if (x.rank() == 0 || y.rank() == 0) return c.fail("a scalar has no matrix product");
  bool vectorX = x.rank() == 1, vectorY = y.rank() == 1;
  if (vectorX) x = c.e.reshape(x, {1, x.dim(0)});
  if (vectorY) y = c.e.reshape(y, {y.dim(0), 1});
  Val r = product(c, x, y);
  if (!r) return {};
  Ints shape(r.shape().begin(), r.shape().end());
  if (vectorY) shape.pop_back();
  if (vectorX) shape.erase(shape.end() - (vectorY ? 1 : 2));
  return {c.e.reshape(r, shape)};
}

Vals gemm(NodeContext &c) {
  Val x = c.in(0), y = c.in(1);
  if (!x || !y) return {};
  if (x.rank() != 2 || y.rank() != 2 || !x.isFloat()) return c.fail("it multiplies float matrices only");
  bool tx = c.integer("transA", 0), ty = c.integer("transB", 0);
  tx ^= takeTranspose(c, x);
  ty ^= takeTranspose(c, y);
  Val r = c.e.matmul(x, y, tx, ty);
  double alpha = c.real("alpha", 1), beta = c.real("beta", 1);
  if (r && alpha != 1) r = c.e.mul(r, c.e.scalar(alpha, r.element()));
  if (!r || !c.has(2) || beta == 0) return {r};
  Val bias = c.inputs[2];
  if (beta != 1) bias = c.e.mul(bias, c.e.scalar(beta, bias.element()));
  return {c.e.add(r, bias)};
}

/// From minors: those of the first rows, for each choice of as many columns, are sums of products of elements of the last of these rows and
/// minors of one row less. Unlike elimination it has a gradient where the determinant is zero.
Vals determinant(NodeContext &c) {
  Val x = c.in(0);
  if (!x) return {};
  int64_t rank = x.rank(), n = rank < 2 ? 0 : x.dim(rank - 1);
  constexpr int64_t kMost = 8;
  if (n == 0 || x.dim(rank - 2) != n || !x.isFloat()) return c.fail("its input holds no square matrices of floats");
  if (n > kMost) return c.fail("determinants of up to " + llvm::Twine(kMost) + " rows are supported, not of " + llvm::Twine(n));
  auto at = [&](int64_t row, int64_t column) {
    Val element = c.e.sliceDim(c.e.sliceDim(x, rank - 2, row, row + 1), rank - 1, column, column + 1);
    return c.e.reshape(element, x.shape().drop_back(2));
  };
  std::vector<Val> minors(size_t(1) << n); // by the set of columns
  for (unsigned columns = 1; columns < minors.size(); ++columns) {
    int64_t row = llvm::popcount(columns) - 1;
    Val &sum = minors[columns];
    for (int64_t column = 0; column < n; ++column) {
      if (!(columns >> column & 1)) continue;
      Val term = row ? c.e.mul(minors[columns ^ 1u << column], at(row, column)) : at(row, column);
      bool negative = llvm::popcount(columns >> (column + 1)) % 2; // each column after it is one exchange
      sum = !sum ? (negative ? c.e.unary<nn::NegOp>(term) : term) : negative ? c.e.sub(sum, term) : c.e.add(sum, term);
    }
  }
  return {minors.back()};
}

} // namespace

void registerMatmul(Registry &r) {
  r["MatMul"] = {matmul};
  r["Gemm"] = {gemm};
  r["Det"] = {determinant, 11};
}

} // namespace zero::onnx
