//===- attention.h - the sizes of an attention, in each layout --------------------------------===//
#pragma once
#include "compiler/nn/Nn.h"
#include <optional>

namespace zero::nn {

struct AttentionSizes {
  int64_t batch, heads, keyHeads, queries, keys, dim;
};

inline AttentionSizes attentionSizes(llvm::ArrayRef<int64_t> q, llvm::ArrayRef<int64_t> k, bool bshd,
                                     std::optional<int64_t> packedKeyHeads) {
  unsigned head = bshd ? 2 : 1, row = bshd ? 1 : 2;
  AttentionSizes sizes{q[0], q[head], k[head], q[row], k[row], q[3]};
  if (packedKeyHeads) sizes.keyHeads = *packedKeyHeads, sizes.heads -= 2 * sizes.keyHeads;
  return sizes;
}

/// Of nn.attention, or a gradient of it.
template <typename Op> AttentionSizes sizesOf(Op op) {
  auto shape = [](mlir::Value v) { return mlir::cast<mlir::RankedTensorType>(v.getType()).getShape(); };
  return attentionSizes(shape(op.getQ()), shape(op.getK()), op.getBshd(), op.getPackedKvHeads());
}

} // namespace zero::nn
