//===- import_notes.h - what who trains a graph would not see in it --------------------------------------===//
#pragma once
#include "compiler/onnx/import.h"
#include "compiler/onnx/quantized.h"

namespace zero::onnx {

/// Nodes that training treats otherwise than a reader of the graph may expect.
enum class NoteKind { InactiveDropout, Dropout, HalfCast, Detached };

/// Counted during the walk, told once.
class ImportNotes {
public:
  void count(NoteKind what, llvm::StringRef node) {
    auto &[times, first] = seen[what];
    if (!times++) first = node.str();
  }
  /// Adds a sentence to `report` for each kind that occurs.
  void tell(const Quantized &quantized, ImportReport &report) const;

private:
  std::map<NoteKind, std::pair<unsigned, std::string>> seen; // how often, and the first node
};

} // namespace zero::onnx
