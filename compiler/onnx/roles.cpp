//===- roles.cpp - facts of values, from the inputs to the results -------------------------------===//
#include "compiler/onnx/facts.h"

using namespace mlir;

namespace zero::onnx {

/// A lookup has a rule of its own.
static bool isMovement(Operation &op) { return op.hasTrait<nn::Movement>() && !isa<nn::GatherOp>(op); }

/// Of one operand, and of some length: an exporter would have folded it for a constant.
static bool isCurve(Operation &op) {
  auto formula = dyn_cast<nn::PointwiseOpInterface>(op);
  return formula && op.getNumOperands() == 1 && nn::sizeOf(formula).transcendentals > 0;
}

static llvm::SmallBitVector wide(Value v) {
  auto shape = cast<RankedTensorType>(v.getType()).getShape();
  llvm::SmallBitVector b(shape.size());
  for (size_t i = 0; i < shape.size(); ++i) b[i] = shape[i] > 1;
  return b;
}

llvm::SmallBitVector reshaped(const llvm::SmallBitVector &was, ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  llvm::SmallBitVector v(to.size());
  size_t i = 0, j = 0;
  while (j < to.size()) {
    int64_t n = 1, m = 1;
    size_t i0 = i, j0 = j;
    do {
      if (n <= m && i < from.size())
        n *= from[i++];
      else if (j < to.size())
        m *= to[j++];
      else
        break;
    } while (n != m || j == j0);
    bool any = false;
    for (size_t k = i0; k < i; ++k) any |= was.test(k);
    for (size_t k = j0; k < j; ++k) v[k] = any && to[k] > 1;
  }
  return v;
}

Analysis::Analysis(func::FuncOp f, MutableArrayRef<Site> sites, Weights &weights) : function(f), sites(sites), weights(weights) {
  for (auto [i, s] : llvm::enumerate(sites))
    if (s.get) siteOf[s.get] = unsigned(i);
}

void Analysis::run() {
  Block &body = function.front();
  for (Operation &op : llvm::reverse(body)) backward(op);
  for (BlockArgument a : body.getArguments()) {
    auto type = cast<RankedTensorType>(a.getType());
    bool real = isa<FloatType>(type.getElementType());
    if (a.getArgNumber() == 0 && type.getRank()) samples = type.getDimSize(0);
    facts[a].kind = real ? Kind::Feature : Kind::Plain;
    if (!real)
      for (int64_t d : type.getShape().drop_front(std::min<size_t>(1, type.getRank()))) lengths.insert(d);
  }
  for (BlockArgument a : body.getArguments()) followSequence(a, facts[a].kind == Kind::Plain);
  for (Operation &op : body) {
    forward(op);
    followSequence(op);
  }
}

/// Which values reach a softmax, or a sine, without a product in between, and which are results, moved at most, or scores of a loss.
void Analysis::backward(Operation &op) {
  bool softmax = isa<nn::SoftmaxOp>(op), trig = isa<nn::SinOp, nn::CosOp>(op), result = isa<func::ReturnOp>(op);
  bool through = op.hasTrait<nn::Elementwise>() || isMovement(op);
  bool product = isa<nn::MatMulOp>(op);
  if (auto loss = dyn_cast<nn::CrossEntropyOp>(op)) toResult.insert(loss.getLogits());
  for (Value r : op.getResults()) {
    softmax |= through && toSoftmax.contains(r);
    trig |= (through || product) && toTrig.contains(r);
    result |= (isMovement(op) || isa<nn::CastOp>(op)) && toResult.contains(r);
  }
  for (Value o : op.getOperands()) {
    if (softmax) toSoftmax.insert(o);
    if (trig) toTrig.insert(o);
    if (result) toResult.insert(o);
  }
}

void Analysis::forward(Operation &op) {
  if (auto get = dyn_cast<nn::GetOp>(op)) {
    Fact f;
    if (auto it = siteOf.find(&op); it != siteOf.end()) f.sources.push_back(it->second);
    f.varying = wide(get.getResult());
    facts[get.getResult()] = f;
    return;
  }
  if (auto constant = dyn_cast<nn::ConstantOp>(op)) {
    Fact f;
    f.varying = constant.getValue().isSplat() ? llvm::SmallBitVector(cast<RankedTensorType>(constant.getType()).getRank()) : wide(constant);
    facts[constant.getResult()] = f;
    return;
  }
  if (isa<func::ReturnOp>(op)) {
    for (Value o : op.getOperands())
      if (facts[o].table) evidence(facts[o], "embedding");
    return;
  }
  Fact f;
  if (auto matmul = dyn_cast<nn::MatMulOp>(op))
    f = product(op, matmul.getLhs(), matmul.getRhs());
  else if (auto convolution = dyn_cast<nn::DepthwiseOp>(op)) // without a sum over channels, but a product all the same
    f = product(op, convolution.getInput(), convolution.getKernel());
  else if (auto gather = dyn_cast<nn::GatherOp>(op))
    f = lookup(gather);
  else if (op.hasTrait<nn::RowWise>() && op.getNumOperands() > 1)
    f = norm(op);
  else if (isa<nn::AttentionOp>(op))
    f = attention(op);
  else if (auto concat = dyn_cast<nn::ConcatOp>(op))
    f = concatenation(concat);
  else if (op.hasTrait<nn::Draws>() && op.hasTrait<nn::NoGradient>())
    f.kind = std::max(most(op), Kind::Feature); // numbers as good as an input's, which a model may scale and shift by what it learns
  else if (isMovement(op) || op.getNumOperands() == 1)
    f = move(op);
  else
    f = elementwise(op);
  for (Value r : op.getResults()) facts[r] = f;
}

Fact Analysis::known(Operation &op) {
  Fact f;
  for (Value o : op.getOperands()) f.table |= facts[o].table, f.computed |= facts[o].computed;
  for (Value o : op.getOperands()) {
    // A mask folded into a looked-up bias stays a mask.
    if (f.table && !facts[o].table && content(facts[o], [](const Content &c) { return c.isMask(); })) continue;
    // Sines or coordinates projected by a weight (relative positions) are no parameter beside it.
    if (isa<nn::MatMulOp>(op) && content(facts[o], [](const Content &c) { return c.isSinusoid() || c.isPlaces(); })) continue;
    if (isa<nn::MatMulOp>(op) && copied(facts[o])) { // nor are queries that an exporter has repeated for each sample
      refuse(facts[o], "one copy for each sample");
      continue;
    }
    // u and v of a spectral norm, uᵀ W v, are kept beside W and not learnt.
    if (isa<nn::MatMulOp, nn::MulOp>(op) && most(op) == Kind::Known && content(facts[o], [](const Content &c) { return c.isUnit(); })) {
      refuse(facts[o], "a singular vector of the matrix beside it");
      continue;
    }
    f.sources.append(facts[o].sources);
    f.plusOne |= facts[o].plusOne;
    f.picked |= facts[o].picked;
    f.curved |= facts[o].curved;
  }
  if (f.sources.size() > 64) { // many constants folded into one are no parameter's doing
    f.sources.clear();
    f.table = false;
  }
  f.varying = op.getNumResults() ? wide(op.getResult(0)) : llvm::SmallBitVector();
  return f;
}

Kind Analysis::most(Operation &op) {
  Kind k = Kind::Known;
  for (Value o : op.getOperands()) k = std::max(k, facts[o].kind);
  return k;
}

Fact Analysis::product(Operation &op, Value lhs, Value rhs) {
  Fact &l = facts[lhs], &r = facts[rhs];
  if (l.kind == Kind::Known && r.kind == Kind::Known) return known(op);
  Fact f;
  spend(l);
  spend(r);
  if (l.kind != Kind::Known && r.kind != Kind::Known) {
    f.kind = std::max(l.kind, r.kind);
    if (f.kind >= Kind::Feature)
      f.kind = std::min(l.kind, r.kind) >= Kind::Feature && toSoftmax.contains(op.getResult(0)) ? Kind::Scores : Kind::Hidden;
    return f;
  }
  const Fact &data = l.kind == Kind::Known ? r : l, &weight = l.kind == Kind::Known ? l : r;
  f.kind = data.kind;
  if (weight.sources.empty() || (data.kind == Kind::Plain && toTrig.contains(op.getResult(0)))) return f;
  if (structural(weight)) return f;
  bool filled = content(weight, [](const Content &c) { return c.isFilled(); });
  if (filled || begins(weight)) {
    refuse(weight, filled ? kFilled : kBegins);
    return f;
  }
  // Of three dimensions it may be experts that all start from one.
  if (copied(weight) && content(weight, [](const Content &c) { return c.rank() > 3; })) {
    refuse(weight, "one copy for each sample");
    f.kind = Kind::Hidden;
    return f;
  }
  evidence(weight, "matmul");
  f.kind = Kind::Hidden;
  f.product = true;
  return f;
}

/// Whether it is a parameter, or constant, as the file has it, but for movement.
static bool isStored(Value v) {
  Operation *op = v.getDefiningOp();
  while (op && (isMovement(*op) || isa<nn::CastOp>(op)) && op->getNumOperands() == 1) op = op->getOperand(0).getDefiningOp();
  return isa_and_nonnull<nn::GetOp, nn::ConstantOp>(op);
}

Fact Analysis::lookup(nn::GatherOp op) {
  Fact &table = facts[op.getInput()], &indices = facts[op.getIndices()];
  Fact f;
  if (table.kind == Kind::Known && content(table, [](const Content &c) { return c.isSinusoid(); })) {
    refuse(table, kSinusoid); // positions, whichever rows are read
    f.kind = indices.kind == Kind::Known ? Kind::Known : Kind::Plain;
    f.varying = wide(op.getResult());
    return f;
  }
  if (table.kind == Kind::Known && indices.kind == Kind::Known) {
    f = known(*op);
    f.sources = table.sources;
    f.table = !table.sources.empty(), f.computed |= !isStored(op.getInput());
    f.picked = cast<RankedTensorType>(op.getType()).getNumElements() == 1;
    return f;
  }
  f.kind = table.kind == Kind::Known ? (table.sources.empty() ? Kind::Plain : Kind::Hidden) : table.kind;
  if (table.kind == Kind::Known) {
    f.sources = table.sources;
    f.table = !table.sources.empty(), f.computed = table.computed || !isStored(op.getInput());
  }
  return f;
}

Fact Analysis::norm(Operation &op) {
  Fact &x = facts[op.getOperand(0)];
  spend(x);
  if (most(op) == Kind::Known) return known(op);
  for (unsigned i = 1; i < op.getNumOperands(); ++i) {
    Fact &o = facts[op.getOperand(i)];
    if (o.kind != Kind::Known) continue;
    if (!filler(o, i == 1)) evidence(o, i == 1 ? "scale" : "bias");
  }
  Fact f;
  f.kind = std::max(x.kind, Kind::Hidden);
  return f;
}

Fact Analysis::attention(Operation &op) {
  for (unsigned i = 0; i < op.getNumOperands(); ++i) {
    Fact &o = facts[op.getOperand(i)];
    if (i < 3 && o.kind == Kind::Known && copied(o)) {
      refuse(o, "one copy for each sample");
      continue;
    }
    if (i < 3 ? o.kind == Kind::Known || o.table : o.table) evidence(o, i < 3 ? "query" : "embedding");
  }
  Fact f;
  f.kind = Kind::Hidden;
  return f;
}

/// Movement and elementwise operations of one operand.
Fact Analysis::move(Operation &op) {
  Fact f = facts[op.getOperand(0)];
  for (Value o : llvm::drop_begin(op.getOperands())) f.kind = std::max(f.kind, facts[o].kind);
  if (isa<nn::SoftmaxOp>(op)) {
    f.product = f.table = false;
    if (f.kind == Kind::Scores) f.kind = Kind::Hidden;
  }
  if (isa<nn::CompareOp, nn::IsNanOp>(op) && f.kind != Kind::Known) f.kind = Kind::Plain;
  if (op.hasTrait<nn::Elementwise>() && !isa<nn::CastOp>(op)) f.product = false;
  if (f.kind != Kind::Known) return f;
  Value result = op.getResult(0);
  f.picked |= isa<nn::SliceOp>(op) && cast<RankedTensorType>(result.getType()).getNumElements() == 1;
  f.curved |= isCurve(op);
  if (auto b = dyn_cast<nn::BroadcastOp>(op)) {
    llvm::SmallBitVector v(cast<RankedTensorType>(b.getType()).getRank());
    for (auto [i, d] : llvm::enumerate(b.getDims())) v[d] = f.varying.test(i);
    f.varying = v;
  } else if (auto t = dyn_cast<nn::TransposeOp>(op)) {
    llvm::SmallBitVector v(f.varying.size());
    for (auto [i, p] : llvm::enumerate(t.getPerm())) v[i] = f.varying.test(p);
    f.varying = v;
  } else if (auto r = dyn_cast<nn::ReshapeOp>(op)) {
    f.varying =
        reshaped(f.varying, cast<RankedTensorType>(r.getInput().getType()).getShape(), cast<RankedTensorType>(r.getType()).getShape());
  } else if (!op.hasTrait<nn::Elementwise>()) {
    llvm::SmallBitVector v = wide(result);
    if (v.size() == f.varying.size()) v &= f.varying;
    f.varying = v;
  }
  return f;
}

/// Follows a matrix through what only moves it to the product or lookup that reads it. `dims`: which of its two dimensions each of the
/// value's is, -1 for one of size 1 beside them.
static std::optional<unsigned> summedDimension(Value v, SmallVector<int> dims, int depth = 0) {
  auto known = [](int dim) { return dim < 0 ? std::nullopt : std::optional<unsigned>(unsigned(dim)); };
  if (depth > 8) return std::nullopt;
  for (OpOperand &operand : v.getUses()) {
    Operation *op = operand.getOwner();
    int64_t rank = int64_t(dims.size());
    std::optional<unsigned> found;
    if (auto product = dyn_cast<nn::MatMulOp>(op)) {
      bool left = operand.getOperandNumber() == 0;
      found = known(dims[rank - (left ? 1 + product.getTransposeLhs() : 2 - product.getTransposeRhs())]);
    } else if (auto lookup = dyn_cast<nn::GatherOp>(op)) {
      if (operand.getOperandNumber() == 0) found = known(dims[0]);
    } else if (auto transpose = dyn_cast<nn::TransposeOp>(op)) {
      SmallVector<int> moved;
      for (int64_t p : transpose.getPerm()) moved.push_back(dims[p]);
      found = summedDimension(op->getResult(0), moved, depth + 1);
    } else if (isa<nn::CastOp>(op)) {
      found = summedDimension(op->getResult(0), dims, depth + 1);
    } else if (isa<nn::ReshapeOp>(op)) {
      auto from = cast<RankedTensorType>(v.getType()).getShape(), to = cast<RankedTensorType>(op->getResult(0).getType()).getShape();
      SmallVector<int> moved;
      size_t next = 0;
      auto skipOnes = [&] {
        while (next < from.size() && from[next] == 1 && dims[next] < 0) ++next;
      };
      for (int64_t d : to) {
        skipOnes();
        bool same = next < from.size() && from[next] == d;
        moved.push_back(same ? dims[next++] : -1);
        if (!same && d != 1) return std::nullopt; // cut or joined
      }
      found = summedDimension(op->getResult(0), moved, depth + 1);
    }
    if (found) return found;
  }
  return std::nullopt;
}

void findRoles(func::FuncOp forward, MutableArrayRef<Site> sites, Weights &weights) {
  Analysis(forward, sites, weights).run();
  llvm::DenseSet<Operation *> kept; // what nothing reads was erased after the walk
  forward.walk([&](nn::GetOp get) { kept.insert(get); });
  for (Site &s : sites)
    if (s.get && kept.contains(s.get) && s.use.tensor->dims.size() == 2) s.summed = summedDimension(s.get->getResult(0), {0, 1});
}

} // namespace zero::onnx
