//===- lower_operations.cpp - what a program computes, as steps -----------------------------------------===//
#include "compiler/nn/library/attention.h"
#include "passes/schedule/lowering.h"

using namespace mlir;
using namespace zero::planir;

namespace zero::schedule {

namespace {

template <typename Op> SmallVector<int64_t> attentionSizes(Op op) {
  nn::AttentionSizes sizes = nn::sizesOf(op);
  return {sizes.batch, sizes.heads, sizes.keyHeads, sizes.queries, sizes.keys, sizes.dim};
}
template <typename Op> DenseI64ArrayAttr maskShape(Op op, OpBuilder &b) {
  return op.getMask() ? b.getDenseI64ArrayAttr(op.getMask().getType().getShape()) : DenseI64ArrayAttr();
}

} // namespace

void Lowering::lowerLaunch(nn::LaunchOp op) {
  SmallVector<Ref> in = at(op.getInputs()), out = at(op.getOutputs());
  for (const Ref &ref : out) inplace += llvm::is_contained(in, ref);
  make<LaunchStep>(named(op, op.getKernel()), in, out, op.getKernel());
}

template <typename Op> void Lowering::makeMatMul(Op op, ArrayRef<Ref> read, ArrayRef<Ref> written, bool accumulate, Epilogue epilogue) {
  auto lhs = op.getLhs().getType(), rhs = op.getRhs().getType(), result = op.getResult().getType();
  bool batched = lhs.getRank() == 3;
  auto size = [&](auto type, int64_t dim) { return type.getShape()[dim + batched]; };
  auto matrix = [&](auto type) { return batched ? size(type, 0) * size(type, 1) : 0; };
  int64_t k = size(lhs, op.getTransposeLhs() ? 0 : 1);
  make<MatMulStep>(named(op, "matmul"), read, written, lhs.getElementType(), result.getElementType(), size(result, 0), size(result, 1), k,
                   batched ? lhs.getShape()[0] : 1, ArrayRef<int64_t>{size(lhs, 1), size(rhs, 1), size(result, 1)},
                   ArrayRef<int64_t>{matrix(lhs), matrix(rhs), matrix(result)}, op.getTransposeLhs(), op.getTransposeRhs(), accumulate,
                   tf32 && lhs.getElementType().isF32(), epilogue, Grouped::none, 0, 0);
}

void Lowering::lowerMatMul(nn::MatMulOp op) {
  SmallVector<Ref> read{at(op.getLhs()), at(op.getRhs())};
  if (Value onto = op.getOnto()) {
    copy(named(op, "matmul"), at(onto), at(op.getResult()));
    read.push_back(at(op.getResult()));
  }
  makeMatMul(op, read, at(op.getResult()), bool(op.getOnto()), Epilogue::none);
}

void Lowering::lowerBlocks(nn::BlockMatMulOp op) {
  auto lhs = op.getLhs().getType(), rhs = op.getRhs().getType(), result = op.getResult().getType();
  int64_t blocks = lhs.getDimSize(0), height = lhs.getDimSize(1), k = lhs.getDimSize(2), n = result.getDimSize(2);
  SmallVector<Ref> read{at(op.getLhs()), at(op.getRhs()), at(op.getGroupOf())};
  if (Value onto = op.getOnto()) {
    copy(named(op, "matmul"), at(onto), at(op.getResult()));
    read.push_back(at(op.getResult()));
  }
  make<MatMulStep>(named(op, "matmul"), read, at(op.getResult()), lhs.getElementType(), result.getElementType(), height, n, k, blocks,
                   ArrayRef<int64_t>{k, rhs.getDimSize(2), n}, ArrayRef<int64_t>{height * k, k * n, height * n}, false,
                   op.getTransposeRhs(), bool(op.getOnto()), false, Epilogue::none, Grouped::rhs, rhs.getDimSize(0),
                   op.getAllGroups().value_or(rhs.getDimSize(0)));
}

void Lowering::lowerBlockSum(nn::BlockMatMulSumOp op) {
  auto lhs = op.getLhs().getType(), rhs = op.getRhs().getType(), result = op.getResult().getType();
  int64_t blocks = lhs.getDimSize(0), height = lhs.getDimSize(1), m = lhs.getDimSize(2), n = rhs.getDimSize(2);
  make<MatMulStep>(named(op, "matmul"), at(op.getOperands()), at(op.getResult()), lhs.getElementType(), result.getElementType(), m, n,
                   height, blocks, ArrayRef<int64_t>{m, n, n}, ArrayRef<int64_t>{height * m, height * n, m * n}, true, false, false, false,
                   Epilogue::none, Grouped::result, result.getDimSize(0), op.getAllGroups().value_or(result.getDimSize(0)));
}

void Lowering::lowerMatMulEpilogue(nn::MatMulEpilogueOp op) {
  auto epilogue = [&] {
    switch (op.getEpilogue()) {
    case nn::Epilogue::bias:
      return Epilogue::bias;
    case nn::Epilogue::gelu:
      return Epilogue::gelu;
    case nn::Epilogue::gelu_grad:
      return Epilogue::gelu_gradient;
    }
    llvm_unreachable("no other epilogue");
  };
  makeMatMul(op, at(op.getOperands()), at(op.getResults()), false, epilogue());
}

void Lowering::lowerJoin(nn::JoinRowsOp op) {
  Ref to = at(op.getResult());
  for (auto [i, input] : llvm::enumerate(op.getInputs())) {
    to.bytes = at(input).bytes;
    if (storage.isCopied(op, unsigned(i))) copy(named(op, "join_rows"), at(input), to);
    to.offset += to.bytes;
  }
}

void Lowering::lowerAttention(nn::AttentionOp op) {
  make<AttentionStep>(named(op, "attention"), at(op.getOperands()), at(op.getResults()), op.getQ().getType().getElementType(),
                      attentionSizes(op), op.getScale(), op.getCausal(), op.getBandAttr(), maskShape(op, b), op.getSoftcapAttr(),
                      op.getBias() ? b.getI64IntegerAttr(1) : IntegerAttr(), op.getBeyond().has_value());
}
void Lowering::lowerAttentionGrad(nn::AttentionGradOp op) {
  IntegerAttr parts;
  if (op.getBias()) parts = b.getI64IntegerAttr(cast<RankedTensorType>(op.getGradients().back().getType()).getDimSize(0));
  make<AttentionGradStep>(named(op, "attention_grad"), at(op.getOperands()), at(op.getResults()), op.getQ().getType().getElementType(),
                          attentionSizes(op), op.getScale(), op.getCausal(), op.getBandAttr(), maskShape(op, b), op.getSoftcapAttr(), parts,
                          op.getBeyond().has_value());
}

void Lowering::lowerPack(state::PackOp op) {
  Ref packed = at(op.getResult());
  int64_t element = nn::bytesOf(op.getResult().getType()) / elementsOf(op.getResult()), end = 0;
  auto fill = [&](int64_t from, int64_t to) {
    if (from < to)
      make<FillStep>(named(op, bucketNameOf(op.getResult()), "padding"), {},
                     {{packed.buffer, packed.offset + from, packed.stride, to - from}}, 0);
  };
  for (auto [i, input, offset] : llvm::enumerate(op.getInputs(), op.getOffsets())) {
    Ref from = at(input), to{packed.buffer, packed.offset + offset * element, packed.stride, from.bytes};
    fill(end, offset * element);
    end = offset * element + from.bytes;
    if (storage.isCopied(op, i)) copy(named(op, "pack"), from, to);
  }
  fill(end, packed.bytes);
}

} // namespace zero::schedule
