//===- build.cpp - body of a kernel to its program -----------------------------------------------===//
// Every value is computed where it is needed, at the index it is needed at: an operation that moves data
// changes the index its operand is asked for and leaves no trace in the program.
#include "compiler/codegen/classify.h"
#include "compiler/codegen/program.h"
#include "compiler/nn/Nn.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::codegen {
namespace {

Scalar scalarOf(Type type) {
  if (type.isF32()) return Scalar::F32;
  if (type.isF64()) return Scalar::F64;
  if (type.isF16()) return Scalar::F16;
  if (type.isBF16()) return Scalar::BF16;
  if (type.isInteger(64)) return Scalar::I64;
  if (type.isInteger(32)) return Scalar::I32;
  return Scalar::Bool;
}
Scalar scalarOf(Value v) { return scalarOf(cast<RankedTensorType>(v.getType()).getElementType()); }
/// Half precision is computed in single.
Scalar computed(Scalar t) { return t == Scalar::F16 || t == Scalar::BF16 ? Scalar::F32 : t; }

std::optional<Fn> functionOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, std::optional<Fn>>(op)
      .Case([](AddOp) { return Fn::Add; })
      .Case([](SubOp) { return Fn::Sub; })
      .Case([](nn::MulOp) { return Fn::Mul; })
      .Case([](DivOp) { return Fn::Div; })
      .Case([](ModOp) { return Fn::Mod; })
      .Case([](PowOp) { return Fn::Pow; })
      .Case([](MaxOp) { return Fn::Max; })
      .Case([](MinOp) { return Fn::Min; })
      .Case([](AndOp) { return Fn::And; })
      .Case([](OrOp) { return Fn::Or; })
      .Case([](XorOp) { return Fn::Xor; })
      .Case([](NotOp) { return Fn::Not; })
      .Case([](NegOp) { return Fn::Neg; })
      .Case([](AbsOp) { return Fn::Abs; })
      .Case([](ExpOp) { return Fn::Exp; })
      .Case([](LogOp) { return Fn::Log; })
      .Case([](SqrtOp) { return Fn::Sqrt; })
      .Case([](RsqrtOp) { return Fn::Rsqrt; })
      .Case([](TanhOp) { return Fn::Tanh; })
      .Case([](ErfOp) { return Fn::Erf; })
      .Case([](SinOp) { return Fn::Sin; })
      .Case([](CosOp) { return Fn::Cos; })
      .Case([](FloorOp) { return Fn::Floor; })
      .Case([](SigmoidOp) { return Fn::Sigmoid; })
      .Case([](IsNanOp) { return Fn::IsNan; })
      .Case([](SelectOp) { return Fn::Select; })
      .Case([](CastOp) { return Fn::Cast; })
      .Case([](CompareOp c) { return Fn(int(Fn::Eq) + int(c.getPredicate())); })
      .Default([](Operation *) { return std::nullopt; });
}

/// Made of polynomials for f32 (see math.cpp).
bool isElementary(Fn fn) {
  return fn == Fn::Exp || fn == Fn::Log || fn == Fn::Tanh || fn == Fn::Erf || fn == Fn::Sin || fn == Fn::Cos || fn == Fn::Pow ||
         fn == Fn::Sigmoid;
}

class Builder {
public:
  Builder(func::FuncOp kernel) : kernel(kernel) {}

  FailureOr<Program> run() {
    auto found = classify(kernel);
    if (failed(found)) return failure();
    form = std::move(*found);
    // Every round splits one dimension more finely; the bound only guards against a mistake here.
    for (int round = 0; round < 64; ++round) {
      p = Program();
      p.name = kernel.getSymName().str();
      memo.clear(), interned.clear(), guards.clear();
      if (failed(assemble())) return failure();
      if (!p.space.wanted) break;
      auto &parts = factors[p.space.wanted->key];
      int64_t &n = parts[p.space.wanted->factor];
      n /= p.space.wanted->inner;
      parts.insert(parts.begin() + p.space.wanted->factor + 1, p.space.wanted->inner);
    }
    return std::move(p);
  }

private:
  func::FuncOp kernel;
  Program p;
  std::map<int, SmallVector<int64_t>> factors; // of each original dimension, by key
  std::map<std::pair<Operation *, int64_t>, int> keys;
  std::map<std::vector<int64_t>, int> memo, interned;
  SmallVector<Guard> guards; // under which the present value is asked for

  KernelForm form;
  Index outerLinear, innerLinear; // position among the rows and among the columns

  Operation *terminator() { return kernel.getBody().front().getTerminator(); }

  //--- dimensions ---------------------------------------------------------------------------------

  int keyOf(Operation *op, int64_t dim) { return keys.try_emplace({op, dim}, int(keys.size())).first->second; }

  /// A dimension of the given size as an index, its factors appended to `dims`.
  Index loop(Operation *op, int64_t number, int64_t size, std::vector<unsigned> &dims) {
    int key = keyOf(op, number);
    auto &parts = factors[key];
    if (parts.empty()) parts.push_back(size);
    Index index;
    int64_t inner = size;
    for (auto [i, n] : llvm::enumerate(parts)) {
      inner /= n;
      if (n == 1) continue;
      dims.push_back(p.space.dim(n, key, i));
      index = index + Index::atom(dims.back(), inner);
    }
    return index;
  }

  Indices loops(ArrayRef<int64_t> shape, int64_t firstNumber, std::vector<unsigned> &dims) {
    Indices at;
    for (auto [i, n] : llvm::enumerate(shape)) at.push_back(loop(kernel, firstNumber + i, n, dims));
    return at;
  }

  //--- the roots ----------------------------------------------------------------------------------

  LogicalResult assemble() {
    p.kind = form.kind;
    for (Value v : kernel.getArguments()) p.inputs.push_back({scalarOf(v), elementsOf(v)});
    for (Value v : terminator()->getOperands()) p.outputs.push_back({scalarOf(v), elementsOf(v)});
    if (form.kind == Program::Scatter) return assembleScatter();

    Indices outer = loops(form.outerShape, 0, form.kind == Program::Columns ? p.reduced : p.outer);
    Indices inner = loops(form.innerShape, 100, p.inner);
    outerLinear = p.space.linearize(outer, form.outerShape);
    innerLinear = p.space.linearize(inner, form.innerShape);
    SmallVector<int64_t> rootShape(form.outerShape);
    llvm::append_range(rootShape, form.innerShape);
    Indices root(outer);
    llvm::append_range(root, inner);

    if (form.kind == Program::Scan) {
      auto scan = cast<CumSumOp>(terminator()->getOperand(0).getDefiningOp());
      p.exclusive = scan.getExclusive(), p.reverse = scan.getReverse();
      int node = build(scan.getInput(), p.space.reshape(root, rootShape, shapeOf(scan.getInput())));
      if (node < 0) return failure();
      p.stores.push_back({0, node, p.space.linearize(root, rootShape)});
      return success();
    }
    for (auto [i, v] : llvm::enumerate(terminator()->getOperands())) {
      bool full = form.kind == Program::Rows ? elementsOf(v) == product(rootShape) : false;
      bool columns = form.kind == Program::Columns;
      Indices at = full      ? p.space.reshape(root, rootShape, shapeOf(v))
                   : columns ? p.space.reshape(inner, form.innerShape, shapeOf(v))
                             : p.space.reshape(outer, form.outerShape, shapeOf(v));
      int node = build(v, at);
      if (node < 0) return failure();
      p.stores.push_back({unsigned(i), node, p.space.linearize(at, shapeOf(v))});
    }
    return success();
  }

  /// `nn.scatter_add`, or the sum of one and of something indexed as its result.
  LogicalResult assembleScatter() {
    Value result = terminator()->getOperand(0);
    auto scatter = result.getDefiningOp<ScatterAddOp>();
    Value initial;
    if (auto add = result.getDefiningOp<AddOp>(); !scatter && add) {
      scatter = add.getLhs().getDefiningOp<ScatterAddOp>();
      initial = add.getRhs();
      if (!scatter) {
        scatter = add.getRhs().getDefiningOp<ScatterAddOp>();
        initial = add.getLhs();
      }
    }
    if (!scatter) return kernel.emitOpError("holds an nn.scatter_add that is neither its result nor a summand of it");
    auto shape = shapeOf(scatter);
    auto rows = shapeOf(scatter.getIndices());
    auto columns = shape.drop_front();
    Indices outer = loops(rows, 0, p.outer), inner = loops(columns, 100, p.inner);
    Indices outputAt{loop(kernel, 200, shape[0], p.reduced)};
    llvm::append_range(outputAt, inner);
    Indices updateAt(outer);
    llvm::append_range(updateAt, inner);
    p.scatterRow = build(scatter.getIndices(), outer);
    p.scatterValue = build(scatter.getUpdates(), updateAt);
    Node zero(Node::Constant);
    zero.type = computed(scalarOf(result));
    int start = initial ? build(initial, outputAt) : intern(zero);
    if (p.scatterRow < 0 || p.scatterValue < 0 || start < 0) return failure();
    p.stores.push_back({0, start, p.space.linearize(outputAt, shape)});
    return success();
  }

  static int64_t product(ArrayRef<int64_t> shape) {
    int64_t n = 1;
    for (int64_t s : shape) n *= s;
    return n;
  }

  //--- values -------------------------------------------------------------------------------------

  static void append(std::vector<int64_t> &key, const Index &index) {
    key.push_back(index.terms.size());
    key.push_back(index.constant);
    for (const Term &t : index.terms) key.insert(key.end(), {int64_t(t.atom), t.scale});
  }
  static void append(std::vector<int64_t> &key, ArrayRef<Guard> guards) {
    key.push_back(guards.size());
    for (const Guard &g : guards) {
      append(key, g.index);
      key.insert(key.end(), {g.low, g.high, g.step});
    }
  }

  int intern(Node n) {
    std::vector<int64_t> key{n.kind, int64_t(n.fn), int64_t(n.type), n.arg, n.whole, int64_t(n.operands.size())};
    int64_t bits;
    static_assert(sizeof bits == sizeof n.real);
    std::memcpy(&bits, &n.real, sizeof bits);
    key.push_back(bits);
    key.insert(key.end(), n.operands.begin(), n.operands.end());
    append(key, n.index);
    append(key, n.guards);
    key.insert(key.end(), n.dims.begin(), n.dims.end());
    auto [it, fresh] = interned.try_emplace(std::move(key), int(p.nodes.size()));
    if (fresh) p.nodes.push_back(std::move(n));
    return it->second;
  }

  int constant(Scalar type, double value) {
    Node n(Node::Constant);
    n.type = type;
    if (isFloat(type))
      n.real = value;
    else
      n.whole = int64_t(value);
    return intern(n);
  }

  int apply(Fn fn, Scalar type, ArrayRef<int> operands, int64_t whole = 0) {
    Node n(Node::Apply);
    n.fn = fn, n.type = type, n.whole = whole;
    n.operands.assign(operands.begin(), operands.end());
    return intern(n);
  }

  /// The node of `v` at this index; -1 after an error.
  int build(Value v, const Indices &at) {
    std::vector<int64_t> key{int64_t(reinterpret_cast<intptr_t>(v.getAsOpaquePointer()))};
    for (const Index &i : at) append(key, i);
    append(key, guards);
    auto it = memo.find(key);
    if (it != memo.end()) return it->second;
    int node = isa<BlockArgument>(v) ? load(cast<BlockArgument>(v), at) : compute(v, at);
    memo[key] = node;
    return node;
  }

  int load(BlockArgument v, const Indices &at) {
    Node n(Node::Load);
    n.type = computed(scalarOf(v));
    n.arg = v.getArgNumber();
    n.index = p.space.linearize(at, shapeOf(v));
    // An element that exists whatever the guards say is simply read.
    auto [low, high] = p.space.range(n.index);
    bool plain = llvm::all_of(n.index.terms, [&](const Term &t) { return p.space.atoms[t.atom].kind == Atom::Dim; });
    if (!plain || low < 0 || high >= elementsOf(v)) n.guards.assign(guards.begin(), guards.end());
    return intern(n);
  }

  /// `inside` under the additional guards, else `outside` under the present ones.
  /// `otherwise` is known where the guards do not hold.
  template <typename Inside, typename Outside>
  int choose(ArrayRef<Guard> all, Scalar type, Inside inside, Outside outside, std::optional<Guard> otherwise = {}) {
    SmallVector<Guard> needed;
    for (const Guard &g : all)
      if (auto simple = p.space.simplify(g)) needed.push_back(*simple);
    if (needed.empty()) return inside();
    size_t before = guards.size();
    for (const Guard &g : needed)
      if (!llvm::is_contained(guards, g)) guards.push_back(g);
    int a = inside();
    guards.truncate(before);
    int b = outside();
    if (a < 0 || b < 0) return -1;
    Node n(Node::Choose);
    n.type = type;
    n.operands = {a, b};
    n.guards.assign(needed.begin(), needed.end());
    if (otherwise)
      if (auto simple = p.space.simplify(*otherwise)) n.otherwise.push_back(*simple);
    return intern(n);
  }

  /// An integer value as an index below `size`.
  std::optional<Index> indexFrom(Value v, const Indices &at, int64_t size) {
    int node = build(v, at);
    if (node < 0) return std::nullopt;
    if (p.nodes[node].kind == Node::Constant) return Index(p.nodes[node].whole);
    if (p.nodes[node].kind == Node::Position) return p.nodes[node].index;
    return Index::atom(p.space.value(node, size));
  }

  int compute(Value v, const Indices &at) {
    Operation *op = v.getDefiningOp();
    Scalar type = computed(scalarOf(v));
    if (auto fn = functionOf(op)) {
      if (type == Scalar::F64 && isElementary(*fn)) {
        op->emitOpError("has no generated form for f64; it is computed in f32, f16 or bf16");
        return -1;
      }
      SmallVector<int> operands;
      for (Value o : op->getOperands()) {
        operands.push_back(build(o, at));
        if (operands.back() < 0) return -1;
      }
      if (*fn == Fn::Cast) {
        Scalar from = scalarOf(op->getOperand(0)), to = scalarOf(v);
        if (from == to || (to == Scalar::F32 && computed(from) == Scalar::F32)) return operands[0];
        return apply(Fn::Cast, type, operands, int64_t(to)); // `whole` is the precision to round to
      }
      return apply(*fn, type, operands);
    }
    return llvm::TypeSwitch<Operation *, int>(op)
        .Case([&](ConstantOp c) {
          auto dense = dyn_cast<DenseElementsAttr>(c.getValue());
          if (!dense || !dense.isSplat()) {
            c.emitOpError("has several values and cannot stand in a kernel; it must be an operand of the launch");
            return -1;
          }
          if (isa<FloatType>(dense.getElementType()))
            return constant(type, dense.getSplatValue<APFloat>().isNaN() ? NAN : toDouble(dense.getSplatValue<APFloat>()));
          Node n(Node::Constant);
          n.type = type;
          auto bits = dense.getSplatValue<APInt>();
          n.whole = type == Scalar::Bool ? int64_t(bits.getZExtValue()) : bits.getSExtValue();
          return intern(n);
        })
        .Case([&](IotaOp c) {
          Node n(Node::Position);
          n.type = type;
          n.index = at[c.getDim()];
          return intern(n);
        })
        .Case([&](RandomOp c) {
          int seed = build(c.getSeed(), {Index(0)}), sample = build(c.getSeed(), {Index(1)});
          Node position(Node::Position);
          position.type = Scalar::I64;
          position.index = p.space.linearize(at, shapeOf(v));
          int perSample = constant(Scalar::I64, double(elementsOf(v) / int64_t(c.getSamples())));
          int counter = apply(Fn::Add, Scalar::I64, {apply(Fn::Mul, Scalar::I64, {sample, perSample}), intern(position)});
          return apply(Fn::Random, Scalar::F32, {seed, counter}, c.getId());
        })
        .Case([&](BroadcastOp c) {
          Indices from;
          for (auto [n, d] : llvm::zip(shapeOf(c.getInput()), c.getDims())) from.push_back(n == 1 ? Index(0) : at[d]);
          return build(c.getInput(), from);
        })
        .Case([&](ReshapeOp c) { return build(c.getInput(), p.space.reshape(at, shapeOf(v), shapeOf(c.getInput()))); })
        .Case([&](TransposeOp c) {
          Indices from(at.size());
          for (auto [i, d] : llvm::enumerate(c.getPerm())) from[d] = at[i];
          return build(c.getInput(), from);
        })
        .Case([&](SliceOp c) {
          Indices from;
          for (auto [i, start, step] : llvm::zip(at, c.getStarts(), c.getSteps())) from.push_back(Index(start) + i * step);
          return build(c.getInput(), from);
        })
        .Case([&](PadOp c) { return pad(c, at); })
        .Case([&](ConcatOp c) { return concat(c, at, 0, 0); })
        .Case([&](GatherOp c) {
          size_t lead = shapeOf(c.getIndices()).size();
          auto row = indexFrom(c.getIndices(), Indices(at.begin(), at.begin() + lead), shapeOf(c.getInput())[0]);
          if (!row) return -1;
          Indices from{*row};
          from.append(at.begin() + lead, at.end());
          return build(c.getInput(), from);
        })
        .Case([&](TakeAlongOp c) {
          auto column = indexFrom(c.getIndices(), at, shapeOf(c.getInput()).back());
          if (!column) return -1;
          Indices from(at);
          from.push_back(*column);
          return build(c.getInput(), from);
        })
        .Case([&](ReduceOp c) { return reduce(c, at); })
        .Default([&](Operation *unknown) {
          unknown->emitOpError("cannot stand at this place of a kernel");
          return -1;
        });
  }

  static double toDouble(APFloat value) {
    bool inexact;
    value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &inexact);
    return value.convertToDouble();
  }

  int pad(PadOp op, const Indices &at) {
    Indices from;
    SmallVector<Guard> inside;
    auto shape = shapeOf(op.getInput());
    for (size_t i = 0; i < at.size(); ++i) {
      Index shifted = at[i] - Index(op.getLow()[i]);
      int64_t step = op.getInterior()[i] + 1, span = (shape[i] - 1) * step + 1;
      if (op.getLow()[i] || op.getHigh()[i] || step > 1) inside.push_back({shifted, 0, span, step});
      from.push_back(step == 1 ? shifted : p.space.quotient(shifted, step));
    }
    Scalar type = computed(scalarOf(op.getResult()));
    return choose(
        inside, type, [&] { return build(op.getInput(), from); },
        [&] {
          Node n(Node::Constant);
          n.type = type;
          if (auto real = dyn_cast<FloatAttr>(op.getValue()))
            n.real = toDouble(real.getValue());
          else
            n.whole = cast<IntegerAttr>(op.getValue()).getValue().getSExtValue() & (type == Scalar::Bool ? 1 : -1);
          return intern(n);
        });
  }

  int concat(ConcatOp op, const Indices &at, unsigned piece, int64_t start) {
    Value input = op.getInputs()[piece];
    int64_t dim = op.getDim(), size = shapeOf(input)[dim];
    Indices from(at);
    from[dim] = at[dim] - Index(start);
    if (piece + 1 == op.getInputs().size()) {
      // The last piece is read under its own guard as well: where it does not hold an earlier piece was chosen.
      Guard own{from[dim], 0, size, 1};
      auto simple = p.space.simplify(own);
      size_t before = guards.size();
      if (simple && !llvm::is_contained(guards, *simple)) guards.push_back(*simple);
      int node = build(input, from);
      guards.truncate(before);
      return node;
    }
    Scalar type = computed(scalarOf(op.getResult()));
    std::optional<Guard> last; // the only piece left is the last one's
    if (piece + 2 == op.getInputs().size()) last = Guard{at[dim] - Index(start + size), 0, shapeOf(op.getInputs().back())[dim], 1};
    return choose(
        {Guard{from[dim], 0, size, 1}}, type, [&] { return build(input, from); }, [&] { return concat(op, at, piece + 1, start + size); },
        last);
  }

  int reduce(ReduceOp op, const Indices &at) {
    auto shape = shapeOf(op.getInput());
    Indices from(shape.size());
    SmallVector<int64_t> reducedShape;
    size_t kept = 0;
    for (size_t i = 0; i < shape.size(); ++i)
      if (llvm::is_contained(op.getDims(), int64_t(i)))
        reducedShape.push_back(shape[i]);
      else
        from[i] = at[kept++];
    Node n(Node::Reduce);
    n.fn = op.getKind() == ReductionKind::sum ? Fn::Add : op.getKind() == ReductionKind::max ? Fn::Max : Fn::Min;
    n.type = computed(scalarOf(op.getResult()));
    if (reachOf(op) == Reach::Nothing) {
      for (int64_t d : op.getDims()) from[d] = Index(0);
      return build(op.getInput(), from);
    }
    Index linear = p.space.linearize(at, shapeOf(op.getResult()));
    bool rows = form.kind == Program::Rows;
    bool isWide = form.wide.contains(op) && linear == (rows ? outerLinear : innerLinear);
    std::vector<unsigned> dims;
    Indices over;
    SmallVector<Guard> outside;
    if (isWide) {
      // The whole kernel runs over these dimensions, whatever asked for the result.
      Index position = rows ? innerLinear : outerLinear;
      over = p.space.reshape(ArrayRef<Index>(position), {rows ? product(form.innerShape) : product(form.outerShape)}, reducedShape);
      dims = rows ? p.inner : p.reduced;
      outside.swap(guards);
    } else {
      for (auto [i, size] : llvm::enumerate(reducedShape)) over.push_back(loop(op, i, size, dims));
    }
    for (auto [d, i] : llvm::zip(op.getDims(), over)) from[d] = i;
    n.dims.assign(dims.begin(), dims.end());
    int operand = build(op.getInput(), from);
    if (isWide) outside.swap(guards);
    if (operand < 0) return -1;
    n.operands = {operand};
    int node = intern(n);
    if (isWide && !llvm::is_contained(p.reductions, node)) p.reductions.push_back(node);
    return node;
  }
};

} // namespace

FailureOr<Program> buildProgram(func::FuncOp kernel) {
  auto program = Builder(kernel).run();
  if (succeeded(program)) {
    collapse(*program);
    derive(*program);
  }
  return program;
}

} // namespace zero::codegen
