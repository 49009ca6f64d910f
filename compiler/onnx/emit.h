//===- emit.h - builds nn operations, or computes them at once -----------------------------------===//
// An operation all of whose operands are known is evaluated on the host instead of being built; so shapes,
// masks and index arithmetic are gone when the walk over the graph ends. Operations broadcast as numpy does.
// The first error is reported at the present node; from then on every result is a null Val.
#pragma once
#include "compiler/nn/Nn.h"
#include "compiler/nn/eval/eval.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringMap.h"

namespace zero::onnx {

struct MaskedRows;
enum class Type : int32_t; // model.h

/// What an ONNX name stands for: a value of the function, a tensor known now, or a sequence of these.
struct Val {
  mlir::Value value;
  std::shared_ptr<const nn::Tensor> constant;
  std::shared_ptr<const std::vector<Val>> sequence;
  std::shared_ptr<const MaskedRows> masked; // of whose rows not all count (masked_rows.h); null: all do
  Type integer{};                           // of integers: what they are in the file; else undefined

  Val() = default;
  Val(mlir::Value value) : value(value) {}
  Val(nn::Tensor tensor) : constant(std::make_shared<nn::Tensor>(std::move(tensor))) {}

  explicit operator bool() const { return value || constant || sequence; }
  bool isConstant() const { return bool(constant); }
  mlir::RankedTensorType type() const { return constant ? constant->type : llvm::cast<mlir::RankedTensorType>(value.getType()); }
  llvm::ArrayRef<int64_t> shape() const { return type().getShape(); }
  int64_t rank() const { return type().getRank(); }
  int64_t dim(int64_t i) const { return shape()[i]; }
  mlir::Type element() const { return type().getElementType(); }
  bool isFloat() const { return llvm::isa<mlir::FloatType>(element()); }
  bool isBool() const { return element().isInteger(1); }
};
using Vals = llvm::SmallVector<Val, 4>;
using Shape = llvm::ArrayRef<int64_t>;
using Ints = llvm::SmallVector<int64_t, 6>;

/// The common shape of two, as numpy finds it; nothing if they do not fit.
std::optional<Ints> broadcastShapes(Shape a, Shape b);
/// Product of dimensions, or nothing beyond 2^62.
std::optional<int64_t> elementsOf(Shape shape);
/// "[2, 3]", for messages.
std::string text(Shape shape);
/// [0, 1, …, n-1].
Ints upTo(int64_t n);
/// [0, 2, …, n-1, 1]: the permutation from ONNX's order of dimensions, which has channels or classes second, to the one that has them last.
Ints channelsLast(int64_t n);

class Emitter {
public:
  /// `maxOperations`: how many may be built in all.
  Emitter(mlir::OpBuilder builder, uint64_t maxConstantBytes, uint64_t maxOperations);
  ~Emitter();

  mlir::MLIRContext *context() const { return builder.getContext(); }
  void at(mlir::Location loc, std::string what) {
    location = loc;
    node = std::move(what);
  }
  mlir::Location loc() const { return location; }
  const std::string &what() const { return node; }
  bool failed() const { return broken; }
  /// Reports "node 'x' (Op): …" once and gives the null Val.
  Val fail(const llvm::Twine &message);
  void warn(const llvm::Twine &message);

  // Types and constants.
  mlir::Type f32() { return builder.getF32Type(); }
  mlir::Type i64() { return builder.getI64Type(); }
  mlir::Type i1() { return builder.getI1Type(); }
  Val scalar(double value, mlir::Type element);
  Val ints(llvm::ArrayRef<int64_t> values);
  /// Whether a constant of this shape may be made; a report if not. Whoever makes a tensor by himself asks first.
  bool affords(Shape shape, mlir::Type element);
  /// `value` in every element, as a splat: costs nothing however big the shape is.
  Val full(Shape shape, double value, mlir::Type element);
  /// The operand for an operation that is built: constants become nn.constant here.
  mlir::Value materialise(const Val &v);
  mlir::Value constant(const nn::Tensor &tensor);

  /// Any operation of the dialect: built by `build`, or evaluated where all operands are known, unless that makes much of little. Empty
  /// (`one`: null) on failure.
  using Build = llvm::function_ref<mlir::Operation *(mlir::OpBuilder &, mlir::ValueRange)>;
  Vals emit(llvm::ArrayRef<Val> operands, Build build);
  Val one(llvm::ArrayRef<Val> operands, Build build) {
    Vals r = emit(operands, build);
    return r.empty() ? Val() : r[0];
  }

  // Elementwise, with broadcasting.
  template <typename Op> Val unary(const Val &x) {
    return one({x}, [&](mlir::OpBuilder &b, mlir::ValueRange v) { return b.create<Op>(location, v[0].getType(), v[0]); });
  }
  template <typename Op> Val binary(Val x, Val y) {
    if (!unify(x, y)) return {};
    return one({x, y}, [&](mlir::OpBuilder &b, mlir::ValueRange v) { return b.create<Op>(location, v[0].getType(), v[0], v[1]); });
  }
  Val add(const Val &x, const Val &y) { return binary<nn::AddOp>(x, y); }
  Val sub(const Val &x, const Val &y) { return binary<nn::SubOp>(x, y); }
  Val mul(const Val &x, const Val &y) { return binary<nn::MulOp>(x, y); }
  Val div(const Val &x, const Val &y) { return binary<nn::DivOp>(x, y); }
  Val compare(nn::Predicate predicate, Val x, Val y);
  Val select(Val condition, Val onTrue, Val onFalse);
  Val isNan(const Val &x);
  Val convert(const Val &x, mlir::Type element);

  // Movement.
  Val broadcast(const Val &x, Shape dims, Shape shape);
  Val broadcastTo(const Val &x, Shape shape);
  Val reshape(const Val &x, Shape shape);
  Val transpose(const Val &x, Shape perm);
  Val slice(const Val &x, Shape starts, Shape sizes, Shape steps);
  /// [from, to) of one dimension.
  Val sliceDim(const Val &x, int64_t dim, int64_t from, int64_t to);
  Val pad(const Val &x, double value, Shape low, Shape high);
  Val concat(llvm::ArrayRef<Val> parts, int64_t dim);
  Val gather(const Val &table, const Val &indices);
  Val takeAlong(const Val &x, const Val &indices);
  /// Sum of the rows of `updates` [n, …] by index [n]: a tensor of `rows` rows.
  Val scatterAdd(const Val &indices, const Val &updates, int64_t rows);
  Val iota(Shape shape, int64_t dim, mlir::Type element);

  // Reductions; reduced dimensions vanish.
  Val reduce(nn::ReductionKind kind, const Val &x, Shape dims);
  Val cumsum(const Val &x, bool exclusive, bool reverse);

  // Composites and products.
  Val softmax(const Val &x);
  Val logSoftmax(const Val &x);
  Val gelu(nn::GeluKind kind, const Val &x);
  Val layerNorm(const Val &x, const Val &scale, const Val &bias, double eps, Val *mean = nullptr, Val *rstd = nullptr);
  Val rmsNorm(const Val &x, const Val &scale, double eps);
  Val crossEntropy(const Val &logits, const Val &labels, const Val &scale, int64_t ignore);
  Val matmul(const Val &x, const Val &y, bool transposeX = false, bool transposeY = false);
  Val depthwise(const Val &x, const Val &kernel, Shape low, Shape high, Shape strides, Shape dilations);
  Val attention(const Val &q, const Val &k, const Val &v, const Val &mask, double scale, bool causal);
  Val dropout(const Val &x, mlir::Value seed, double rate, int64_t id);
  /// Of the shape and type of x, and for its samples; takes the streams `id` and `id` + 1.
  Val noise(const Val &x, mlir::Value seed, bool normal, int64_t id);

  mlir::OpBuilder builder;

private:
  /// Of operands that are known; nothing where a result would be much larger than these. Empty on failure.
  std::optional<Vals> fold(llvm::ArrayRef<Val> operands, Build build);
  /// Gives both operands the common shape; false on failure.
  bool unify(Val &x, Val &y);
  bool fits(Shape shape);
  /// Whether the operation is one for operands of these shapes and types; a report if not.
  bool isTaken(mlir::Operation *op);
  mlir::TypedAttr number(double value, mlir::Type element);

  mlir::Location location;
  std::string node;
  bool broken = false;
  uint64_t maxConstantBytes, maxOperations, operations = 0;
  mlir::Block *scratch; // holds the operands of operations that are evaluated
  struct Folded {
    Vals results, operands; // these are kept alive, for a key may hold their addresses
  };
  llvm::StringMap<Folded> folded; // large results, by what they are computed from
  llvm::DenseMap<const nn::Tensor *, mlir::Value> materialised;
  std::vector<std::shared_ptr<const nn::Tensor>> kept; // the keys of `materialised`
};

} // namespace zero::onnx
