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

/// Letters of one operand of an einsum, lower-case and upper-case ones each a dimension.
bool letters(StringRef term, std::string &out) {
  for (char l : term) {
    if (l == ' ') continue;
    if (!isalpha(l) || out.find(l) != std::string::npos) return false;
    out.push_back(l);
  }
  return true;
}

/// Einsum of one or two operands without repeated letters or "...": sums over letters of one operand alone, then a
/// batched product of [batch, free x, contracted] and [batch, contracted, free y].
Vals einsum(NodeContext &c) {
  std::string equation = c.string("equation", "");
  auto [left, right] = StringRef(equation).split("->");
  llvm::SmallVector<StringRef> terms;
  left.split(terms, ',');
  if (terms.size() != c.inputs.size() || terms.size() > 2)
    return c.fail("equation '" + equation + "' is not supported: one or two operands only");
  std::string in[2], out;
  llvm::DenseMap<char, int64_t> sizes;
  Val x[2];
  for (size_t i = 0; i < terms.size(); ++i) {
    x[i] = c.in(i);
    if (!letters(terms[i], in[i]))
      return c.fail("equation '" + equation + "' is not supported: it repeats a letter in one operand or uses '...'");
    if (!x[i] || int64_t(in[i].size()) != x[i].rank()) return c.fail("equation '" + equation + "' does not fit operand " + llvm::Twine(i));
    for (auto [d, l] : llvm::enumerate(in[i])) {
      auto [at, fresh] = sizes.try_emplace(l, x[i].dim(d));
      if (!fresh && at->second != x[i].dim(d)) return c.fail("equation '" + equation + "' gives '" + std::string(1, l) + "' two sizes");
    }
  }
  if (equation.find("->") == std::string::npos) { // implicit: letters that occur once, in alphabetical order
    for (auto &[l, n] : sizes)
      if ((in[0] + in[1]).find(l) == (in[0] + in[1]).rfind(l)) out.push_back(l);
    llvm::sort(out);
  } else if (!letters(right, out)) {
    return c.fail("equation '" + equation + "' is not supported: it repeats a letter in its result or uses '...'");
  }
  for (char l : out)
    if (!sizes.count(l)) return c.fail("equation '" + equation + "' invents '" + std::string(1, l) + "'");
  // Sum out what only one operand knows.
  for (size_t i = 0; i < terms.size(); ++i) {
    Ints drop;
    std::string kept;
    for (auto [d, l] : llvm::enumerate(in[i]))
      if (out.find(l) == std::string::npos && (terms.size() == 1 || in[1 - i].find(l) == std::string::npos))
        drop.push_back(int64_t(d));
      else
        kept.push_back(l);
    x[i] = c.e.reduce(nn::ReductionKind::sum, x[i], drop);
    in[i] = kept;
  }
  auto arrange = [&](const Val &v, StringRef have, StringRef want) {
    Ints perm;
    for (char l : want) perm.push_back(int64_t(have.find(l)));
    return c.e.transpose(v, perm);
  };
  if (terms.size() == 1) return {arrange(x[0], in[0], out)};
  std::string batch, contracted, freeX, freeY;
  for (char l : in[0]) (in[1].find(l) == std::string::npos ? freeX : out.find(l) == std::string::npos ? contracted : batch).push_back(l);
  for (char l : in[1])
    if (in[0].find(l) == std::string::npos) freeY.push_back(l);
  auto sizeOf = [&](StringRef ls) {
    int64_t n = 1;
    for (char l : ls) n *= sizes[l];
    return n;
  };
  int64_t b = sizeOf(batch), m = sizeOf(freeX), k = sizeOf(contracted), n = sizeOf(freeY);
  Ints shape;
  std::string order = batch + freeX + freeY;
  for (char l : order) shape.push_back(sizes[l]);
  Val l = c.e.reshape(arrange(x[0], in[0], batch + freeX + contracted), {b, m, k});
  Val r = c.e.reshape(arrange(x[1], in[1], batch + freeY + contracted), {b, n, k});
  if (!l || !r) return {};
  Val y;
  if (k == 1)
    y = c.e.mul(l, c.e.reshape(r, {b, 1, n}));
  else if (b == 1)
    y = c.e.matmul(c.e.reshape(l, {m, k}), c.e.reshape(r, {n, k}), false, true);
  else
    y = c.e.matmul(l, r, false, true);
  return {arrange(c.e.reshape(y, shape), order, out)};
}

} // namespace

void registerMatmul(Registry &r) {
  r["MatMul"] = {matmul};
  r["Gemm"] = {gemm};
  r["Einsum"] = {einsum, 12};
}

} // namespace zero::onnx
