//===- loss.cpp - losses inside the graph --------------------------------------------------------===//
#include "compiler/onnx/importer.h"
#include "compiler/onnx/origin.h"
#include <limits>

namespace zero::onnx {
namespace {

/// Classes last: scores [N, C, …] become rows [N·…, C], labels [N, …] become [N·…].
struct Rows {
  Val scores, labels;
  int64_t classes = 0, count = 0;
};

/// [N, …] of scores [N, C, …].
Ints placesOf(const Val &scores) {
  Ints places{scores.dim(0)};
  places.append(scores.shape().begin() + 2, scores.shape().end());
  return places;
}

/// [N·…, C] of scores [N, C, …].
Val rowsOf(NodeContext &c, const Val &scores) {
  int64_t classes = scores.dim(1), count = *elementsOf(placesOf(scores));
  return c.e.reshape(c.e.transpose(scores, channelsLast(scores.rank())), {count, classes});
}

std::optional<Rows> rows(NodeContext &c) {
  Val x = c.in(0), labels = c.in(1);
  if (!x || !labels) return std::nullopt;
  if (x.rank() < 2 || labels.shape() != Shape(placesOf(x))) {
    c.e.fail("scores and labels do not fit together");
    return std::nullopt;
  }
  Rows r;
  r.classes = x.dim(1);
  r.count = *elementsOf(labels.shape());
  r.scores = rowsOf(c, x);
  r.labels = c.e.reshape(labels, {r.count});
  return r;
}

/// Labels that count; null where all do.
Val counting(NodeContext &c, const Rows &r) {
  if (!c.attribute("ignore_index")) return {};
  return c.e.compare(nn::Predicate::ne, r.labels, c.e.scalar(double(c.integer("ignore_index", 0)), r.labels.element()));
}

/// The sum, or the mean over the labels that count, of the cross entropy of `logits`.
Val crossEntropy(NodeContext &c, const Rows &r, const std::string &reduction) {
  Val scale = c.e.scalar(1, c.e.f32()), counts = counting(c, r);
  if (reduction == "mean") {
    Val n = counts ? c.e.reduce(nn::ReductionKind::sum, c.e.convert(counts, c.e.f32()), {0}) : c.e.scalar(double(r.count), c.e.f32());
    scale = c.e.div(scale, n);
  }
  int64_t ignore = counts ? c.integer("ignore_index", 0) : std::numeric_limits<int64_t>::min();
  return c.e.crossEntropy(r.scores, r.labels, c.e.reshape(scale, {1}), ignore);
}

/// The part of each label that is spread over all classes, of PyTorch's call; its newer exporter leaves it there alone.
double smoothingOf(const Node &node) {
  double part = 0;
  auto call = argumentsOf(node, "cross_entropy_loss.default");
  return call.size() > 5 && !call[5].getAsDouble(part) ? part : 0;
}

/// The weight of each class, which the node has; nothing after a report.
Val classWeights(NodeContext &c, int64_t classes) {
  auto known = c.importer.known(c.inputs[2], c.e);
  Val table = known ? Val(*known) : c.inputs[2];
  if (table.shape() == Shape{classes}) return table;
  c.e.fail("it needs one weight for each class, not " + text(table.shape()));
  return {};
}

/// Losses row by row: with a weight for each class, with labels that are smoothed, or not reduced.
Val rowByRow(NodeContext &c, const Rows &r, const Val &logarithms, const std::string &reduction) {
  Val counts = counting(c, r), zero = c.e.scalar(0, c.e.f32());
  Val safe = counts ? c.e.select(counts, r.labels, c.e.scalar(0, r.labels.element())) : r.labels;
  safe = c.importer.checkedIndices(safe, r.classes, c.e);
  Val weight = c.e.full({r.count}, 1, c.e.f32()), ofClasses = logarithms;
  if (c.has(2)) {
    Val table = classWeights(c, r.classes);
    if (!table) return {};
    weight = c.e.gather(table, safe);
    ofClasses = c.e.mul(logarithms, table);
  }
  if (counts) weight = c.e.select(counts, weight, zero);
  Val loss = c.e.takeAlong(logarithms, safe);
  if (counts) loss = c.e.select(counts, loss, zero); // a label that does not count may stand at -inf
  loss = c.e.unary<nn::NegOp>(c.e.mul(loss, weight));
  if (double part = smoothingOf(c.node)) {
    Val all = c.e.reduce(nn::ReductionKind::sum, ofClasses, {1});
    if (counts) all = c.e.select(counts, all, zero);
    Val share = c.e.scalar(part / double(r.classes), c.e.f32());
    loss = c.e.sub(c.e.mul(loss, c.e.scalar(1 - part, c.e.f32())), c.e.mul(all, share));
  }
  if (reduction == "none") return c.e.reshape(loss, c.inputs[1].shape());
  loss = c.e.reduce(nn::ReductionKind::sum, loss, {0});
  return reduction == "sum" ? loss : c.e.div(loss, c.e.reduce(nn::ReductionKind::sum, weight, {0}));
}

Vals loss(NodeContext &c, bool ofLogarithms) {
  auto r = rows(c);
  if (!r) return {};
  c.importer.checkLabels(r->labels, r->classes, c.attribute("ignore_index") ? std::optional(c.integer("ignore_index", 0)) : std::nullopt,
                         c.e);
  std::string reduction = c.string("reduction", "mean");
  if (reduction != "mean" && reduction != "sum" && reduction != "none") return c.fail("reduction='" + reduction + "' is not supported");
  // Over a log-softmax of the classes it is the cross entropy of what that was taken of (whose own log-softmax it is).
  bool ofLogits = !ofLogarithms || (c.inputs[0].rank() == 2 && c.importer.logitsBehind(c.inputs[0]));
  Val logarithms = ofLogarithms ? Val() : c.e.logSoftmax(r->scores);
  bool plain = !c.has(2) && reduction != "none" && smoothingOf(c.node) == 0;
  Vals results{ofLogits && plain ? crossEntropy(c, *r, reduction) : rowByRow(c, *r, ofLogarithms ? r->scores : logarithms, reduction)};
  if (c.node.outputs.size() > 1 && !ofLogarithms && logarithms) { // log_prob, in the layout of the scores
    Val x = c.inputs[0];
    Ints last{x.dim(0)}, back{0, x.rank() - 1};
    last.append(x.shape().begin() + 2, x.shape().end());
    last.push_back(r->classes);
    for (int64_t i = 1; i + 1 < x.rank(); ++i) back.push_back(i);
    results.push_back(c.e.transpose(c.e.reshape(logarithms, last), back));
  }
  return results;
}

/// Labels that are probabilities of the classes, as PyTorch's call takes them and its newer exporter hands them on. A mean is over all
/// places, whatever classes weigh.
Vals ofProbabilities(NodeContext &c) {
  Val x = c.inputs[0], labels = c.inputs[1];
  int64_t classes = x.dim(1);
  Val shares = c.e.convert(rowsOf(c, labels), c.e.f32());
  if (double part = smoothingOf(c.node))
    shares = c.e.add(c.e.mul(shares, c.e.scalar(1 - part, c.e.f32())), c.e.scalar(part / double(classes), c.e.f32()));
  if (c.has(2)) {
    Val table = classWeights(c, classes);
    if (!table) return {};
    shares = c.e.mul(shares, table);
  }
  Val loss = c.e.unary<nn::NegOp>(c.e.reduce(nn::ReductionKind::sum, c.e.mul(shares, c.e.logSoftmax(rowsOf(c, x))), {1}));
  std::string reduction = c.string("reduction", "mean");
  if (reduction == "none") return {c.e.reshape(loss, placesOf(x))};
  loss = c.e.reduce(nn::ReductionKind::sum, loss, {0});
  if (reduction == "sum") return {loss};
  return reduction == "mean" ? Vals{c.e.div(loss, c.e.scalar(double(*elementsOf(placesOf(x))), c.e.f32()))}
                             : c.fail("reduction='" + reduction + "' is not supported");
}

Vals softmaxCrossEntropy(NodeContext &c) {
  Val x = c.in(0), labels = c.in(1);
  if (!x || !labels) return {};
  bool probabilities = x.rank() >= 2 && labels.isFloat() && labels.shape() == x.shape() && c.node.outputs.size() == 1;
  return probabilities ? ofProbabilities(c) : loss(c, false);
}
Vals negativeLogLikelihood(NodeContext &c) { return loss(c, true); }

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
  if (rate > 0) c.importer.notes.count(training ? NoteKind::Dropout : NoteKind::InactiveDropout, pathOf(c.node));
  if (!training || rate == 0) // and everything is kept
    return {x, c.node.outputs.size() > 1 ? c.e.full(x.shape(), 1, c.e.i1()) : Val()};
  if (!(rate > 0 && rate < 1)) return c.fail("its ratio " + std::to_string(rate) + " is not between 0 and 1");
  return {c.e.dropout(x, c.importer.seed(), rate, c.importer.nextRandomId())};
}

} // namespace

void registerLosses(Registry &r) {
  r["SoftmaxCrossEntropyLoss"] = {softmaxCrossEntropy, 12};
  r["NegativeLogLikelihoodLoss"] = {negativeLogLikelihood, 12};
  r["Dropout"] = {dropout};
}

} // namespace zero::onnx
