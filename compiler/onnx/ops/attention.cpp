//===- attention.cpp - Attention and RotaryEmbedding of opset 23 ---------------------------------===//
#include "compiler/onnx/importer.h"
#include <cmath>

namespace zero::onnx {
namespace {

/// [batch, length, heads·dim] to [batch, heads, length, dim].
Val splitHeads(NodeContext &c, const Val &x, int64_t heads) {
  if (!x || x.rank() == 4) return x;
  if (x.rank() != 3 || heads <= 0 || x.dim(2) % heads) return c.e.fail("q_num_heads or kv_num_heads does not cut the last dimension");
  return c.e.transpose(c.e.reshape(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads}), {0, 2, 1, 3});
}

/// Whether a parameter takes part in `v`: its mask then needs a gradient.
bool dependsOnParameter(mlir::Value v) {
  llvm::DenseSet<mlir::Operation *> seen;
  for (llvm::SmallVector<mlir::Value> work{v}; !work.empty();) {
    mlir::Operation *op = work.pop_back_val().getDefiningOp();
    if (!op || !seen.insert(op).second) continue;
    if (llvm::isa<nn::GetOp>(op)) return true;
    llvm::append_range(work, op->getOperands());
  }
  return false;
}

Vals attention(NodeContext &c) {
  Val q = c.in(0), k = c.in(1), v = c.in(2);
  if (!q || !k || !v ||
      !c.only({"is_causal", "kv_num_heads", "q_num_heads", "qk_matmul_output_mode", "scale", "softcap", "softmax_precision"}))
    return {};
  bool flat = q.rank() == 3;
  q = splitHeads(c, q, c.integer("q_num_heads", 0));
  k = splitHeads(c, k, c.integer("kv_num_heads", 0));
  v = splitHeads(c, v, c.integer("kv_num_heads", 0));
  if (!q || !k || !v) return {};
  if (c.has(6)) return c.fail("nonpad_kv_seqlen is not supported");
  int64_t past = 0;
  if (c.has(4) && c.has(5)) {
    if (c.inputs[4].rank() != 4) return c.fail("past_key is not of rank 4");
    past = c.inputs[4].dim(2);
    k = c.e.concat({c.inputs[4], k}, 2);
    v = c.e.concat({c.inputs[5], v}, 2);
  }
  if (!k || !v) return {};
  bool fit = q.rank() == 4 && k.rank() == 4 && v.rank() == 4 && q.dim(0) == k.dim(0) && k.dim(0) == v.dim(0) && k.dim(1) == v.dim(1) &&
             k.dim(2) == v.dim(2) && q.dim(3) == k.dim(3) && k.dim(1) > 0 && q.dim(1) % k.dim(1) == 0 && q.dim(3) > 0;
  if (!fit) return c.fail("query, key and value do not fit together");
  int64_t batch = q.dim(0), heads = q.dim(1), queries = q.dim(2), keys = k.dim(2), kvHeads = k.dim(1), width = v.dim(3);
  double scale = c.real("scale", 0), softcap = c.real("softcap", 0), hidden = -HUGE_VAL;
  if (!c.attribute("scale")) scale = 1 / std::sqrt(double(q.dim(3)));

  Val mask;
  if (c.has(3)) {
    mask = c.inputs[3];
    if (mask.rank() > 4) return c.fail("its mask is not of rank 4 or less");
    Ints shape(4 - mask.rank(), 1);
    shape.append(mask.shape().begin(), mask.shape().end());
    mask = c.e.reshape(mask, shape);
    if (mask && mask.isBool()) mask = c.e.select(mask, c.e.scalar(0, c.e.f32()), c.e.scalar(hidden, c.e.f32()));
    if (mask && mask.dim(3) < keys && mask.dim(3) != 1) // shorter masks hide the rest
      mask = c.e.pad(mask, hidden, {0, 0, 0, 0}, {0, 0, 0, keys - mask.dim(3)});
    if (!mask) return {};
    auto common = broadcastShapes(mask.shape(), {batch, heads, queries, keys});
    if (!common || Shape(*common) != Shape({batch, heads, queries, keys})) return c.fail("its mask does not fit the scores");
  }
  bool causal = c.integer("is_causal", 0);
  if (causal && queries + past != keys) {
    // The operator's diagonal starts in the first key; where that is not the one ending in the last, it is a mask.
    Val row = c.e.iota({1, 1, queries, 1}, 2, c.e.i64()), column = c.e.iota({1, 1, 1, keys}, 3, c.e.i64());
    Val seen = c.e.compare(nn::Predicate::le, column, c.e.add(row, c.e.scalar(double(past), c.e.i64())));
    Val bias = c.e.select(seen, c.e.scalar(0, c.e.f32()), c.e.scalar(hidden, c.e.f32()));
    mask = mask ? c.e.add(mask, bias) : bias;
    causal = false;
  }
  bool learnt = mask && mask.value && dependsOnParameter(mask.value);
  Val y;
  if (!learnt && softcap == 0 && width == q.dim(3)) {
    y = c.e.attention(q, k, v, mask, scale, causal);
  } else {
    auto repeat = [&](const Val &x) {
      Ints grouped{batch, kvHeads, heads / kvHeads, keys, x.shape().back()};
      return c.e.reshape(c.e.broadcast(x, {0, 1, 3, 4}, grouped), {batch * heads, keys, x.shape().back()});
    };
    Val s = c.e.matmul(c.e.reshape(q, {batch * heads, queries, q.dim(3)}), repeat(k), false, true);
    s = c.e.mul(s, c.e.scalar(scale, c.e.f32()));
    if (softcap != 0) s = c.e.mul(c.e.unary<nn::TanhOp>(c.e.mul(s, c.e.scalar(1 / softcap, c.e.f32()))), c.e.scalar(softcap, c.e.f32()));
    s = c.e.reshape(s, {batch, heads, queries, keys});
    if (causal) {
      Val row = c.e.iota({queries, 1}, 0, c.e.i64()), column = c.e.iota({1, keys}, 1, c.e.i64());
      Val open = c.e.compare(nn::Predicate::le, column, c.e.add(row, c.e.scalar(double(keys - queries), c.e.i64())));
      s = c.e.add(s, c.e.select(open, c.e.scalar(0, c.e.f32()), c.e.scalar(hidden, c.e.f32())));
    }
    if (mask) s = c.e.add(s, mask);
    Val p = c.e.softmax(s);
    if (mask) p = c.e.select(c.e.isNan(p), c.e.scalar(0, c.e.f32()), p); // of a query that sees no key
    p = c.e.reshape(p, {batch * heads, queries, keys});
    y = c.e.reshape(c.e.matmul(p, repeat(v)), {batch, heads, queries, width});
  }
  if (flat) y = c.e.reshape(c.e.transpose(y, {0, 2, 1, 3}), {batch, queries, heads * width});
  return {y, k, v};
}

Vals rotaryEmbedding(NodeContext &c) {
  Val x = c.in(0), cos = c.in(1), sin = c.in(2);
  if (!x || !cos || !sin) return {};
  bool flat = x.rank() == 3;
  x = splitHeads(c, x, c.integer("num_heads", 0));
  if (!x || x.rank() != 4) return c.fail("its input is not of rank 3 or 4");
  int64_t batch = x.dim(0), heads = x.dim(1), length = x.dim(2), dim = x.dim(3), part = c.integer("rotary_embedding_dim", 0);
  if (part == 0) part = dim;
  if (part < 2 || part > dim || part % 2) return c.fail("rotary_embedding_dim is out of range");
  if (c.has(3)) {
    if (cos.rank() != 2 || sin.rank() != 2) return c.fail("its tables are not of rank 2");
    Val at = c.importer.checkedIndices(c.inputs[3], cos.dim(0), c.e);
    cos = c.e.gather(cos, at);
    sin = c.e.gather(sin, at);
  }
  int64_t half = part / 2;
  for (Val *t : {&cos, &sin}) { // [batch, length, half] beside every head
    if (!*t || t->rank() != 3 || t->dim(2) != half) return c.fail("its tables do not fit the rotated dimensions");
    *t = c.e.reshape(*t, {t->dim(0), 1, t->dim(1), half});
  }
  Val turned = c.e.sliceDim(x, 3, 0, part), rest = c.e.sliceDim(x, 3, part, dim), a, b;
  bool interleaved = c.integer("interleaved", 0);
  if (interleaved) {
    Val pairs = c.e.reshape(turned, {batch, heads, length, half, 2});
    a = c.e.reshape(c.e.sliceDim(pairs, 4, 0, 1), {batch, heads, length, half});
    b = c.e.reshape(c.e.sliceDim(pairs, 4, 1, 2), {batch, heads, length, half});
  } else {
    a = c.e.sliceDim(turned, 3, 0, half);
    b = c.e.sliceDim(turned, 3, half, part);
  }
  Val re = c.e.sub(c.e.mul(a, cos), c.e.mul(b, sin)), im = c.e.add(c.e.mul(a, sin), c.e.mul(b, cos));
  Val y;
  if (interleaved)
    y = c.e.reshape(c.e.concat({c.e.reshape(re, {batch, heads, length, half, 1}), c.e.reshape(im, {batch, heads, length, half, 1})}, 4),
                    {batch, heads, length, part});
  else
    y = c.e.concat({re, im}, 3);
  y = c.e.concat({y, rest}, 3);
  if (flat) y = c.e.reshape(c.e.transpose(y, {0, 2, 1, 3}), {batch, length, heads * dim});
  return {y};
}

} // namespace

void registerAttention(Registry &r) {
  r["Attention"] = {attention, 23};
  r["RotaryEmbedding"] = {rotaryEmbedding, 23};
}

} // namespace zero::onnx
