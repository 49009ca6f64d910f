//===- online_softmax.cpp - a row's maximum and its exponentials' sum in one pass ---------------------------===//
// Online softmax (Milakov and Gimelshein, 2018): while the maximum grows, what was summed shrinks with it. The rows of a vocabulary are
// longer than what lies near a multiprocessor, so that a pass less is a read of memory less; it takes an exponential more for each vector.
#include "compiler/codegen/ptx/gpu_emitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <cmath>

using namespace mlir;

namespace zero::codegen {

int GpuEmitter::maximumOf(int sum, ArrayRef<int> maxima) const {
  auto applies = [&](int node, Fn fn) { return p.nodes[node].kind == Node::Apply && p.nodes[node].fn == fn; };
  const Node &of = p.nodes[sum];
  if (of.fn != Fn::Add || of.type != Scalar::F32 || !applies(of.operands[0], Fn::Exp)) return -1;
  int shifted = p.nodes[of.operands[0]].operands[0];
  if (!applies(shifted, Fn::Sub)) return -1;
  int x = p.nodes[shifted].operands[0], maximum = p.nodes[shifted].operands[1];
  bool isOne = llvm::is_contained(maxima, maximum) && p.nodes[maximum].fn == Fn::Max && p.nodes[maximum].operands[0] == x;
  return isOne ? maximum : -1;
}

bool GpuEmitter::sumsOnline(ArrayRef<int> maxima, ArrayRef<int> sums) const {
  return p.points(p.inner) / lanes > int64_t(d.team) && lanes > 1 &&
         llvm::all_of(sums, [&](int sum) { return maximumOf(sum, maxima) >= 0; });
}

/// Each thread by itself, over its share of the row, and then all of them. A maximum of -inf shifts nothing: exp(-inf) is 0.
void GpuEmitter::sumOnline(ArrayRef<int> reductions, ArrayRef<int> sums, Value rank) {
  auto splat = [&](Value v) { return b.create<vector::SplatOp>(loc, vectorOf(b.getF32Type()), v); };
  SmallVector<int> others, maxima;
  for (int sum : sums) maxima.push_back(maximumOf(sum, reductions));
  for (int r : reductions)
    if (!llvm::is_contained(maxima, r)) others.push_back(r);
  // What is carried: the other reductions, and then the maxima so far and the sums, of each sum.
  Values carried = initial(others, 1);
  for (size_t i = 0; i < sums.size(); ++i) carried.push_back(real(-INFINITY));
  carried.append(initial(sums, 1));
  size_t first = others.size(), count = sums.size();
  carried = share(p.inner, rank, d.team, atOnce(operandsOf(reductions)), std::move(carried), [&](Values now) {
    llvm::copy(accumulate(others, Values(ArrayRef<Value>(now).take_front(first))), now.begin());
    for (size_t i = 0; i < count; ++i) {
      Value &before = now[first + i], &sum = now[first + count + i], x = vector(p.nodes[maxima[i]].operands[0]);
      Value highest = combine(Fn::Max, Scalar::F32, before, horizontal(Fn::Max, Scalar::F32, x));
      Value shift = select(is(arith::CmpFPredicate::OEQ, highest, real(-INFINITY)), real(0), highest);
      Value shrink = math.exp(sub(before, shift)), terms = math.exp(x, splat(shift));
      sum = add(mul(sum, splat(shrink)), terms);
      before = highest;
    }
    return now;
  });
  joinTeam(others, Values(ArrayRef<Value>(carried).take_front(first)), rank);
  // Of several sums with the same maximum each has found it.
  Values mine(ArrayRef<Value>(carried).slice(first, count)), added(ArrayRef<Value>(carried).take_back(count));
  joinTeam(maxima, mine, rank);
  goTo(scopes.size() - 1);
  for (auto [sum, before, maximum] : llvm::zip(added, mine, maxima))
    sum = mul(horizontal(Fn::Add, Scalar::F32, sum), math.exp(sub(before, scopes.back().values[maximum])));
  joinTeam(sums, added, rank);
}

} // namespace zero::codegen
