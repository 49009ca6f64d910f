//===- role_evidence.cpp - what uses of known values with the data say of initializers --------------------===//
#include "compiler/onnx/facts.h"

using namespace mlir;

namespace zero::onnx {

Fact Analysis::concatenation(nn::ConcatOp op) {
  if (most(*op) == Kind::Known) return known(*op);
  Fact f;
  f.kind = most(*op);
  bool tables = llvm::all_of(op.getInputs(), [&](Value v) { return facts[v].table; });
  for (Value v : op.getInputs()) {
    Fact &o = facts[v];
    if (tables) { // halves of a rotary table
      for (unsigned source : o.sources)
        if (!llvm::is_contained(f.sources, source)) f.sources.push_back(source);
      continue;
    }
    spend(o);
    if (o.kind != Kind::Known || o.sources.empty() || f.kind < Kind::Feature) continue;
    auto type = cast<RankedTensorType>(v.getType());
    if (o.table && f.kind >= Kind::Hidden) // rows that a lookup by constants has found: a stream of its own
      evidence(o, "embedding");
    else if (copied(o) || (op.getDim() != 0 && type.getRank() > 1 && o.varying.test(0)))
      refuse(o, "one copy for each sample");
    else
      evidence(o, "token");
  }
  f.table = tables;
  for (Value v : op.getInputs()) f.computed |= tables && facts[v].computed;
  return f;
}

/// Whether the data is repeated along a dimension that the known operand varies along: a layer of one column (each feature of a table
/// times a vector of its own).
static bool isOuter(Operation &op, unsigned known, const llvm::SmallBitVector &varying) {
  auto repeated = op.getNumOperands() == 2 ? op.getOperand(1 - known).getDefiningOp<nn::BroadcastOp>() : nn::BroadcastOp();
  if (!repeated) return false;
  llvm::SmallBitVector created = varying;
  auto from = cast<RankedTensorType>(repeated.getInput().getType());
  for (auto [i, d] : llvm::enumerate(repeated.getDims()))
    if (from.getDimSize(i) != 1) created.reset(d);
  return created.any();
}

/// Of two or three operands.
Fact Analysis::elementwise(Operation &op) {
  Kind k = most(op);
  bool additive = isa<nn::AddOp, nn::SubOp>(op), multiplicative = isa<nn::MulOp, nn::DivOp>(op), choice = isa<nn::SelectOp>(op);
  if (k == Kind::Known) {
    Fact f = known(op);
    f.varying = llvm::SmallBitVector(f.varying.size());
    for (Value o : op.getOperands())
      if (facts[o].varying.size() == f.varying.size()) f.varying |= facts[o].varying;
    if (isa<nn::AddOp>(op))
      for (Value o : op.getOperands())
        if (auto c = o.getDefiningOp<nn::ConstantOp>())
          if (auto splat = dyn_cast<SplatElementsAttr>(c.getValue()))
            f.plusOne |= isa<FloatType>(splat.getElementType()) && splat.getSplatValue<APFloat>().convertToDouble() == 1;
    return f;
  }
  Fact f;
  f.kind = isa<nn::CompareOp>(op) ? Kind::Plain : k;
  if (isa<nn::CrossEntropyOp>(op)) f.kind = Kind::Hidden;
  if (f.kind == Kind::Scores && !toSoftmax.contains(op.getResult(0))) f.kind = Kind::Hidden;
  // A bias table with a mask from the data, which is added or chosen where nothing is seen; scores come later.
  auto masked = [&](unsigned i) { return k == Kind::Plain && (additive || (choice && i > 0)); };
  auto passesOn = [&](const Fact &o) { f.sources = o.sources, f.table = true, f.computed = o.computed; };
  for (unsigned i = 0; i < op.getNumOperands(); ++i) {
    Fact &o = facts[op.getOperand(i)];
    bool scaled = multiplicative && llvm::all_of(llvm::enumerate(op.getOperands()), [&](auto other) {
                    return other.index() == i || (facts[other.value()].kind == Kind::Known && facts[other.value()].sources.empty());
                  });
    bool squared = multiplicative && op.getOperand(0) == op.getOperand(1);
    if (o.table && o.kind != Kind::Known) { // rows of a table looked up by data
      if (scaled || masked(i)) {
        passesOn(o);
      } else if (!multiplicative || squared || !rotary(o)) {
        evidence(o, "embedding");
      } else {
        refuse(o, "a rotary cache");
      }
      continue;
    }
    if (o.kind != Kind::Known || o.sources.empty()) continue;
    if (masked(i) && o.table) {
      passesOn(o);
      continue;
    }
    if (additive || (choice && i > 0))
      added(o, op, k, choice);
    else if (multiplicative && k == Kind::Feature && toTrig.contains(op.getResult(0)))
      refuse(o, kFrequencies);
    else if (isa<nn::MulOp>(op) && k == Kind::Feature && isOuter(op, i, o.varying)) {
      evidence(o, "matmul");
      f.kind = Kind::Hidden;
    } else if (multiplicative && !(isa<nn::DivOp>(op) && i == 0))
      multiplied(o, op, k);
  }
  return f;
}

void Analysis::added(Fact &o, Operation &op, Kind data, bool choice) {
  auto shape = cast<RankedTensorType>(op.getResult(0).getType()).getShape();
  int64_t last = int64_t(shape.size()) - 1;
  if (o.table && data >= Kind::Feature) return evidence(o, "embedding");
  if (data == Kind::Scores) return refuse(o, "added to attention scores");
  if (data < Kind::Feature || filler(o, 0)) return;
  if (ofBatchNorm(o)) return evidence(o, "bias");
  if (content(o, [](const Content &c) { return c.isFilled(); })) return refuse(o, kFilled);
  size_t n = o.varying.count();
  bool along = last >= 0 && o.varying.test(last);
  if (n == 0) { // one number, or a vector of a single column
    bool column = llvm::any_of(op.getOperands(), [&](Value v) { return facts[v].product; });
    bool ofModule = data >= Kind::Hidden && single(o) && content(o, [](const Content &c) { return c.size() == 1 && c.isOfModule(); });
    if (!choice && ((column && last >= 0 && shape[last] == 1 && single(o)) || ofModule)) evidence(o, "bias");
    return;
  }
  if (content(o, [](const Content &c) { return c.isMask(); })) return refuse(o, "a mask");
  if (n == 1) {
    if ((choice || data == Kind::Feature) && !along) return;
    // [1, n] of zeros is the buffer that some models add to their logits; anywhere else it is a fresh bias.
    Value sum = op.getResult(0);
    bool logits = toResult.contains(sum) || toSoftmax.contains(sum);
    if (!choice && logits && content(o, [](const Content &c) { return c.isZeroRow(); })) return refuse(o, "a row of zeros");
    return evidence(o, choice ? "token" : "bias");
  }
  if (choice || !along) return;
  if (content(o, [](const Content &c) { return c.isSinusoid(); })) return refuse(o, kSinusoid);
  if (structural(o) && !ofModules(o)) return refuse(o, "zeros and ones"); // an identity, say
  // What a sum begins with, such as that of experts: zeros_like(x), folded. Positions that start from zeros have a name, or one row for all
  // samples.
  bool whole = n == size_t(llvm::count_if(shape, [](int64_t d) { return d > 1; }));
  if (whole && content(o, [](const Content &c) { return c.isMadeUp() && c.isConstant() && c.at(0) == 0; })) return refuse(o, kBegins);
  auto isCopies = [](const Content &c) { return c.isCopies() && !(c.isConstant() && c.isOfModule()); }; // fresh biases are zeros
  if (shape.size() > 2 && o.varying.test(0) && content(o, isCopies)) return refuse(o, "one copy for each sample");
  evidence(o, "position");
}

void Analysis::multiplied(Fact &o, Operation &op, Kind data) {
  auto shape = cast<RankedTensorType>(op.getResult(0).getType()).getShape();
  int64_t last = int64_t(shape.size()) - 1;
  size_t n = o.varying.count();
  if (data >= Kind::Hidden && n == 0 && learntNumber(o)) return evidence(o, "scale");
  if (data < Kind::Feature || n == 0 || filler(o, 1) || structural(o)) return;
  if (ofBatchNorm(o)) return evidence(o, "scale");
  if (content(o, [](const Content &c) { return c.isFilled(); })) return refuse(o, kFilled);
  bool along = o.varying.test(last);
  if (n == 1) {
    if (data == Kind::Feature ? !along : data == Kind::Scores ? along : false) return;
    return evidence(o, "scale");
  }
  if (content(o, [](const Content &c) { return c.isTriangle(); })) return refuse(o, "a triangle");
  if (begins(o)) return refuse(o, kBegins);
  if (o.table && ofModules(o) && !rotary(o)) return evidence(o, "embedding");
  // Several dimensions: norms with a weight per head and column are parameters, tables along the sequence are not.
  while (last > 0 && shape[last] == 1) --last; // after it stands the part of a complex number
  along = o.varying.test(last);
  bool told = !lengths.empty() || (content(o, [](const Content &c) { return c.isOfModule(); }) && !rotary(o)); // images have no sequence
  bool table = !told || o.table || !along || !content(o, [](const Content &c) { return c.known(); });
  llvm::SmallBitVector positions = bySize(op.getResult(0)), followed(positions.size());
  for (Value v : op.getOperands())
    if (facts[v].kind != Kind::Known) followed |= sequenceOf(v);
  positions &= followed;
  for (int64_t d = 0; d < last; ++d) table |= o.varying.test(d) && positions.test(d);
  if (table) return refuse(o, "a table that multiplies activations");
  evidence(o, "scale");
}

bool Analysis::filler(const Fact &o, float neutral) {
  bool needed = llvm::any_of(o.sources, [&](unsigned s) {
    StringRef op = sites[s].use.op;
    return op == "LayerNormalization" || op == "InstanceNormalization" || op == "GroupNormalization" || op == "BatchNormalization";
  });
  if (!needed || !content(o, [&](const Content &c) { return c.isMadeUp() && c.isConstant() && c.at(0) == neutral; })) return false;
  refuse(o, "what a norm without weights gets from the exporter");
  return true;
}

bool Analysis::structural(const Fact &o) {
  return content(o, [](const Content &c) { return c.isSigns() && !c.isWeight(); });
}

bool Analysis::begins(const Fact &o) {
  return content(o, [&](const Content &c) { return c.isStateFor(samples); });
}

bool Analysis::rotary(const Fact &o) {
  return o.computed || llvm::all_of(o.sources, [&](unsigned s) { return Content(*sites[s].use.tensor, weights).maybeRotary(); });
}

bool Analysis::ofModules(const Fact &o) {
  return llvm::all_of(o.sources, [&](unsigned s) { return Content(*sites[s].use.tensor, weights).isOfModule(); });
}

bool Analysis::copied(const Fact &o) {
  return content(o, [&](const Content &c) { return c.isCopiesFor(samples); });
}

bool Analysis::ofBatchNorm(const Fact &o) {
  return llvm::any_of(o.sources, [&](unsigned s) { return sites[s].use.op == "BatchNormalization"; });
}

bool Analysis::single(const Fact &o) { return o.sources.size() == 1 && sites[o.sources[0]].use.tensor->dims.size() == 1; }

/// Numbers that scale activations are mostly constants, but not one that is picked out of a vector, one after a function that would
/// have been folded, or a vector of one under a module's name.
bool Analysis::learntNumber(const Fact &o) {
  return o.picked || o.curved ||
         (single(o) && sites[o.sources[0]].use.tensor->elements == 1 && content(o, [](const Content &c) { return c.isOfModule(); }));
}

void Analysis::evidence(const Fact &o, StringRef role) {
  for (unsigned s : o.sources) {
    if (sites[s].role.empty()) sites[s].role = role.str();
    sites[s].plusOne |= o.plusOne;
  }
}

void Analysis::refuse(const Fact &o, StringRef why) {
  for (unsigned s : o.sources) sites[s].why = why.str();
}

void Analysis::spend(const Fact &o) {
  if (o.table && o.kind != Kind::Known) evidence(o, "embedding");
}

} // namespace zero::onnx
