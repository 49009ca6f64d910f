//===- attention.cpp - attention and its gradient ----------------------------------------------===//
#include "compiler/nn/library/attention.h"
#include "compiler/nn/implement.h"
#include "runtime/plan/hidden.h"
#include <cmath>

using namespace mlir;

namespace zero::nn {

LogicalResult AttentionOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor a, Types &out) {
  auto q = typeOf(a.getQ()), k = typeOf(a.getK()), v = typeOf(a.getV());
  bool whole = q.getRank() == 4 && k.getRank() == 4;
  auto packed = a.getPackedKvHeads();
  if (packed && (!a.getBshd() || a.getQ() != a.getK() || a.getK() != a.getV()))
    return reject(loc,
                  "nn.attention: packed_kv_heads means that q, k and v are one value with the heads of a position side by side (bshd)");
  AttentionSizes sizes = whole ? attentionSizes(q.getShape(), k.getShape(), a.getBshd(), packed) : AttentionSizes{};
  if (!whole || k != v || q.getElementType() != k.getElementType() || q.getDimSize(0) != k.getDimSize(0) ||
      q.getDimSize(3) != k.getDimSize(3) || sizes.keyHeads <= 0 || sizes.heads <= 0 || sizes.heads % sizes.keyHeads)
    return reject(loc, "nn.attention: q ", q, ", k ", k, ", v ", v, " do not fit together");
  if (auto band = a.getBand(); band && (band->size() != 2 || (*band)[0] > (*band)[1]))
    return reject(loc, "nn.attention: a band is two distances from a query's position: to the first and to the last key that it sees");
  if (auto beyond = a.getBeyond(); beyond && (!a.getMask() || !(beyond->convertToFloat() < plan::kHidden) || !beyond->isFinite()))
    return reject(loc, "nn.attention: beyond is a finite number that hides keys, below ", plan::kHidden, ", as the mask beside it does");
  if (auto cap = a.getSoftcap(); cap && !(cap->convertToDouble() > 0)) return reject(loc, "nn.attention: a softcap is larger than zero");
  if (a.getMask()) {
    auto mask = typeOf(a.getMask());
    int64_t scores[4] = {sizes.batch, sizes.heads, sizes.queries, sizes.keys};
    if (mask.getRank() != 4) return reject(loc, "nn.attention: mask ", mask, " is not of rank 4");
    for (int i = 0; i < 4; ++i)
      if (mask.getDimSize(i) != 1 && mask.getDimSize(i) != scores[i])
        return reject(loc, "nn.attention: mask ", mask, " does not fit scores ", text(scores));
  }
  if (const int64_t scores[3] = {sizes.heads, sizes.queries, sizes.keys}; a.getBias() && typeOf(a.getBias()).getShape() != ArrayRef(scores))
    return reject(loc, "nn.attention: bias ", typeOf(a.getBias()), " is not one number for each of ", text(scores), " scores of a sample");
  if (a.getSink() && typeOf(a.getSink()).getShape() != ArrayRef(sizes.heads))
    return reject(loc, "nn.attention: sink ", typeOf(a.getSink()), " is not one number for each of ", sizes.heads, " heads");
  SmallVector<int64_t> shape(q.getShape());
  if (packed) shape[2] = sizes.heads;
  auto result = with(q, shape), lse = with(q, ArrayRef(shape).drop_back());
  out.append({result, isNarrow(q.getElementType()) ? lse.clone(Float32Type::get(lse.getContext())) : lse});
  return success();
}

/// Of each head: the sum over its rows of -p (dout · out), p being the sink's part of the softmax. It is a key whose value is zero.
static Value sinkGradient(AttentionOp op, OpBuilder &builder, Value dout) {
  Build b{builder, op.getLoc()};
  int64_t head = op.getBshd() ? 2 : 1;
  Value along = b.sumLast(b.mul(dout, op.getResult()));
  Value part = b.exp(b.sub(b.broadcast(op.getSink(), typeOf(op.getLse()).getShape(), {head}), op.getLse()));
  return b.reduce(ReductionKind::sum, b.neg(b.mul(part, along)), {0, 3 - head});
}

/// Into how many parts the gradient of a bias is summed over samples: as few as give every one of many threads a block of queries of a
/// head and part. It is the shapes that say, so that the order of sums depends on nothing else.
static int64_t partsOfBias(const AttentionSizes &sizes) {
  constexpr int64_t kBlock = 64, kEnough = 64; // queries of a block (runtime/device/cpu/attention.h); tasks
  int64_t parts = 1, each = sizes.keyHeads * ((sizes.queries + kBlock - 1) / kBlock);
  while (parts < sizes.batch && (parts * each < kEnough || sizes.batch % parts)) ++parts;
  return parts;
}

/// Needs the operands, the result and one number per row (lse); the scores are formed again. The mask gets no gradient: what is learnt is
/// the bias.
LogicalResult AttentionOp::differentiate(OpBuilder &b, ValueRange d, Gradients &out) {
  if (d[1]) return emitOpError() << "has no gradient through its second result (the log of the sum of exponentials)";
  SmallVector<Type> types{getQ().getType()};
  if (!getPackedKvHeads()) types.append({getK().getType(), getV().getType()});
  if (getBias()) {
    AttentionSizes sizes = sizesOf(*this);
    types.push_back(RankedTensorType::get({partsOfBias(sizes), sizes.heads, sizes.queries, sizes.keys}, elementOf(getLse())));
  }
  auto grad =
      b.create<AttentionGradOp>(getLoc(), types, getQ(), getK(), getV(), getMask(), getBias(), getResult(), getLse(), d[0], getScaleAttr(),
                                getCausalAttr(), getBshdAttr(), getPackedKvHeadsAttr(), getBandAttr(), getSoftcapAttr(), getBeyondAttr());
  auto gradients = grad.getGradients();
  Build build{b, getLoc()};
  if (getBias()) {
    Value bias = build.reduce(ReductionKind::sum, gradients.back(), {0});
    out[getBiasMutable().begin()->getOperandNumber()] = build.cast(bias, elementOf(getBias()));
    gradients = gradients.drop_back();
  }
  llvm::copy(gradients, out.begin());
  if (getPackedKvHeads()) out[1] = out[2] = build.like(getQ(), 0); // the first is that of all three
  if (getSink()) out[getSinkMutable().begin()->getOperandNumber()] = sinkGradient(*this, b, d[0]);
  return success();
}

namespace {

/// What the forward makes of operands as `op` has them; it says whether they fit together.
template <typename Op> FailureOr<SmallVector<Type>> forwardTypes(Op op) {
  SmallVector<Value> operands{op.getQ(), op.getK(), op.getV()};
  for (Value optional : {op.getMask(), op.getBias()})
    if (optional) operands.push_back(optional);
  SmallVector<Type> types;
  AttentionOp::Properties properties;
  properties.scale = op.getScaleAttr();
  properties.bshd = op.getBshdAttr();
  properties.packed_kv_heads = op.getPackedKvHeadsAttr();
  properties.band = op.getBandAttr();
  properties.softcap = op.getSoftcapAttr();
  properties.beyond = op.getBeyondAttr();
  properties.operandSegmentSizes = {1, 1, 1, bool(op.getMask()), bool(op.getBias()), 0};
  if (failed(AttentionOp::inferReturnTypes(op.getContext(), op.getLoc(), operands, nullptr, OpaqueProperties(&properties), {}, types)))
    return failure();
  return types;
}

template <typename Op> LogicalResult verifyResults(Op op) {
  TypeRange types = op.getResultTypes();
  if (op.getBias()) {
    AttentionSizes sizes = sizesOf(op);
    auto bias = types.empty() ? RankedTensorType() : dyn_cast<RankedTensorType>(types.back());
    bool fits = bias && bias.getRank() == 4 && bias.getDimSize(0) > 0 && sizes.batch % bias.getDimSize(0) == 0;
    if (!fits || bias.getShape().drop_front() != typeOf(op.getBias()).getShape())
      return op.emitOpError() << "gives a last gradient [parts, heads, q_len, kv_len], of the bias, in parts that divide the batch";
    types = types.drop_back();
  }
  if (op.getPackedKvHeads()) {
    if (types != TypeRange(op.getQ().getType())) return op.emitOpError() << "gives one gradient, of the type of the packed value";
  } else if (SmallVector<Type> wanted{op.getQ().getType(), op.getK().getType(), op.getV().getType()}; types != TypeRange(wanted)) {
    return op.emitOpError() << "gives gradients of the types of q, k and v";
  }
  return success();
}

} // namespace

LogicalResult AttentionGradOp::verify() {
  auto forward = forwardTypes(*this);
  if (failed(forward)) return failure();
  auto [out, lse] = std::pair((*forward)[0], (*forward)[1]);
  if (getOut().getType() != out || getDout().getType() != out || getLse().getType() != lse)
    return emitOpError() << "takes the results of the forward and the gradient of the first: " << out << ", " << lse << " and " << out;
  return verifyResults(*this);
}

LogicalResult AttentionGradByRowSumsOp::verify() {
  auto forward = forwardTypes(*this);
  if (failed(forward)) return failure();
  auto [out, lse] = std::pair((*forward)[0], (*forward)[1]);
  if (getLse().getType() != lse || getDelta().getType() != lse || getDout().getType() != out)
    return emitOpError() << "takes the row sums and the gradient of the forward's result: twice " << lse << " and " << out;
  return verifyResults(*this);
}

namespace {

/// The sizes of one attention, where its rows lie, and its scores.
template <typename T> struct Attention {
  int64_t batch, heads, queries, dim, groups, keys; ///< groups: heads that share one key head
  int64_t qHeads, kHeads, firstKey, firstValue;     ///< heads that q, and k and v have in memory, and the first of keys and values there
  const T *q, *k, *v;
  Tensor mask, bias; ///< in T, or without elements
  std::optional<ArrayRef<int64_t>> band;
  bool masked, biased, causal, bshd;
  double scale, softcap, beyond; ///< softcap: 0 where there is none; beyond: what keys outside of the bounds have for a score

  template <typename Op>
  Attention(Op op, Operands in)
      : band(op.getBand()), masked(bool(op.getMask())), biased(bool(op.getBias())), causal(op.getCausal()), bshd(op.getBshd()),
        scale(op.getScale().convertToDouble()), softcap(op.getSoftcap() ? op.getSoftcap()->convertToDouble() : 0),
        beyond(op.getBeyond() ? op.getBeyond()->convertToDouble() : -INFINITY) {
    AttentionSizes sizes = sizesOf(op);
    batch = sizes.batch, heads = sizes.heads, queries = sizes.queries, dim = sizes.dim, groups = heads / sizes.keyHeads, keys = sizes.keys;
    bool packed = op.getPackedKvHeads().has_value();
    qHeads = packed ? heads + 2 * sizes.keyHeads : heads, kHeads = packed ? qHeads : sizes.keyHeads;
    firstKey = packed ? heads : 0, firstValue = packed ? heads + sizes.keyHeads : 0;
    q = in[0]->data<T>().data(), k = in[1]->data<T>().data(), v = in[2]->data<T>().data();
    if (masked) mask = in[3]->cast(in[0]->elementType());
    if (biased) bias = in[masked ? 4 : 3]->cast(in[0]->elementType());
  }

  int64_t rowOf(int64_t b, int64_t h, int64_t i, int64_t ofHeads, int64_t length) const {
    return bshd ? (b * length + i) * ofHeads + h : (b * ofHeads + h) * length + i;
  }
  /// Of the result and what has its rows; of q.
  int64_t resultRow(int64_t b, int64_t h, int64_t i) const { return rowOf(b, h, i, heads, queries); }
  int64_t queryRow(int64_t b, int64_t h, int64_t i) const { return rowOf(b, h, i, qHeads, queries); }
  /// Of key and value `j` seen by head `h`.
  int64_t keyRow(int64_t b, int64_t h, int64_t j) const { return rowOf(b, firstKey + h / groups, j, kHeads, keys); }
  int64_t valueRow(int64_t b, int64_t h, int64_t j) const { return rowOf(b, firstValue + h / groups, j, kHeads, keys); }

  /// Where the bias has the scores of one query.
  int64_t biasRow(int64_t h, int64_t i) const { return (h * queries + i) * keys; }

  static double dot(const T *a, const T *b, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += double(a[i]) * b[i];
    return sum;
  }

  /// Scores of one query over all keys. `slopes`: of the cap.
  void scores(int64_t b, int64_t h, int64_t i, std::vector<double> &out, std::vector<double> *slopes = nullptr) const {
    out.resize(keys);
    if (slopes) slopes->assign(keys, 1.0);
    const T *query = q + queryRow(b, h, i) * dim;
    int64_t first = band ? i + (*band)[0] : 0, last = std::min(causal ? i + keys - queries : keys - 1, band ? i + (*band)[1] : keys - 1);
    for (int64_t j = 0; j < keys; ++j) out[j] = scale * dot(query, k + keyRow(b, h, j) * dim, dim);
    for (int64_t j = 0; j < keys && softcap > 0; ++j) {
      double t = std::tanh(out[j] / softcap);
      out[j] = softcap * t;
      if (slopes) (*slopes)[j] = 1 - t * t;
    }
    const T *learnt = biased ? bias.template data<T>().data() + biasRow(h, i) : nullptr;
    for (int64_t j = 0; j < keys && biased; ++j) out[j] += learnt[j];
    if (masked) {
      auto shape = mask.shape();
      auto at = [&](int d, int64_t index) { return shape[d] == 1 ? 0 : index; };
      const T *line = mask.template data<T>().data() + ((at(0, b) * shape[1] + at(1, h)) * shape[2] + at(2, i)) * shape[3];
      for (int64_t j = 0; j < keys; ++j) out[j] += line[at(3, j)];
    }
    for (int64_t j = 0; j < keys; ++j)
      if (j < first || j > last) out[j] = beyond;
  }
};

} // namespace

LogicalResult AttentionOp::evaluate(Operands in, Results out) {
  return withFloat(in[0]->elementType(), [&](auto e) {
    using T = decltype(e);
    Attention<T> a(*this, in);
    T *y = out[0].data<T>().data(), *lse = out[1].data<T>().data();
    const T *sinks = getSink() ? in[getSinkMutable().begin()->getOperandNumber()]->data<T>().data() : nullptr;
    std::vector<double> p, sum;
    for (int64_t b = 0; b < a.batch; ++b)
      for (int64_t h = 0; h < a.heads; ++h)
        for (int64_t i = 0; i < a.queries; ++i) {
          a.scores(b, h, i, p);
          int64_t row = a.resultRow(b, h, i);
          double sunk = sinks ? double(sinks[h]) : -INFINITY, peak = sunk, total = 0;
          for (double s : p) peak = std::max(peak, s);
          if (peak == -INFINITY) { // sees nothing: zeros
            lse[row] = T(-INFINITY);
            continue;
          }
          bool hidden = peak < plan::kHidden;
          for (double &s : p) total += s = hidden ? s > -INFINITY : std::exp(s - peak);
          total += std::exp(sunk - peak);
          sum.assign(a.dim, 0.0);
          for (int64_t j = 0; j < a.keys; ++j)
            if (const T *value = a.v + a.valueRow(b, h, j) * a.dim; p[j] != 0)
              for (int64_t d = 0; d < a.dim; ++d) sum[d] += p[j] * value[d];
          for (int64_t d = 0; d < a.dim; ++d) y[row * a.dim + d] = T(sum[d] / total);
          lse[row] = T(hidden ? plan::lseOfHidden(float(total)) : peak + std::log(total));
        }
    return success();
  });
}

namespace {

/// The gradients of q, k and v, or of the one value that they are, and of the bias; `mean` of a row: the sum of dout · out.
template <typename T>
void evaluateGradients(const Attention<T> &a, const T *lse, const T *dy, llvm::function_ref<double(int64_t row)> mean, Results out) {
  std::vector<std::vector<double>> sums; // not rounded yet
  for (const Tensor &result : out) sums.emplace_back(result.size());
  double *biases = a.biased ? sums.back().data() : nullptr;
  auto sumOf = [&](size_t operand) { return sums[std::min(operand, sums.size() - 1 - a.biased)].data(); };
  int64_t samples = a.biased ? a.batch / out.back().shape()[0] : 1; // of a part
  double *dq = sumOf(0), *dk = sumOf(1), *dv = sumOf(2);
  std::vector<double> p, slopes;
  for (int64_t b = 0; b < a.batch; ++b)
    for (int64_t h = 0; h < a.heads; ++h)
      for (int64_t i = 0; i < a.queries; ++i) {
        int64_t row = a.resultRow(b, h, i), query = a.queryRow(b, h, i) * a.dim;
        bool hidden = double(lse[row]) < plan::kHidden;
        a.scores(b, h, i, p, &slopes);
        const T *g = dy + row * a.dim;
        double delta = mean(row), *dbias = a.biased ? biases + b / samples * a.bias.size() + a.biasRow(h, i) : nullptr;
        for (int64_t j = 0; j < a.keys; ++j) {
          double weight = hidden ? (p[j] > -INFINITY) * plan::weightOfHidden(float(lse[row])) : std::exp(p[j] - double(lse[row]));
          if (weight == 0) continue;
          int64_t key = a.keyRow(b, h, j) * a.dim, value = a.valueRow(b, h, j) * a.dim;
          double ds = weight * (a.dot(g, a.v + value, a.dim) - delta);
          if (dbias) dbias[j] += ds;
          ds *= slopes[j] * a.scale;
          for (int64_t d = 0; d < a.dim; ++d) {
            dq[query + d] += ds * a.k[key + d];
            dk[key + d] += ds * a.q[query + d];
            dv[value + d] += weight * g[d];
          }
        }
      }
  for (auto [sum, result] : llvm::zip_equal(sums, out))
    std::transform(sum.begin(), sum.end(), result.template data<T>().begin(), [](double s) { return T(s); });
}

} // namespace

LogicalResult AttentionGradOp::evaluate(Operands in, Results out) {
  return withFloat(in[0]->elementType(), [&](auto e) {
    using T = decltype(e);
    size_t next = getOutMutable().getOperandNumber();
    Attention<T> a(*this, in);
    const T *y = in[next]->data<T>().data(), *lse = in[next + 1]->data<T>().data(), *dy = in[next + 2]->data<T>().data();
    evaluateGradients<T>(
        a, lse, dy, [&](int64_t row) { return a.dot(dy + row * a.dim, y + row * a.dim, a.dim); }, out);
    return success();
  });
}

LogicalResult AttentionGradByRowSumsOp::evaluate(Operands in, Results out) {
  return withFloat(in[0]->elementType(), [&](auto e) {
    using T = decltype(e);
    size_t next = getLseMutable().getOperandNumber();
    Attention<T> a(*this, in);
    const T *lse = in[next]->data<T>().data(), *delta = in[next + 1]->data<T>().data(), *dy = in[next + 2]->data<T>().data();
    evaluateGradients<T>(
        a, lse, dy, [&](int64_t row) { return double(delta[row]); }, out);
    return success();
  });
}

} // namespace zero::nn
