//===- roles.cpp - which initializers are parameters ---------------------------------------------===//
#include "compiler/onnx/roles.h"
#include "compiler/onnx/content.h"

using namespace mlir;

namespace zero::onnx {
namespace {

enum class Kind { Known, Plain, Feature, Hidden, Scores };

struct Fact {
  Kind kind = Kind::Known;
  SmallVector<unsigned, 2> sources; // sites a known value is made of; of a lookup by data: the table's
  llvm::SmallBitVector varying;     // known values: dimensions along which it varies
  bool table = false;               // rows looked up in a table
  bool product = false;             // result of a product with a parameter, moved at most
  bool plusOne = false;
};

class Analysis {
public:
  Analysis(func::FuncOp f, MutableArrayRef<Site> sites, Weights &weights) : function(f), sites(sites), weights(weights) {
    for (auto [i, s] : llvm::enumerate(sites))
      if (s.get)
        siteOf[s.get] = unsigned(i);
  }

  void run() {
    Block &body = function.front();
    for (Operation &op : llvm::reverse(body))
      backward(op);
    for (BlockArgument a : body.getArguments()) {
      auto type = cast<RankedTensorType>(a.getType());
      bool real = isa<FloatType>(type.getElementType());
      facts[a].kind = real ? Kind::Feature : Kind::Plain;
      if (!real)
        for (int64_t d : type.getShape().drop_front(std::min<size_t>(1, type.getRank())))
          lengths.insert(d);
    }
    for (Operation &op : body)
      forward(op);
  }

private:
  /// Which values reach a softmax, or a sine, without a product in between.
  void backward(Operation &op) {
    bool softmax = isa<nn::SoftmaxOp>(op), trig = isa<nn::SinOp, nn::CosOp>(op);
    bool through = op.hasTrait<nn::Elementwise>() || isMovement(op);
    bool product = isa<nn::MatMulOp>(op);
    for (Value r : op.getResults()) {
      softmax |= through && toSoftmax.contains(r);
      trig |= (through || product) && toTrig.contains(r);
    }
    for (Value o : op.getOperands()) {
      if (softmax)
        toSoftmax.insert(o);
      if (trig)
        toTrig.insert(o);
    }
  }

  static bool isMovement(Operation &op) {
    return isa<nn::ReshapeOp, nn::TransposeOp, nn::SliceOp, nn::BroadcastOp, nn::PadOp, nn::ConcatOp, nn::TakeAlongOp>(op);
  }

  static llvm::SmallBitVector wide(Value v) {
    auto shape = cast<RankedTensorType>(v.getType()).getShape();
    llvm::SmallBitVector b(shape.size());
    for (size_t i = 0; i < shape.size(); ++i)
      b[i] = shape[i] > 1;
    return b;
  }

  void forward(Operation &op) {
    if (auto get = dyn_cast<nn::GetOp>(op)) {
      Fact f;
      if (auto it = siteOf.find(&op); it != siteOf.end())
        f.sources.push_back(it->second);
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
        if (facts[o].table)
          evidence(facts[o], "embedding");
      return;
    }
    Fact f;
    if (auto matmul = dyn_cast<nn::MatMulOp>(op))
      f = product(matmul);
    else if (auto gather = dyn_cast<nn::GatherOp>(op))
      f = lookup(gather);
    else if (isa<nn::LayerNormOp, nn::RmsNormOp>(op))
      f = norm(op);
    else if (isa<nn::AttentionOp>(op))
      f = attention(op);
    else if (auto concat = dyn_cast<nn::ConcatOp>(op))
      f = join(concat);
    else if (isMovement(op) || op.getNumOperands() == 1)
      f = move(op);
    else
      f = meet(op);
    for (Value r : op.getResults())
      facts[r] = f;
  }

  Fact known(Operation &op) {
    Fact f;
    for (Value o : op.getOperands())
      f.table |= facts[o].table;
    for (Value o : op.getOperands()) {
      // A mask folded into a looked-up bias stays a mask.
      if (f.table && !facts[o].table && content(facts[o], [](const Content &c) { return c.isMask(); }))
        continue;
      f.sources.append(facts[o].sources);
      f.plusOne |= facts[o].plusOne;
    }
    if (f.sources.size() > 64) { // many constants folded into one are no parameter's doing
      f.sources.clear();
      f.table = false;
    }
    f.varying = op.getNumResults() ? wide(op.getResult(0)) : llvm::SmallBitVector();
    return f;
  }

  Kind most(Operation &op) {
    Kind k = Kind::Known;
    for (Value o : op.getOperands())
      k = std::max(k, facts[o].kind);
    return k;
  }

  Fact product(nn::MatMulOp op) {
    Fact &l = facts[op.getLhs()], &r = facts[op.getRhs()];
    if (l.kind == Kind::Known && r.kind == Kind::Known)
      return known(*op);
    Fact f;
    spend(l);
    spend(r);
    if (l.kind != Kind::Known && r.kind != Kind::Known) {
      f.kind = std::max(l.kind, r.kind);
      if (f.kind >= Kind::Feature)
        f.kind = std::min(l.kind, r.kind) >= Kind::Feature && toSoftmax.contains(op.getResult()) ? Kind::Scores : Kind::Hidden;
      return f;
    }
    const Fact &data = l.kind == Kind::Known ? r : l, &weight = l.kind == Kind::Known ? l : r;
    f.kind = data.kind;
    if (weight.sources.empty() || (data.kind == Kind::Plain && toTrig.contains(op.getResult())))
      return f;
    if (structural(weight))
      return f;
    evidence(weight, "matmul");
    f.kind = Kind::Hidden;
    f.product = true;
    return f;
  }

  Fact lookup(nn::GatherOp op) {
    Fact &table = facts[op.getInput()], &indices = facts[op.getIndices()];
    Fact f;
    if (table.kind == Kind::Known && indices.kind == Kind::Known) {
      f = known(*op);
      f.sources = table.sources;
      f.table = !table.sources.empty();
      return f;
    }
    f.kind = table.kind == Kind::Known ? (table.sources.empty() ? Kind::Plain : Kind::Hidden) : table.kind;
    if (table.kind == Kind::Known) {
      f.sources = table.sources;
      f.table = !table.sources.empty();
    }
    return f;
  }

  Fact norm(Operation &op) {
    Fact &x = facts[op.getOperand(0)];
    spend(x);
    if (most(op) == Kind::Known)
      return known(op);
    for (unsigned i = 1; i < op.getNumOperands(); ++i)
      if (facts[op.getOperand(i)].kind == Kind::Known)
        evidence(facts[op.getOperand(i)], i == 1 ? "scale" : "bias");
    Fact f;
    f.kind = std::max(x.kind, Kind::Hidden);
    return f;
  }

  Fact attention(Operation &op) {
    for (unsigned i = 0; i < op.getNumOperands(); ++i) {
      Fact &o = facts[op.getOperand(i)];
      if (i < 3 ? o.kind == Kind::Known || o.table : o.table)
        evidence(o, i < 3 ? "query" : "embedding");
    }
    Fact f;
    f.kind = Kind::Hidden;
    return f;
  }

  Fact join(nn::ConcatOp op) {
    if (most(*op) == Kind::Known)
      return known(*op);
    Fact f;
    f.kind = most(*op);
    bool tables = llvm::all_of(op.getInputs(), [&](Value v) { return facts[v].table; });
    for (Value v : op.getInputs()) {
      Fact &o = facts[v];
      if (tables) { // halves of a rotary table
        f.sources.append(o.sources);
        continue;
      }
      spend(o);
      if (o.kind != Kind::Known || o.sources.empty() || f.kind < Kind::Feature)
        continue;
      auto type = cast<RankedTensorType>(v.getType());
      if (op.getDim() != 0 && type.getRank() > 1 && o.varying.test(0))
        refuse(o, "one copy for each sample");
      else
        evidence(o, "token");
    }
    f.table = tables;
    return f;
  }

  /// Movement and elementwise operations of one operand.
  Fact move(Operation &op) {
    Fact f = facts[op.getOperand(0)];
    for (Value o : llvm::drop_begin(op.getOperands()))
      f.kind = std::max(f.kind, facts[o].kind);
    if (isa<nn::SoftmaxOp>(op)) {
      f.product = f.table = false;
      if (f.kind == Kind::Scores)
        f.kind = Kind::Hidden;
    }
    if (isa<nn::CompareOp, nn::IsNanOp>(op) && f.kind != Kind::Known)
      f.kind = Kind::Plain;
    if (op.hasTrait<nn::Elementwise>() && !isa<nn::CastOp>(op))
      f.product = false;
    if (f.kind != Kind::Known)
      return f;
    Value result = op.getResult(0);
    if (auto b = dyn_cast<nn::BroadcastOp>(op)) {
      llvm::SmallBitVector v(cast<RankedTensorType>(b.getType()).getRank());
      for (auto [i, d] : llvm::enumerate(b.getDims()))
        v[d] = f.varying.test(i);
      f.varying = v;
    } else if (auto t = dyn_cast<nn::TransposeOp>(op)) {
      llvm::SmallBitVector v(f.varying.size());
      for (auto [i, p] : llvm::enumerate(t.getPerm()))
        v[i] = f.varying.test(p);
      f.varying = v;
    } else if (auto r = dyn_cast<nn::ReshapeOp>(op)) {
      f.varying = reshaped(f.varying, cast<RankedTensorType>(r.getInput().getType()).getShape(), cast<RankedTensorType>(r.getType()).getShape());
    } else if (!op.hasTrait<nn::Elementwise>()) {
      llvm::SmallBitVector v = wide(result);
      if (v.size() == f.varying.size())
        v &= f.varying;
      f.varying = v;
    }
    return f;
  }

  /// A group of new dimensions that covers the same elements as a group of old ones varies where any of those did.
  static llvm::SmallBitVector reshaped(const llvm::SmallBitVector &was, ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
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
      for (size_t k = i0; k < i; ++k)
        any |= was.test(k);
      for (size_t k = j0; k < j; ++k)
        v[k] = any && to[k] > 1;
    }
    return v;
  }

  /// Elementwise operations of two or three operands: the meetings.
  Fact meet(Operation &op) {
    Kind k = most(op);
    bool additive = isa<nn::AddOp, nn::SubOp>(op), multiplicative = isa<nn::MulOp, nn::DivOp>(op), choice = isa<nn::SelectOp>(op);
    if (k == Kind::Known) {
      Fact f = known(op);
      f.varying = llvm::SmallBitVector(f.varying.size());
      for (Value o : op.getOperands())
        if (facts[o].varying.size() == f.varying.size())
          f.varying |= facts[o].varying;
      if (isa<nn::AddOp>(op))
        for (Value o : op.getOperands())
          if (auto c = o.getDefiningOp<nn::ConstantOp>())
            if (auto splat = dyn_cast<SplatElementsAttr>(c.getValue()))
              f.plusOne |= isa<FloatType>(splat.getElementType()) && splat.getSplatValue<APFloat>().convertToDouble() == 1;
      return f;
    }
    Fact f;
    f.kind = isa<nn::CompareOp>(op) ? Kind::Plain : k;
    if (isa<nn::CrossEntropyOp>(op))
      f.kind = Kind::Hidden;
    if (f.kind == Kind::Scores && !toSoftmax.contains(op.getResult(0)))
      f.kind = Kind::Hidden;
    for (unsigned i = 0; i < op.getNumOperands(); ++i) {
      Fact &o = facts[op.getOperand(i)];
      bool scaled = multiplicative && llvm::all_of(llvm::enumerate(op.getOperands()), [&](auto other) {
        return other.index() == i || (facts[other.value()].kind == Kind::Known && facts[other.value()].sources.empty());
      });
      bool squared = multiplicative && op.getOperand(0) == op.getOperand(1);
      if (o.table && o.kind != Kind::Known) { // rows of a table looked up by data
        if (scaled) {
          f.sources = o.sources;
          f.table = true;
        } else if (additive && k == Kind::Plain) { // bias table with a mask from the data; scores come later
          f.sources = o.sources;
          f.table = true;
        } else if (!multiplicative || squared || !bounded(o)) {
          evidence(o, "embedding");
        } else {
          refuse(o, "a rotary cache");
        }
        continue;
      }
      if (o.kind != Kind::Known || o.sources.empty())
        continue;
      if (additive && k == Kind::Plain && o.table) {
        f.sources = o.sources;
        f.table = true;
        continue;
      }
      if (additive || (choice && i > 0))
        added(o, op, k, choice);
      else if (multiplicative && !(isa<nn::DivOp>(op) && i == 0))
        multiplied(o, op, k);
    }
    return f;
  }

  void added(Fact &o, Operation &op, Kind data, bool choice) {
    auto shape = cast<RankedTensorType>(op.getResult(0).getType()).getShape();
    int64_t last = int64_t(shape.size()) - 1;
    if (o.table && data >= Kind::Feature)
      return evidence(o, "embedding");
    if (data == Kind::Scores)
      return refuse(o, "added to attention scores");
    if (data < Kind::Feature)
      return;
    size_t n = o.varying.count();
    bool along = last >= 0 && o.varying.test(last);
    if (n == 0) { // one number, or a vector of a single column
      bool column = llvm::any_of(op.getOperands(), [&](Value v) { return facts[v].product; });
      if (column && last >= 0 && shape[last] == 1 && single(o) && !choice)
        evidence(o, "bias");
      return;
    }
    if (content(o, [](const Content &c) { return c.isMask(); }))
      return refuse(o, "a mask");
    if (n == 1) {
      if ((choice || data == Kind::Feature) && !along)
        return;
      return evidence(o, choice ? "token" : "bias");
    }
    if (choice || !along)
      return;
    if (content(o, [](const Content &c) { return c.isSinusoid(); }))
      return refuse(o, "a sinusoidal table");
    if (shape.size() > 2 && o.varying.test(0) && content(o, [](const Content &c) { return c.isCopies(); }))
      return refuse(o, "one copy for each sample");
    evidence(o, "position");
  }

  void multiplied(Fact &o, Operation &op, Kind data) {
    auto shape = cast<RankedTensorType>(op.getResult(0).getType()).getShape();
    int64_t last = int64_t(shape.size()) - 1;
    size_t n = o.varying.count();
    if (data < Kind::Feature || n == 0 || structural(o))
      return;
    bool along = o.varying.test(last);
    if (n == 1) {
      if (data == Kind::Feature ? !along : data == Kind::Scores ? along : false)
        return;
      return evidence(o, "scale");
    }
    // Several dimensions: norms with a weight per head and column are parameters, tables along the sequence are not.
    bool sequence = lengths.empty() || o.table || !along || !content(o, [](const Content &c) { return c.known(); });
    for (int64_t d = 0; d < last; ++d)
      sequence |= o.varying.test(d) && lengths.contains(shape[d]);
    if (sequence)
      return refuse(o, "a table that multiplies activations");
    evidence(o, "scale");
  }

  /// Rows of a table end their way here: used as an embedding is.
  void spend(const Fact &o) {
    if (o.table && o.kind != Kind::Known)
      evidence(o, "embedding");
  }

  template <typename Test> bool content(const Fact &o, Test test) {
    return llvm::any_of(o.sources, [&](unsigned s) { return test(Content(*sites[s].use.tensor, weights)); });
  }
  /// Zeros and ones: a permutation, a selection, a padding mask.
  bool structural(const Fact &o) {
    return content(o, [](const Content &c) { return c.isSigns(); });
  }
  bool bounded(const Fact &o) {
    return llvm::all_of(o.sources, [&](unsigned s) {
      Content c(*sites[s].use.tensor, weights);
      return !c.known() || c.isBounded();
    });
  }
  bool single(const Fact &o) { return o.sources.size() == 1 && sites[o.sources[0]].use.tensor->dims.size() == 1; }

  void evidence(const Fact &o, StringRef role) {
    for (unsigned s : o.sources) {
      if (sites[s].role.empty())
        sites[s].role = role.str();
      sites[s].plusOne |= o.plusOne;
    }
  }
  void refuse(const Fact &o, StringRef why) {
    for (unsigned s : o.sources)
      sites[s].why = why.str();
  }

  func::FuncOp function;
  MutableArrayRef<Site> sites;
  Weights &weights;
  llvm::DenseMap<Operation *, unsigned> siteOf;
  struct Facts {
    llvm::DenseMap<Value, std::unique_ptr<Fact>> map;
    Fact &operator[](Value v) {
      auto &f = map[v];
      if (!f)
        f = std::make_unique<Fact>();
      return *f;
    }
  } facts;
  llvm::DenseSet<Value> toSoftmax, toTrig;
  llvm::DenseSet<int64_t> lengths; // sizes of the integer inputs beyond the batch
};

} // namespace

void findRoles(func::FuncOp forward, MutableArrayRef<Site> sites, Weights &weights) { Analysis(forward, sites, weights).run(); }

} // namespace zero::onnx
