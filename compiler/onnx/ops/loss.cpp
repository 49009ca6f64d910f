//===- loss.cpp - losses inside the graph --------------------------------------------------------===//
#include "compiler/onnx/importer.h"
#include <limits>

namespace zero::onnx {
namespace {

/// Classes last: scores [N, C, …] become rows [N·…, C], labels [N, …] become [N·…].
struct Rows {
  Val scores, labels;
  int64_t classes = 0, count = 0;
};

std::optional<Rows> rows(NodeContext &c) {
  Val x = c.in(0), labels = c.in(1);
  if (!x || !labels) return std::nullopt;
  Ints wanted{};
  if (x.rank() >= 2) {
    wanted.push_back(x.dim(0));
    wanted.append(x.shape().begin() + 2, x.shape().end());
  }
  if (x.rank() < 2 || labels.shape() != Shape(wanted)) {
    c.e.fail("scores and labels do not fit together");
    return std::nullopt;
  }
  if (c.has(2)) {
    c.e.fail("class weights are not supported");
    return std::nullopt;
  }
  Ints perm{0};
  for (int64_t i = 2; i < x.rank(); ++i) perm.push_back(i);
  perm.push_back(1);
  Rows r;
  r.classes = x.dim(1);
  r.count = *elementsOf(labels.shape());
  r.scores = c.e.reshape(c.e.transpose(x, perm), {r.count, r.classes});
  r.labels = c.e.reshape(labels, {r.count});
  return r;
}

/// 1 / (labels that count) for the mean, 1 for the sum.
Val scale(NodeContext &c, const Rows &r, std::string reduction, bool ignores, int64_t ignore) {
  mlir::Type f32 = c.e.f32();
  if (reduction == "sum") return c.e.reshape(c.e.scalar(1, f32), {1});
  if (reduction != "mean") return c.e.fail("reduction='" + reduction + "' is not supported, only 'mean' and 'sum'");
  if (!ignores) return c.e.reshape(c.e.scalar(1.0 / double(r.count), f32), {1});
  Val counts = c.e.compare(nn::Predicate::ne, r.labels, c.e.scalar(double(ignore), r.labels.element()));
  Val n = c.e.reduce(nn::ReductionKind::sum, c.e.convert(counts, f32), {0});
  return c.e.reshape(c.e.div(c.e.scalar(1, f32), n), {1});
}

int64_t ignored(NodeContext &c) { return c.attribute("ignore_index") ? c.integer("ignore_index", 0) : std::numeric_limits<int64_t>::min(); }

Vals softmaxCrossEntropy(NodeContext &c) {
  auto r = rows(c);
  if (!r) return {};
  Val s = scale(c, *r, c.string("reduction", "mean"), c.attribute("ignore_index"), ignored(c));
  return {c.e.crossEntropy(r->scores, r->labels, s, ignored(c))};
}

Vals negativeLogLikelihood(NodeContext &c) {
  auto r = rows(c);
  if (!r) return {};
  Val s = scale(c, *r, c.string("reduction", "mean"), c.attribute("ignore_index"), ignored(c));
  // Over a log-softmax it is the cross entropy of what the log-softmax was taken of (whose own log-softmax it is).
  if (c.importer.logitsBehind(c.inputs[0])) return {c.e.crossEntropy(r->scores, r->labels, s, ignored(c))};
  Val none = c.e.scalar(double(c.integer("ignore_index", 0)), r->labels.element()), zero = c.e.scalar(0, r->labels.element());
  Val skip = c.attribute("ignore_index") ? c.e.compare(nn::Predicate::eq, r->labels, none) : Val();
  Val safe = skip ? c.e.select(skip, zero, r->labels) : r->labels;
  Val taken = c.e.takeAlong(r->scores, c.importer.checkedIndices(safe, r->classes, c.e));
  if (skip) taken = c.e.select(skip, c.e.scalar(0, c.e.f32()), taken);
  Val sum = c.e.unary<nn::NegOp>(c.e.reduce(nn::ReductionKind::sum, taken, {0}));
  return {c.e.mul(sum, c.e.reshape(s, {}))};
}

/// Training mode with a rate draws random numbers; everything else is the identity.
Vals dropout(NodeContext &c) {
  Val x = c.in(0);
  if (!x) return {};
  bool training = false;
  double rate = c.real("ratio", 0.5);
  if (c.opset >= 12 && c.has(2)) {
    auto t = c.known(2);
    if (!t) return {};
    training = t->size() == 1 && t->at(0) != 0;
    if (c.has(1)) {
      auto ratio = c.known(1);
      if (!ratio || ratio->size() != 1) return c.fail("its ratio is no single number");
      rate = ratio->at(0);
    } else {
      rate = 0.5;
    }
  }
  if (!training || rate == 0) // and everything is kept
    return {x, c.node.outputs.size() > 1 ? c.e.full(x.shape(), 1, c.e.i1()) : Val()};
  if (!(rate > 0 && rate < 1)) return c.fail("its ratio " + std::to_string(rate) + " is not between 0 and 1");
  return {c.e.dropout(x, c.importer.seed(), rate, c.importer.nextRandomId(), c.importer.samples())};
}

} // namespace

void registerLosses(Registry &r) {
  r["SoftmaxCrossEntropyLoss"] = {softmaxCrossEntropy, 12};
  r["NegativeLogLikelihoodLoss"] = {negativeLogLikelihood, 12};
  r["Dropout"] = {dropout};
}

} // namespace zero::onnx
