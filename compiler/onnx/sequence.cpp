//===- sequence.cpp - which dimensions of the data run along the sequence -------------------------===//
// A size says little: a layer can be as wide as its sequence is long. So dimensions are followed from the integer inputs, whose positions
// they are, through every operation.
#include "compiler/onnx/facts.h"

using namespace mlir;

namespace zero::onnx {

static ArrayRef<int64_t> shapeOf(Value v) { return cast<RankedTensorType>(v.getType()).getShape(); }

/// Where no more is known: all that are as long as a sequence.
llvm::SmallBitVector Analysis::bySize(Value v) const {
  auto shape = shapeOf(v);
  llvm::SmallBitVector bits(shape.size());
  for (auto [i, d] : llvm::enumerate(shape)) bits[i] = lengths.contains(d);
  return bits;
}

llvm::SmallBitVector Analysis::sequenceOf(Value v) {
  if (auto it = sequence.find(v); it != sequence.end()) return it->second;
  return llvm::SmallBitVector(shapeOf(v).size()); // a known value has none
}

void Analysis::followSequence(BlockArgument input, bool positions) {
  llvm::SmallBitVector bits = bySize(input);
  if (positions) bits.set();
  if (positions && bits.size()) bits.reset(0);
  sequence[input] = bits;
}

void Analysis::followSequence(Operation &op) {
  if (op.getNumResults() == 0 || facts[op.getResult(0)].kind == Kind::Known) return;
  for (Value other : llvm::drop_begin(op.getResults())) sequence[other] = bySize(other);
  Value result = op.getResult(0);
  auto first = [&] { return sequenceOf(op.getOperand(0)); };
  llvm::SmallBitVector bits(shapeOf(result).size());
  if (auto gather = dyn_cast<nn::GatherOp>(op)) {
    llvm::SmallBitVector rows = first(), indices = sequenceOf(gather.getIndices());
    for (unsigned i = 0; i < indices.size(); ++i) bits[i] = indices.test(i) || rows.test(0);
    for (unsigned i = 1; i < rows.size(); ++i) bits[indices.size() + i - 1] = rows.test(i);
  } else if (auto broadcast = dyn_cast<nn::BroadcastOp>(op)) {
    llvm::SmallBitVector from = first();
    for (auto [i, d] : llvm::enumerate(broadcast.getDims())) bits[d] = from.test(i);
  } else if (auto transpose = dyn_cast<nn::TransposeOp>(op)) {
    llvm::SmallBitVector from = first();
    for (auto [i, p] : llvm::enumerate(transpose.getPerm())) bits[i] = from.test(p);
  } else if (auto reshape = dyn_cast<nn::ReshapeOp>(op)) {
    bits = reshaped(first(), shapeOf(reshape.getInput()), shapeOf(result));
  } else if (auto reduce = dyn_cast<nn::ReduceOp>(op)) {
    llvm::SmallBitVector from = first();
    for (unsigned i = 0, to = 0; i < from.size(); ++i)
      if (!llvm::is_contained(reduce.getDims(), int64_t(i))) bits[to++] = from.test(i);
  } else if (auto product = dyn_cast<nn::MatMulOp>(op)) {
    llvm::SmallBitVector l = first(), r = sequenceOf(product.getRhs());
    unsigned rank = bits.size();
    if (rank == 3) bits[0] = l.test(0) || r.test(0);
    bits[rank - 2] = l.test(rank - (product.getTransposeLhs() ? 1 : 2));
    bits[rank - 1] = r.test(rank - (product.getTransposeRhs() ? 2 : 1));
  } else if (op.hasTrait<nn::Elementwise>() || op.hasTrait<nn::RowWise>() ||
             isa<nn::SliceOp, nn::PadOp, nn::ConcatOp, nn::CumSumOp, nn::DropoutOp, nn::DepthwiseOp>(op)) {
    for (Value o : op.getOperands())
      if (llvm::SmallBitVector from = sequenceOf(o); from.size() == bits.size()) bits |= from;
  } else {
    bits = bySize(result);
  }
  sequence[result] = bits;
}

} // namespace zero::onnx
