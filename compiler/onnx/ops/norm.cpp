//===- norm.cpp - normalisations -----------------------------------------------------------------===//
#include "compiler/onnx/ops/norm.h"
#include "compiler/onnx/origin.h"

namespace zero::onnx {

Val rootOfSquares(NodeContext &c, const Val &sum) {
  if (!sum || !sum.isFloat()) return c.e.unary<nn::SqrtOp>(sum);
  Val zero = c.e.scalar(0, sum.element()), none = c.e.compare(nn::Predicate::eq, sum, zero);
  return c.e.select(none, zero, c.e.unary<nn::SqrtOp>(c.e.select(none, c.e.scalar(1, sum.element()), sum)));
}

namespace {

/// The input with the normalised dimensions flattened into one, scale and bias to match.
struct Rows {
  Val x, scale, bias;
  Ints kept; // shape of mean and rstd: normalised dimensions are 1
  /// What reaches beyond the normalised dimensions (a weight per head) and follows the operation; `scale` is 1 then.
  Val factor, term;
};

bool reaches(const Val &v, Shape normalised) {
  auto common = broadcastShapes(v.shape(), normalised);
  return !common || Shape(*common) != normalised;
}

std::optional<Rows> rows(NodeContext &c) {
  Val x = c.in(0), scale = c.in(1);
  if (!x || !scale) return std::nullopt;
  int64_t axis = c.dimension(c.integer("axis", -1), x.rank());
  if (axis < 0) return std::nullopt;
  Shape normalised = x.shape().drop_front(axis);
  Ints shape(x.shape().begin(), x.shape().begin() + axis), flat{*elementsOf(normalised)};
  Rows r;
  r.kept = shape;
  r.kept.append(normalised.size(), 1);
  shape.push_back(flat[0]);
  r.x = c.e.reshape(x, shape);
  Val bias = c.has(2) ? c.inputs[2] : Val();
  if (reaches(scale, normalised) || (bias && reaches(bias, normalised))) {
    r.factor = scale, r.term = bias;
    scale = c.e.scalar(1, x.element()), bias = {};
  }
  r.scale = c.e.reshape(c.e.broadcastTo(scale, normalised), flat);
  if (bias) r.bias = c.e.reshape(c.e.broadcastTo(bias, normalised), flat);
  if (c.e.failed()) return std::nullopt;
  return r;
}

/// The rows in the shape of the input, with what follows.
Val finish(NodeContext &c, const Rows &r, const Val &y) {
  Val result = c.e.reshape(y, c.inputs[0].shape());
  if (r.factor) result = c.e.mul(result, r.factor);
  if (r.term) result = c.e.add(result, r.term);
  if (result && result.shape() != c.inputs[0].shape())
    return c.e.fail("scale and bias do not fit an input of shape " + text(c.inputs[0].shape()));
  return result;
}

Vals layerNorm(NodeContext &c) {
  auto r = rows(c);
  if (!r) return {};
  Val mean, rstd;
  Val y = c.e.layerNorm(r->x, r->scale, r->bias, c.real("epsilon", 1e-5), &mean, &rstd);
  if (!y) return {};
  Vals results{finish(c, *r, y)};
  if (c.node.outputs.size() > 1) results.append({c.e.reshape(mean, r->kept), c.e.reshape(rstd, r->kept)});
  return results;
}

Vals rmsNorm(NodeContext &c) {
  auto r = rows(c);
  if (!r) return {};
  return {finish(c, *r, c.e.rmsNorm(r->x, r->scale, c.real("epsilon", 1e-5)))};
}

/// x [N, C, …] normalised within each of `groups` groups of channels, then scaled and shifted per channel.
Vals grouped(NodeContext &c, int64_t groups) {
  Val x = c.in(0), scale = c.in(1), bias = c.in(2);
  if (!x || !scale || !bias) return {};
  if (x.rank() < 2 || groups <= 0 || x.dim(1) % groups) return c.fail("the channels cannot be cut into " + llvm::Twine(groups) + " groups");
  int64_t channels = x.dim(1);
  auto size = elementsOf(x.shape());
  Ints flat{x.dim(0), groups, *size / std::max<int64_t>(1, x.dim(0) * groups)};
  Val ones = c.e.full({flat[2]}, 1, x.element());
  Val y = c.e.reshape(c.e.layerNorm(c.e.reshape(x, flat), ones, Val(), c.real("epsilon", 1e-5)), x.shape());
  Ints column(x.rank() - 1, 1);
  column[0] = channels;
  for (Val *v : {&scale, &bias}) {
    if (v->rank() == 1 && v->dim(0) == groups && groups != channels) // GroupNormalization-18 has one number per group
      *v = c.e.reshape(c.e.broadcast(*v, {0}, {groups, channels / groups}), {channels});
    *v = c.e.reshape(*v, column);
  }
  return {c.e.add(c.e.mul(y, scale), bias)};
}

Vals groupNorm(NodeContext &c) { return grouped(c, c.integer("num_groups", 0)); }
Vals instanceNorm(NodeContext &c) {
  Val x = c.in(0);
  return x && x.rank() >= 2 ? grouped(c, x.dim(1)) : c.fail("the input has no channels");
}

/// By running statistics, as a model that is evaluated has it: a scale and a shift per channel. By its own where it is no batch, such as
/// weights that are normalised before each use.
Vals batchNorm(NodeContext &c) {
  if (!c.only({"epsilon", "momentum", "training_mode", "spatial"})) return {};
  bool training = c.integer("training_mode", 0) || (c.opset < 14 && c.node.outputs.size() > 1); // before 14 the outputs tell
  for (StringRef function : {"_native_batch_norm_legit_functional.default", "_native_batch_norm_legit.default", "batch_norm.default"})
    if (auto call = argumentsOf(c.node, function); call.size() > 5) training |= call[5] == "True"; // which the newer exporter has dropped
  if (training && c.in(0) && c.in(0).rank() >= 2 && c.in(0).dim(0) == 1) return grouped(c, c.in(0).dim(1));
  if (training)
    return c.fail("training_mode = 1 normalises by the batch's own statistics, which is not supported; export with model.eval(), "
                  "dynamo=True and optimize=False, as "
                  "models/export.py does");
  Val x = c.in(0), scale = c.in(1), bias = c.in(2), mean = c.in(3), variance = c.in(4);
  if (!x || !scale || !bias || !mean || !variance) return {};
  for (Val *statistic : {&mean, &variance}) // never trained; computed where weights are normalised before each use
    if (auto known = c.importer.known(*statistic, c.e)) *statistic = Val(*known);
  if (x.rank() < 2) return c.fail("the input has no channels");
  Ints column(x.rank() - 1, 1);
  column[0] = x.dim(1);
  for (const Val &v : {scale, bias, mean, variance})
    if (v.shape() != Shape({column[0]})) return c.fail("scale, bias, mean and variance must have one number for each of the channels");
  Val deviation = c.e.unary<nn::SqrtOp>(c.e.add(variance, c.e.scalar(c.real("epsilon", 1e-5), x.element())));
  Val y = c.e.div(c.e.sub(x, c.e.reshape(mean, column)), c.e.reshape(deviation, column));
  return {c.e.add(c.e.mul(y, c.e.reshape(scale, column)), c.e.reshape(bias, column))};
}

/// x over its norm along one axis.
Vals lpNorm(NodeContext &c) {
  Val x = c.in(0);
  int64_t axis = x ? c.dimension(c.integer("axis", -1), x.rank()) : -1, p = c.integer("p", 2);
  if (axis < 0) return {};
  if (p != 1 && p != 2) return c.fail("p = " + llvm::Twine(p) + " is not supported, only 1 and 2");
  Ints kept(x.shape().begin(), x.shape().end());
  kept[axis] = 1;
  Val size = c.e.reduce(nn::ReductionKind::sum, p == 1 ? c.e.unary<nn::AbsOp>(x) : c.e.mul(x, x), {axis});
  if (p == 2) size = rootOfSquares(c, size);
  if (size) // what is all zero stays zero
    size = c.e.select(c.e.compare(nn::Predicate::eq, size, c.e.scalar(0, size.element())), c.e.scalar(1, size.element()), size);
  return {c.e.div(x, c.e.reshape(size, kept))};
}

} // namespace

void registerNorms(Registry &r) {
  r["LayerNormalization"] = {layerNorm, 17};
  r["RMSNormalization"] = {rmsNorm, 23};
  r["GroupNormalization"] = {groupNorm, 18};
  r["InstanceNormalization"] = {instanceNorm};
  r["BatchNormalization"] = {batchNorm};
  r["LpNormalization"] = {lpNorm};
}

} // namespace zero::onnx
