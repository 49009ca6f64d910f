//===- quantized.h - weights that a graph keeps as small integers ------------------------------------===//
#pragma once
#include "compiler/onnx/weights.h"
#include "llvm/ADT/StringSet.h"

namespace zero::onnx {

/// Tables of 8-bit integers that a graph makes numbers of, by DequantizeLinear or by a cast and a product with scales. They cannot be
/// trained, and scales without the integers they belong to should not be.
struct Quantized {
  unsigned tables = 0;
  uint64_t weights = 0;
  StringRef first;          // of the tables, by name
  llvm::StringSet<> scales; // initializers
};
Quantized findQuantized(const Graph &graph, Weights &weights);

} // namespace zero::onnx
