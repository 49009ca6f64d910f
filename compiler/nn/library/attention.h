//===- attention.h - the sizes of an attention, in either layout --------------------------------===//
#pragma once
#include "compiler/nn/Nn.h"

namespace zero::nn {

struct AttentionSizes {
  int64_t batch, heads, keyHeads, queries, keys, dim;
};

inline AttentionSizes attentionSizes(llvm::ArrayRef<int64_t> q, llvm::ArrayRef<int64_t> k, bool bshd) {
  unsigned head = bshd ? 2 : 1, row = bshd ? 1 : 2;
  return {q[0], q[head], k[head], q[row], k[row], q[3]};
}

/// Of nn.attention, its gradient, or a part of that.
template <typename Op> AttentionSizes sizesOf(Op op) {
  auto shape = [](mlir::Value v) { return mlir::cast<mlir::RankedTensorType>(v.getType()).getShape(); };
  return attentionSizes(shape(op.getQ()), shape(op.getK()), op.getBshd());
}

} // namespace zero::nn
