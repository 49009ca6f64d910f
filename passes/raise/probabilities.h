//===- probabilities.h - the softmax that an attention's probabilities come from ------------------===//
#pragma once
#include "compiler/nn/Nn.h"
#include <optional>

namespace zero::raise {

/// Whether two shapes have the same last two dimensions and as many elements: leading dimensions regrouped.
bool regroups(llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b);

struct Probabilities {
  mlir::Value scores;
  mlir::Value sink; ///< of as many elements as heads: one more score of each row, whose probability is dropped; null where there is none
};

/// What `v` is the softmax of, through reshapes, a conversion, a replacement of NaN by zero, and dropout that drops nothing; nothing where
/// something in between has another reader.
std::optional<Probabilities> softmaxUnder(mlir::Value v);

} // namespace zero::raise
