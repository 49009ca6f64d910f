//===- control.cpp - sequences, branches and loops, resolved while importing ----------------------===//
#include "compiler/onnx/importer.h"
#include <limits>

namespace zero::onnx {
namespace {

/// Every insertion makes a new sequence.
constexpr size_t kMostInserted = 1024;

Val sequenceOf(std::vector<Val> parts) {
  Val v;
  v.sequence = std::make_shared<const std::vector<Val>>(std::move(parts));
  return v;
}

std::shared_ptr<const std::vector<Val>> sequence(NodeContext &c, size_t i) {
  Val v = c.in(i);
  if (v && !v.sequence) c.e.fail("input " + llvm::Twine(i) + " is no sequence");
  return v.sequence;
}

/// Position in a sequence of n, up to `last`; -1 after a report.
int64_t position(NodeContext &c, size_t i, int64_t n, int64_t last) {
  auto t = c.known(i);
  if (!t || t->size() != 1) return c.e.fail("its position is no single number"), -1;
  int64_t p = t->integer(0);
  p = p < 0 ? p + n : p;
  return p >= 0 && p <= last ? p : (c.e.fail("position " + llvm::Twine(p) + " is out of a sequence of " + llvm::Twine(n)), -1);
}

Vals splitToSequence(NodeContext &c) {
  Val x = c.in(0);
  if (!x || x.sequence) return c.fail("it splits tensors only");
  int64_t axis = c.dimension(c.integer("axis", 0), x.rank());
  if (axis < 0) return {};
  int64_t n = x.dim(axis);
  Ints sizes;
  bool drop = false;
  if (!c.has(1)) {
    if (n > 1 << 20) return c.fail("it makes too many pieces");
    sizes.assign(n, 1);
    drop = !c.integer("keepdims", 1);
  } else {
    auto split = c.knownInts(1);
    if (!split) return {};
    if (c.inputs[1].rank() == 0) { // one size for all pieces, the last may be shorter
      int64_t size = (*split)[0];
      if (size <= 0 || n / size > 1 << 20) return c.fail("its piece size is out of range");
      drop = size == 1 && !c.integer("keepdims", 1); // ONNX ignores it beside a size, but PyTorch 2.7 means torch.unbind by that
      for (int64_t at = 0; at < n; at += size) sizes.push_back(std::min(size, n - at));
    } else {
      sizes = *split;
    }
  }
  std::vector<Val> parts;
  int64_t at = 0;
  for (int64_t s : sizes) {
    if (s < 0 || s > n - at) return c.fail("its pieces are longer than the dimension");
    Val part = c.e.sliceDim(x, axis, at, at + s);
    if (drop) {
      Ints shape(x.shape().begin(), x.shape().end());
      shape.erase(shape.begin() + axis);
      part = c.e.reshape(part, shape);
    }
    parts.push_back(part);
    at += s;
  }
  return {sequenceOf(std::move(parts))};
}

Vals sequenceAt(NodeContext &c) {
  auto s = sequence(c, 0);
  int64_t p = s ? position(c, 1, int64_t(s->size()), int64_t(s->size()) - 1) : -1;
  return {p < 0 ? Val() : (*s)[p]};
}

Vals sequenceConstruct(NodeContext &c) {
  if (llvm::any_of(c.inputs, [](const Val &v) { return bool(v.sequence); })) return c.fail("sequences of sequences are not supported");
  return {sequenceOf({c.inputs.begin(), c.inputs.end()})};
}
Vals sequenceEmpty(NodeContext &c) { return {sequenceOf({})}; }

Vals sequenceInsert(NodeContext &c) {
  auto s = sequence(c, 0);
  Val x = c.in(1);
  if (!s || !x) return {};
  if (x.sequence) return c.fail("sequences of sequences are not supported");
  if (s->size() >= kMostInserted) return c.fail("more than " + llvm::Twine(kMostInserted) + " insertions are not supported");
  std::vector<Val> parts = *s;
  int64_t end = int64_t(parts.size()), p = c.has(2) ? position(c, 2, end, end) : end;
  if (p < 0) return {};
  parts.insert(parts.begin() + p, x);
  return {sequenceOf(std::move(parts))};
}

Vals sequenceLength(NodeContext &c) {
  auto s = sequence(c, 0);
  return {s ? c.e.scalar(double(s->size()), c.e.i64()) : Val()};
}

/// Tensors of one shape along a new dimension.
Val stack(NodeContext &c, Vals parts, int64_t axis) {
  for (Val &v : parts) {
    if (v.sequence) return c.e.fail("sequences of sequences are not supported");
    Ints shape(v.shape().begin(), v.shape().end());
    if (axis > int64_t(shape.size())) return c.e.fail("its parts differ in rank");
    shape.insert(shape.begin() + axis, 1);
    v = c.e.reshape(v, shape);
  }
  return c.e.concat(parts, axis);
}

Vals concatFromSequence(NodeContext &c) {
  auto s = sequence(c, 0);
  if (!s || s->empty()) return c.fail("the sequence is empty");
  Vals parts(s->begin(), s->end());
  bool fresh = c.integer("new_axis", 0);
  int64_t axis = c.dimension(c.integer("axis", 0), parts[0].rank() + fresh);
  if (axis < 0) return {};
  return {fresh ? stack(c, std::move(parts), axis) : c.e.concat(parts, axis)};
}

Vals ifOp(NodeContext &c) {
  auto condition = c.known(0);
  if (!condition || condition->size() != 1) return c.fail("its condition is no single known value");
  const Attribute *a = c.attribute(condition->at(0) != 0 ? "then_branch" : "else_branch");
  if (!a || !a->graph) return c.fail("it has no such branch");
  return c.importer.subgraph(*a->graph, c);
}

/// How often a loop goes round at most: as often as it may where it has no trip count; nothing after a report.
std::optional<int64_t> tripCount(NodeContext &c) {
  if (!c.has(0)) return std::numeric_limits<int64_t>::max();
  auto count = c.knownInts(0);
  if (count && count->size() == 1) return (*count)[0];
  c.e.fail("its trip count is no single number");
  return std::nullopt;
}

/// Unrolled: the trip count, if there is one, and in each iteration the condition are known while importing.
Vals loop(NodeContext &c) {
  const Attribute *body = c.attribute("body");
  if (!body || !body->graph || body->graph->inputs.size() < 2) return c.fail("it has no body with an iteration number and a condition");
  auto count = tripCount(c);
  if (!count) return {};
  size_t carried = body->graph->inputs.size() - 2, outputs = body->graph->outputs.size();
  if (c.inputs.size() != carried + 2 || outputs < carried + 1) return c.fail("its inputs and outputs are not those of its body");
  Val condition = c.has(1) ? c.inputs[1] : c.e.scalar(1, c.e.i1());
  Vals state(c.inputs.begin() + 2, c.inputs.end());
  std::vector<Vals> scanned(outputs - 1 - carried); // of each scan output, an element for each iteration
  for (int64_t iteration = 0; iteration < *count; ++iteration) {
    auto known = condition.sequence ? nullptr : c.importer.known(condition, c.e);
    if (!known || known->size() != 1) return c.fail("its condition depends on the data");
    if (known->at(0) == 0) break;
    Vals inputs{c.e.scalar(double(iteration), c.e.i64()), condition};
    inputs.append(state);
    Vals results = c.importer.subgraph(*body->graph, c, inputs);
    if (c.e.failed()) return {};
    condition = results[0];
    state.assign(results.begin() + 1, results.begin() + 1 + carried);
    for (size_t i = 0; i < scanned.size(); ++i) scanned[i].push_back(results[1 + carried + i]);
  }
  for (const Vals &elements : scanned) {
    if (elements.empty()) return c.fail("a scan output of no iteration is not supported");
    state.push_back(stack(c, elements, 0));
  }
  return state;
}

/// A slice of one, without the dimension.
Val elementAt(NodeContext &c, const Val &x, int64_t axis, int64_t at) {
  Ints shape(x.shape().begin(), x.shape().end());
  shape.erase(shape.begin() + axis);
  return c.e.reshape(c.e.sliceDim(x, axis, at, at + 1), shape);
}

/// Unrolled: the body for each element of what it scans, from the first one or from the last.
Vals scan(NodeContext &c) {
  const Attribute *body = c.attribute("body");
  int64_t scanned = c.integer("num_scan_inputs", 0), carried = int64_t(c.inputs.size()) - scanned;
  if (!body || !body->graph || scanned < 1 || carried < 0 || body->graph->inputs.size() != c.inputs.size() ||
      int64_t(body->graph->outputs.size()) < carried)
    return c.fail("its inputs and outputs are not those of its body");
  int64_t made = int64_t(body->graph->outputs.size()) - carried, length = -1;
  auto list = [&](StringRef name, int64_t n) { return c.ints(name).value_or(Ints(n, 0)); };
  Ints axes = list("scan_input_axes", scanned), backwards = list("scan_input_directions", scanned);
  Ints outAxes = list("scan_output_axes", made), outBackwards = list("scan_output_directions", made);
  if (int64_t(axes.size()) != scanned || int64_t(backwards.size()) != scanned || int64_t(outAxes.size()) != made ||
      int64_t(outBackwards.size()) != made)
    return c.fail("it has not one axis and one direction for each of what it scans");
  for (int64_t i = 0; i < scanned; ++i) {
    Val x = c.in(carried + i);
    if (!x) return {};
    if (x.sequence || (axes[i] = c.dimension(axes[i], x.rank())) < 0) return c.fail("it scans tensors along their dimensions only");
    if (length >= 0 && length != x.dim(axes[i])) return c.fail("what it scans differs in length");
    length = x.dim(axes[i]);
  }
  Vals state(c.inputs.begin(), c.inputs.begin() + carried);
  std::vector<Vals> elements(made);
  for (int64_t at = 0; at < length; ++at) {
    Vals inputs = state;
    for (int64_t i = 0; i < scanned; ++i)
      inputs.push_back(elementAt(c, c.inputs[carried + i], axes[i], backwards[i] ? length - 1 - at : at));
    Vals results = c.importer.subgraph(*body->graph, c, inputs);
    if (c.e.failed()) return {};
    state.assign(results.begin(), results.begin() + carried);
    for (int64_t i = 0; i < made; ++i) elements[i].push_back(results[carried + i]);
  }
  for (int64_t i = 0; i < made; ++i) {
    if (elements[i].empty()) return c.fail("a scan of no elements is not supported");
    if (outBackwards[i]) std::reverse(elements[i].begin(), elements[i].end());
    int64_t axis = c.dimension(outAxes[i], elements[i][0].rank() + 1);
    if (axis < 0) return {};
    state.push_back(stack(c, elements[i], axis));
  }
  return state;
}

/// The body for each element, with those of other sequences beside it and whole tensors as they are.
Vals sequenceMap(NodeContext &c) {
  const Attribute *body = c.attribute("body");
  auto s = sequence(c, 0);
  if (!s) return {};
  if (!body || !body->graph || body->graph->inputs.size() != c.inputs.size()) return c.fail("its inputs are not those of its body");
  std::vector<std::vector<Val>> mapped(body->graph->outputs.size());
  for (size_t i = 0; i < s->size(); ++i) {
    Vals inputs;
    for (const Val &v : c.inputs) {
      if (v.sequence && i >= v.sequence->size()) return c.fail("its sequences differ in length");
      inputs.push_back(v.sequence ? (*v.sequence)[i] : v);
    }
    Vals results = c.importer.subgraph(*body->graph, c, inputs);
    if (c.e.failed()) return {};
    for (auto [parts, r] : llvm::zip(mapped, results)) parts.push_back(r);
  }
  Vals sequences;
  for (std::vector<Val> &parts : mapped) sequences.push_back(sequenceOf(std::move(parts)));
  return sequences;
}

} // namespace

void registerControl(Registry &r) {
  r["SplitToSequence"] = {splitToSequence, 11, true};
  r["SequenceAt"] = {sequenceAt, 11, true};
  r["SequenceConstruct"] = {sequenceConstruct, 11, true};
  r["SequenceEmpty"] = {sequenceEmpty, 11};
  r["SequenceInsert"] = {sequenceInsert, 11, true};
  r["SequenceLength"] = {sequenceLength, 11, true};
  r["ConcatFromSequence"] = {concatFromSequence, 11, true};
  r["SequenceMap"] = {sequenceMap, 17, true};
  r["If"] = {ifOp};
  r["Loop"] = {loop, 1, true};
  r["Scan"] = {scan, 11, true};
}

} // namespace zero::onnx
