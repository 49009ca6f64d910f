//===- recurrent.cpp - LSTM, GRU and RNN, step by step --------------------------------------------===//
// What the inputs give to the gates is one product for all steps; what a state gives is a product of each step, which are laid out one
// after another.
#include "compiler/onnx/ops/arithmetic.h"
#include "llvm/ADT/StringSwitch.h"

namespace zero::onnx {
namespace {

enum class Cell { Lstm, Gru, Rnn };
/// Longer sequences would make programs that take minutes to compile.
constexpr int64_t kMostSteps = 1024;

using Activation = Val (*)(NodeContext &, const Val &);
Activation activation(StringRef name) {
  return llvm::StringSwitch<Activation>(name.lower())
      .Case("sigmoid", [](NodeContext &c, const Val &x) { return c.e.unary<nn::SigmoidOp>(x); })
      .Case("tanh", [](NodeContext &c, const Val &x) { return c.e.unary<nn::TanhOp>(x); })
      .Case("relu", [](NodeContext &c, const Val &x) { return choose(c, nn::Predicate::le, x, like(c, 0, x), x); })
      .Default(nullptr);
}

bool isZero(const Val &v) {
  if (!v) return true;
  if (!v.isConstant()) return false;
  for (int64_t i = 0; i < v.constant->size(); ++i)
    if (v.constant->at(i) != 0) return false;
  return true;
}

struct Recurrence {
  NodeContext &c;
  Cell cell;
  int64_t gates, hidden;
  bool resetAfter = false;                   // of a GRU: the reset gate scales what the state gives, not the state
  llvm::SmallVector<Activation> activations; // of gates, of the candidate state and, in an LSTM, of the output

  struct Weights {
    Val inputs, state, inputBias, stateBias, peepholes; // [gates * hidden, n], [gates * hidden, hidden], [gates * hidden] …
  };
  /// Null is a state of zeros.
  struct State {
    Val h, c;
  };

  Val gate(const Val &x, int64_t i, int64_t n = 1) const { return x ? c.e.sliceDim(x, x.rank() - 1, i * hidden, (i + n) * hidden) : Val(); }
  Val plus(const Val &x, const Val &y) const { return x && y ? c.e.add(x, y) : x ? x : y; }
  Val times(const Val &x, const Val &y) const { return x && y ? c.e.mul(x, y) : Val(); }

  /// h Rᵀ; null where h is.
  Val given(const Val &h, const Val &weights) const { return h ? c.e.matmul(h, weights, false, true) : Val(); }
  Val rows(const Val &weights, int64_t i, int64_t n = 1) const { return c.e.sliceDim(weights, 0, i * hidden, (i + n) * hidden); }

  State lstm(const Val &x, const State &s, const Weights &w) const {
    Val all = plus(x, given(s.h, w.state));
    auto peeped = [&](int64_t i, int64_t k, const Val &state) { return plus(gate(all, i), times(gate(w.peepholes, k), state)); };
    Val in = activations[0](c, peeped(0, 0, s.c)), forget = s.c ? activations[0](c, peeped(2, 2, s.c)) : Val();
    Val next = plus(c.e.mul(in, activations[1](c, gate(all, 3))), times(forget, s.c));
    return {c.e.mul(activations[0](c, peeped(1, 1, next)), activations[2](c, next)), next};
  }

  State gru(const Val &x, const State &s, const Weights &w) const {
    Val both = plus(gate(x, 0, 2), given(s.h, rows(w.state, 0, 2))), bias = gate(w.stateBias, 2);
    both = plus(both, gate(w.stateBias, 0, 2));
    Val update = activations[0](c, gate(both, 0)), reset = activations[0](c, gate(both, 1)), last = rows(w.state, 2), fresh = gate(x, 2);
    if (resetAfter)
      fresh = plus(fresh, times(reset, plus(given(s.h, last), bias)));
    else
      fresh = plus(plus(fresh, given(times(reset, s.h), last)), bias);
    fresh = activations[1](c, fresh);
    Val rest = c.e.sub(like(c, 1, update), update);
    return {plus(c.e.mul(rest, fresh), times(update, s.h)), {}};
  }

  State step(const Val &x, const State &s, const Weights &w) const {
    if (cell == Cell::Lstm) return lstm(x, s, w);
    if (cell == Cell::Gru) return gru(x, s, w);
    return {activations[0](c, plus(x, given(s.h, w.state))), {}};
  }

  /// One direction of x [steps, batch, n]: the state after each step, in the order of the sequence.
  std::pair<llvm::SmallVector<Val>, State> run(const Val &x, State s, const Weights &w, bool backwards) const {
    int64_t steps = x.dim(0), batch = x.dim(1);
    Val flat = c.e.matmul(c.e.reshape(x, {steps * batch, x.dim(2)}), w.inputs, false, true);
    flat = plus(flat, w.inputBias);
    if (cell != Cell::Gru) flat = plus(flat, w.stateBias); // which a reset gate scales there
    llvm::SmallVector<Val> outputs(steps);
    for (int64_t i = 0; i < steps && !c.e.failed(); ++i) {
      int64_t t = backwards ? steps - 1 - i : i;
      s = step(c.e.sliceDim(flat, 0, t * batch, (t + 1) * batch), s, w);
      outputs[t] = s.h;
    }
    return {std::move(outputs), s};
  }
};

template <Cell cell> Vals recurrent(NodeContext &c) {
  constexpr bool isLstm = cell == Cell::Lstm;
  Val x = c.in(0), w = c.in(1), r = c.in(2), b = c.optional(3), initial = c.optional(5), memory = isLstm ? c.optional(6) : Val();
  Val peepholes = isLstm ? c.optional(7) : Val();
  if (!x || !w || !r) return {};
  int64_t gates = isLstm ? 4 : cell == Cell::Gru ? 3 : 1;
  if (x.rank() != 3 || w.rank() != 3 || r.rank() != 3 || w.dim(0) != r.dim(0) || w.dim(1) != gates * r.dim(2) || r.dim(1) != w.dim(1) ||
      w.dim(2) != x.dim(2))
    return c.fail("inputs of shape " + text(x.shape()) + " and weights of shapes " + text(w.shape()) + " and " + text(r.shape()) +
                  " do not fit together");
  bool batchFirst = c.integer("layout", 0) != 0;
  if (batchFirst) x = c.e.transpose(x, {1, 0, 2});
  int64_t steps = x.dim(0), batch = x.dim(1), directions = r.dim(0), hidden = r.dim(2);
  if (steps < 1 || batch < 1 || hidden < 1) return c.fail("there is nothing to compute");
  auto fits = [](const Val &v, Shape shape) { return !v || v.shape() == shape; };
  Ints states = batchFirst ? Ints{batch, directions, hidden} : Ints{directions, batch, hidden};
  if (!fits(b, {directions, 2 * gates * hidden}) || !fits(initial, states) || !fits(memory, states) ||
      !fits(peepholes, {directions, 3 * hidden}))
    return c.fail("its biases, first states or peepholes do not fit weights of shape " + text(w.shape()) + " and " + llvm::Twine(batch) +
                  " samples");
  if (steps > kMostSteps)
    return c.fail("it has " + llvm::Twine(steps) + " steps, of which each would be laid out; up to " + llvm::Twine(kMostSteps) +
                  " are supported");

  std::string direction = c.string("direction", "forward");
  if (directions != (direction == "bidirectional" ? 2 : 1)) return c.fail("direction='" + direction + "' does not fit its weights");
  if (c.attribute("clip")) return c.fail("clip is not supported");
  if (c.integer("input_forget", 0)) return c.fail("input_forget is not supported");
  if (auto lengths = c.has(4) ? c.known(4) : nullptr; c.has(4)) {
    if (!lengths) return {};
    for (int64_t i = 0; i < lengths->size(); ++i)
      if (lengths->at(i) != double(steps))
        return c.fail("sequence_lens says that sequences end before the last step, which is not supported");
  }

  Recurrence base{c, cell, gates, hidden, c.integer("linear_before_reset", 0) != 0, {}};
  llvm::SmallVector<StringRef> names;
  if (const Attribute *given = c.attribute("activations")) names.assign(given->strings.begin(), given->strings.end());
  size_t each = isLstm ? 3 : cell == Cell::Gru ? 2 : 1;
  if (names.empty())
    for (int64_t d = 0; d < directions; ++d)
      for (size_t i = 0; i < each; ++i) names.push_back(i || cell == Cell::Rnn ? "Tanh" : "Sigmoid");
  if (names.size() != each * size_t(directions)) return c.fail("it has " + llvm::Twine(names.size()) + " activations");

  // A direction's share of what has one for each of them.
  auto of = [&](const Val &v, int64_t d) {
    if (!v) return Val();
    Ints rest(v.shape().begin() + 1, v.shape().end());
    return c.e.reshape(c.e.sliceDim(v, 0, d, d + 1), rest);
  };
  auto state = [&](const Val &v, int64_t d) {
    if (isZero(v)) return Val();
    return of(batchFirst ? c.e.transpose(v, {1, 0, 2}) : v, d);
  };
  llvm::SmallVector<Val> outputs[2], ends, memories;
  for (int64_t d = 0; d < directions; ++d) {
    Recurrence one = base;
    for (size_t i = 0; i < each; ++i) {
      StringRef name = names[size_t(d) * each + i];
      one.activations.push_back(activation(name));
      if (!one.activations.back()) return c.fail("activation '" + name + "' is not supported");
    }
    Val bias = of(b, d);
    auto half = [&](int64_t i) { return bias ? c.e.sliceDim(bias, 0, i * gates * hidden, (i + 1) * gates * hidden) : Val(); };
    Recurrence::Weights weights{of(w, d), of(r, d), half(0), half(1), of(peepholes, d)};
    auto [all, end] = one.run(x, {state(initial, d), state(memory, d)}, weights, direction == "reverse" || d == 1);
    outputs[d] = std::move(all);
    ends.push_back(end.h);
    memories.push_back(end.c);
  }
  if (c.e.failed()) return {};

  // Y [steps, directions, batch, hidden], then the last states [directions, batch, hidden].
  llvm::SmallVector<Val> parts;
  for (int64_t t = 0; t < steps; ++t)
    for (int64_t d = 0; d < directions; ++d) parts.push_back(outputs[d][t]);
  Val y = c.e.reshape(c.e.concat(parts, 0), {steps, directions, batch, hidden});
  auto last = [&](llvm::ArrayRef<Val> of) {
    Val all = c.e.reshape(c.e.concat(of, 0), {directions, batch, hidden});
    return batchFirst ? c.e.transpose(all, {1, 0, 2}) : all;
  };
  if (batchFirst) y = c.e.transpose(y, {2, 0, 1, 3});
  Vals results{y, last(ends)};
  if (isLstm) results.push_back(last(memories));
  return results;
}

} // namespace

void registerRecurrent(Registry &r) {
  r["LSTM"] = {recurrent<Cell::Lstm>, 7};
  r["GRU"] = {recurrent<Cell::Gru>, 7};
  r["RNN"] = {recurrent<Cell::Rnn>, 7};
}

} // namespace zero::onnx
