//===- census.h - what is hidden from who trains a graph --------------------------------------------===//
#pragma once
#include "compiler/onnx/import.h"
#include "compiler/onnx/quantized.h"

namespace zero::onnx {

/// Nodes that training treats otherwise than a reader of the graph may expect.
enum class Seen { RestingDropout, Dropout, HalfCast, Detached };

/// Counted during the walk, told once.
class Census {
public:
  void count(Seen what, llvm::StringRef node) {
    auto &[times, first] = seen[what];
    if (!times++) first = node.str();
  }
  /// Adds a sentence to `report` for each kind that occurs.
  void tell(const Quantized &quantized, ImportReport &report) const;

private:
  std::map<Seen, std::pair<unsigned, std::string>> seen; // how often, and the first node
};

} // namespace zero::onnx
