//===- masked_rows.cpp - rows that a mask of the data chooses ---------------------------------------===//
#include "compiler/onnx/masked_rows.h"
#include "compiler/onnx/ops/indexing.h"
#include <cmath>

namespace zero::onnx {
namespace {

bool isElementwise(StringRef op) {
  static const Registry family = [] {
    Registry all;
    registerArithmetic(all);
    registerElementwise(all);
    registerTrigonometry(all);
    registerIntegers(all);
    return all;
  }();
  return op == "Dropout" || family.contains(op);
}

constexpr llvm::StringLiteral kSupported =
    "; rows that are computed each by itself and put back where they came from are supported (experts that look their tokens up can be "
    "exported as products: in transformers, config._experts_implementation = \"batched_mm\")";

/// The dimension of a tensor of shape `to`, with the elements of one of shape `from`, that is dimension `dim` of that.
std::optional<int64_t> kept(Shape from, int64_t dim, Shape to) {
  int64_t before = *elementsOf(from.take_front(dim)), so = 1;
  for (auto [i, size] : llvm::enumerate(to)) {
    if (so == before && size == from[dim]) return int64_t(i);
    so *= size;
  }
  return std::nullopt;
}

/// Of each row in turn.
constexpr int64_t kMostInTurn = 16;

/// What a mask is, in whatever shape.
mlir::Value root(const Val &mask) {
  mlir::Value v = mask.value;
  while (v && llvm::isa_and_nonnull<nn::ReshapeOp, nn::BroadcastOp>(v.getDefiningOp())) v = v.getDefiningOp()->getOperand(0);
  return v;
}

constexpr int kMostDepth = 8;

/// Whether two values are computed alike: who writes `y[kind == 1] = f(x[kind == 1])` compares twice.
bool isAlike(mlir::Value a, mlir::Value b, int depth = kMostDepth) {
  if (a == b) return true;
  mlir::Operation *x = a ? a.getDefiningOp() : nullptr, *y = b ? b.getDefiningOp() : nullptr;
  if (!x || !y || depth == 0 || x->getNumResults() != 1) return false;
  auto alike = [depth](mlir::Value v, mlir::Value w) { return mlir::success(isAlike(v, w, depth - 1)); };
  return mlir::OperationEquivalence::isEquivalentTo(x, y, alike, nullptr, mlir::OperationEquivalence::IgnoreLocations);
}

bool isSameMask(const Val &a, const Val &b) { return isAlike(root(a), root(b)); }

class Rows {
public:
  explicit Rows(NodeContext &c) : c(c), op(c.node.op) {
    for (auto [i, v] : llvm::enumerate(c.inputs))
      if (v && v.masked) (v.masked->dim == MaskedRows::kCount ? counts : rows).push_back(i);
  }

  Vals handle(Vals (*handler)(NodeContext &)) {
    for (size_t i : rows)
      if (!isSameMask(c.inputs[i].masked->mask, masked().mask)) return refuse("they are those of two masks");
    if (c.node.mask == Node::Mask::Put) return putInPlace();
    if (!rows.empty() && rows[0] == 1 && (op == "ScatterND" || op == "ScatterElements")) return putBack(handler);
    if (!counts.empty() && !mayCount()) return refuse("it computes with how many there are");
    if (only(0) && op.starts_with("Reduce") && sums()) return overAll(handler);
    if (op == "SoftmaxCrossEntropyLoss" || op == "NegativeLogLikelihoodLoss") return lossOf(handler);
    Vals results = handler(c);
    if (c.e.failed() || results.empty() || !results[0]) return results;
    if (rows.empty() && isShape()) return results;
    auto dim = rows.empty() || op == "Shape" ? std::optional(MaskedRows::kCount) : dimOf(results[0]);
    for (Val &v : results) {
      if (!v) continue;
      bool whole = dim && (*dim == MaskedRows::kCount || (*dim < v.rank() && v.dim(*dim) == places()));
      if (!whole) return refuse("it mixes them");
      v.masked = std::make_shared<MaskedRows>(MaskedRows{(rows.empty() ? *c.inputs[counts[0]].masked : masked()).mask, *dim});
    }
    return results;
  }

private:
  const MaskedRows &masked() const { return *c.inputs[rows[0]].masked; }
  int64_t places() const { return masked().mask.type().getNumElements(); }
  bool only(size_t input) const { return rows.size() == 1 && rows[0] == input; }

  Vals refuse(const llvm::Twine &why) {
    return c.fail("it reads rows that a mask of the data chooses, whose number only the run knows, and " + why + kSupported);
  }

  /// Whether a count is nothing but the shape that something is made in.
  bool isShape() const { return op == "Reshape" || op == "Expand" || op == "ConstantOfShape"; }
  bool mayCount() const {
    if (isShape()) return true;
    bool whole =
        llvm::all_of(c.inputs, [](const Val &v) { return !v || !v.isFloat(); }) && !(op == "Cast" && isFloat(Type(c.integer("to", 0))));
    bool moves = op == "Gather" || op == "Slice" || op == "Concat" || op == "Unsqueeze" || op == "Squeeze" || isElementwise(op);
    return rows.empty() && whole && moves;
  }

  /// That of the result along which not all rows count; none where rows are mixed.
  std::optional<int64_t> dimOf(const Val &result) {
    int64_t dim = masked().dim, rank = c.inputs[rows[0]].rank();
    if (isElementwise(op) || op == "Expand") return aligned(result);
    if (op == "MatMul") return only(0) && rank > 1 && dim != rank - 1 ? std::optional(result.rank() - (rank - dim)) : std::nullopt;
    if (op == "Gemm") return only(0) && dim == 0 && !c.integer("transA", 0) ? std::optional<int64_t>(0) : std::nullopt;
    if (op == "Gather") return gathered(dim, rank);
    if (op == "GatherND") return only(1) && dim + 1 < rank && !c.integer("batch_dims", 0) ? std::optional(dim) : std::nullopt;
    if (op == "GatherElements") return dim != axis(0, rank) ? aligned(result) : std::nullopt;
    if (op == "Concat") return dim != axis(0, rank) ? aligned(result) : std::nullopt;
    if (!only(0)) return std::nullopt;
    Shape from = c.inputs[0].shape();
    if (op == "Reshape" || op == "Flatten" || op == "Unsqueeze" || op == "Squeeze") return kept(from, dim, result.shape());
    if (op == "Transpose") {
      Ints perm = c.permutation(rank);
      return llvm::find(perm, dim) - perm.begin();
    }
    if (op == "Slice") return result.dim(dim) == from[dim] ? std::optional(dim) : std::nullopt;
    if (op == "Split") return dim != axis(0, rank) ? std::optional(dim) : std::nullopt;
    if (op == "Softmax" || op == "LogSoftmax") // before opset 13 over all dimensions from the axis on
      return (c.opset < 13 ? dim < axis(1, rank) : dim != axis(-1, rank)) ? std::optional(dim) : std::nullopt;
    if (op == "LayerNormalization" || op == "RMSNormalization") return dim < axis(-1, rank) ? std::optional(dim) : std::nullopt;
    if (op.starts_with("Reduce")) return reduced(dim);
    return std::nullopt;
  }

  int64_t axis(int64_t otherwise, int64_t rank) { return c.dimension(c.integer("axis", otherwise), rank); }

  /// As broadcasting has it.
  std::optional<int64_t> aligned(const Val &result) {
    std::optional<int64_t> at;
    for (size_t i : rows) {
      const Val &v = c.inputs[i];
      int64_t dim = result.rank() - (v.rank() - v.masked->dim);
      if (at && *at != dim) return std::nullopt;
      at = dim;
    }
    return at;
  }

  std::optional<int64_t> gathered(int64_t dim, int64_t rank) {
    if (only(1)) return axis(0, c.inputs[0].rank()) + dim;
    int64_t a = axis(0, rank);
    if (!only(0) || a == dim) return std::nullopt;
    return dim < a ? dim : dim - 1 + c.inputs[1].rank();
  }

  /// What a reduction reduces, not negative.
  Ints reducedAxes() {
    int64_t rank = c.inputs[0].rank();
    auto axes = c.ints("axes");
    if (!axes && c.has(1)) axes = c.knownInts(1);
    if (!axes || axes->empty()) return c.integer("noop_with_empty_axes", 0) ? Ints() : upTo(rank);
    for (int64_t &a : *axes) a += a < 0 ? rank : 0;
    return *axes;
  }
  bool sums() { return llvm::is_contained(reducedAxes(), masked().dim); }

  std::optional<int64_t> reduced(int64_t dim) {
    Ints axes = reducedAxes();
    int64_t before = llvm::count_if(axes, [dim](int64_t a) { return a < dim; });
    return c.integer("keepdims", 1) ? dim : dim - before;
  }

  /// Which rows count, beside a value of this rank.
  Val held(int64_t rank) {
    Ints column(rank, 1);
    column[masked().dim] = places();
    return c.e.reshape(masked().mask, column);
  }

  /// A reduction over the rows: those that do not count are what changes nothing in it.
  Vals overAll(Vals (*handler)(NodeContext &)) {
    Val x = c.inputs[0];
    bool largest = op == "ReduceMax", extreme = largest || op == "ReduceMin", mean = op == "ReduceMean";
    bool known = extreme || mean || op == "ReduceSum" || op == "ReduceL1" || op == "ReduceL2" || op == "ReduceSumSquare";
    if (!known || (!x.isFloat() && (extreme || mean))) return refuse("it mixes them");
    double nothing = !extreme ? 0 : largest ? -HUGE_VAL : HUGE_VAL;
    Val counts = c.e.convert(masked().mask, c.e.f32());
    auto n = double(places());
    c.inputs[0] = c.e.select(held(x.rank()), x, c.e.scalar(nothing, x.element()));
    Vals results = handler(c);
    if (!mean || results.empty() || !results[0]) return results;
    Val many = c.e.reduce(nn::ReductionKind::sum, counts, upTo(counts.rank()));
    return {c.e.mul(results[0], c.e.convert(c.e.div(c.e.scalar(n, c.e.f32()), many), x.element()))};
  }

  /// The labels of rows that do not count are those that a loss ignores.
  Vals lossOf(Vals (*handler)(NodeContext &)) {
    bool fits = rows.size() == 2 && rows[1] == 1 && masked().dim == 0 && c.inputs[1].masked->dim == 0 && c.attribute("ignore_index");
    if (!fits || c.string("reduction", "mean") == "none") return refuse("its loss is of them");
    Val labels = c.inputs[1];
    c.inputs[1] = c.e.select(held(labels.rank()), labels, c.e.scalar(double(c.integer("ignore_index", 0)), labels.element()));
    c.inputs[0].masked = nullptr;
    return handler(c);
  }

  /// Rows that do not count are left out: as zeros of a sum, or where what was there stays.
  Vals putBack(Vals (*handler)(NodeContext &)) {
    Val data = c.inputs[0], indices = c.inputs[1], updates = c.inputs[2];
    const MaskedRows masked = this->masked();
    std::string reduction = c.string("reduction", "none");
    bool nd = op == "ScatterND", sum = reduction == "add";
    int64_t n = places(), k = nd && indices.rank() ? indices.shape().back() : 1;
    bool fits = data && updates && !data.masked && indices.isConstant() && masked.dim == 0 &&
                (!updates.masked || updates.masked->dim == 0) && updates.rank() > 0 && k > 0 && k <= data.rank() &&
                (nd ? indices.rank() == 2 : axis(0, data.rank()) == 0) && (sum || reduction == "none");
    if (!fits) return refuse("it puts them to other rows");
    Val counts = c.e.reshape(masked.mask, {n}), zero = c.e.scalar(0, updates.element());
    for (Val *v : {&indices, &updates}) v->masked = nullptr;
    int64_t rows = *elementsOf(data.shape().take_front(k)), inner = *elementsOf(data.shape().drop_front(k));
    auto places = placesOfRows(nd ? linearIndex(c, indices, data.shape().take_front(k)) : firstOfEach(indices), n, rows);
    if (places.empty() || updates.type().getNumElements() != n * inner) {
      if (!sum) return refuse("it puts them to other rows");
      Ints column(updates.rank(), 1);
      column[0] = n;
      c.inputs = {data, indices, c.e.select(c.e.reshape(counts, column), updates, zero)};
      return handler(c);
    }
    Val all = c.e.reshape(data, {rows, inner}), from = c.e.reshape(updates, {n, inner});
    for (const nn::Tensor &place : places) { // of several for one row the last counts, or their sum
      Val here = c.e.reshape(rowsAt(c, counts, Val(place)), {rows, 1}), put = rowsAt(c, from, Val(place));
      all = sum ? c.e.add(all, c.e.select(here, put, zero)) : c.e.select(here, put, all);
    }
    return {c.e.reshape(all, data.shape())};
  }

  /// [n] of indices [n, …] that are the same throughout each row; null if they are not.
  static Val firstOfEach(const Val &indices) {
    std::vector<int64_t> given = indices.constant->integers();
    int64_t n = indices.dim(0), each = int64_t(given.size()) / std::max<int64_t>(1, n);
    nn::Tensor first(mlir::RankedTensorType::get({n}, indices.element()));
    for (int64_t i = 0; i < int64_t(given.size()); ++i) {
      if (given[i] != given[i / each * each]) return {};
      if (i % each == 0) first.set(i / each, double(given[i]));
    }
    return Val(std::move(first));
  }

  /// Of each row the first place that goes there, the second, and so on, all of them known and as many for each; empty if that is not so.
  std::vector<nn::Tensor> placesOfRows(const Val &rowOf, int64_t n, int64_t rows) {
    std::vector<nn::Tensor> places;
    if (!rowOf || !rowOf.isConstant() || rows == 0 || n % rows || n / rows > kMostInTurn) return places;
    for (int64_t i = 0; i < n / rows; ++i) places.emplace_back(mlir::RankedTensorType::get({rows}, c.e.i64()));
    std::vector<int64_t> seen(rows, 0), rowOfEach = rowOf.constant->integers();
    for (int64_t i = 0; i < n; ++i) {
      int64_t row = rowOfEach[i];
      if (row < 0 || row >= rows || seen[row] == n / rows) return {};
      places[seen[row]++].data<int64_t>()[row] = i;
    }
    return places;
  }

  /// Where by_mask.h has found that they are put where the same mask holds.
  Vals putInPlace() {
    Val data = c.inputs[0], mask = c.inputs[1], source = c.inputs[2];
    bool same = rows.size() == 1 && rows[0] == 2 && masked().dim == 0 && isSameMask(mask, masked().mask) &&
                source.type().getNumElements() == data.type().getNumElements();
    return same ? Vals{c.e.select(mask, c.e.reshape(source, data.shape()), data)} : refuse("it puts them to other rows");
  }

  NodeContext &c;
  StringRef op;
  llvm::SmallVector<size_t, 2> rows, counts; // inputs
};

} // namespace

Val allPlaces(NodeContext &c, const Val &mask) {
  int64_t rank = mask.rank(), n = mask.type().getNumElements();
  if (rank == 0 || n == 0 || !c.e.affords({rank, n}, c.e.i64()))
    return c.e.failed() ? Val() : c.e.fail("its input is a single element, or none");
  nn::Tensor places(mlir::RankedTensorType::get({rank, n}, c.e.i64()));
  for (int64_t i = 0; i < n; ++i) {
    int64_t rest = i;
    for (int64_t d = rank - 1; d >= 0; rest /= mask.dim(d--)) places.data<int64_t>()[d * n + i] = rest % mask.dim(d);
  }
  Val found(std::move(places));
  Val held = mask.isBool() ? mask : c.e.compare(nn::Predicate::ne, mask, c.e.scalar(0, mask.element()));
  if (held) found.masked = std::make_shared<MaskedRows>(MaskedRows{held, 1});
  return found;
}

Vals handleMaskedRows(NodeContext &c, Vals (*handler)(NodeContext &)) { return Rows(c).handle(handler); }

} // namespace zero::onnx
