//===- attention.cpp - attention as kernels of its own ----------------------------------------------===//
#include "compiler/codegen/attention.h"
#include "compiler/codegen/primitives.h"
#include "compiler/nn/Nn.h"
#include "compiler/nn/library/attention.h"
#include "compiler/nn/library/products.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::codegen {
namespace {

constexpr int64_t kVector = 8, kLongest = 128;

bool fits(Value q) {
  auto type = cast<RankedTensorType>(q.getType());
  int64_t dim = type.getDimSize(3);
  return dim % kVector == 0 && dim <= kLongest && isFloat(scalarOf(q)) && scalarOf(q) != Scalar::F64;
}

template <typename Op> Attention described(Op op, Attention::Result result) {
  AttentionSizes sizes = sizesOf(op);
  Attention a;
  a.result = result;
  a.batch = sizes.batch, a.heads = sizes.heads, a.keyHeads = sizes.keyHeads, a.queries = sizes.queries, a.keys = sizes.keys;
  a.dim = sizes.dim;
  a.bshd = op.getBshd();
  a.packed = op.getPackedKvHeads().has_value();
  a.scale = op.getScale().convertToDouble();
  if (op.getCausal()) a.last = a.keys - a.queries;
  if (auto band = op.getBand()) {
    if ((*band)[0] > 1 - a.queries) a.first = (*band)[0];
    if ((*band)[1] < a.keys - 1) a.last = std::min((*band)[1], a.last.value_or(a.keys));
  }
  if (Value mask = op.getMask()) {
    a.mask.emplace();
    llvm::copy(cast<RankedTensorType>(mask.getType()).getShape(), a.mask->begin());
  }
  a.bf16 = scalarOf(Value(op.getQ())) == Scalar::BF16;
  a.multiplyAdds = multiplyAddsOf(op);
  return a;
}

} // namespace

bool hasKernels(AttentionOp op) { return fits(op.getQ()) && !op.getSoftcap() && !op.getBias(); }

FailureOr<std::optional<Program>> attentionProgram(func::FuncOp kernel) {
  Block &body = kernel.getBody().front();
  Operation *op = &body.front();
  Program p;
  if (auto attention = dyn_cast<AttentionOp>(op))
    p.attention = described(attention, Attention::Output);
  else if (auto gradient = dyn_cast<AttentionGradByRowSumsOp>(op))
    p.attention = described(gradient, Attention::Gradient);
  else
    return std::optional<Program>();
  auto isPlain = [](auto attention) { return !attention || (!attention.getBias() && !attention.getSoftcap()); };
  if (!isPlain(dyn_cast<AttentionOp>(op)) || !isPlain(dyn_cast<AttentionGradByRowSumsOp>(op)))
    return op->emitOpError("has no kernel: scores have a bias that is learnt, or a cap");
  for (Value operand : op->getOperands()) {
    auto argument = dyn_cast<BlockArgument>(operand);
    if (argument) p.attention.operands.push_back(argument.getArgNumber());
  }
  if (p.attention.operands.size() != op->getNumOperands() || body.getTerminator()->getOperands() != op->getResults())
    return op->emitOpError("is no kernel with anything beside it");
  if (!fits(op->getOperand(0)))
    return op->emitOpError("has no kernel: rows of ")
           << p.attention.dim << " elements are no multiple of " << kVector << " up to " << kLongest;
  p.attention.warpgroups = kernel->hasAttr(kWarpgroupsAttr);
  p.kind = Program::Tiles;
  p.name = kernel.getSymName().str();
  for (Value v : kernel.getArguments()) p.inputs.push_back({scalarOf(v), cast<RankedTensorType>(v.getType()).getNumElements()});
  for (Value v : op->getResults()) p.outputs.push_back({scalarOf(v), cast<RankedTensorType>(v.getType()).getNumElements()});
  return std::optional<Program>(std::move(p));
}

} // namespace zero::codegen
