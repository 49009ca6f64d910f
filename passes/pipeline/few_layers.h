//===- few_layers.h - a model with a few of its layers --------------------------------------------------===//
// What a model with many equal layers needs at the least, one with a few of them nearly needs too: what is live at once are the tensors of
// a layer or two, wherever the others rest. It needs no more, and is compiled in no time.
#pragma once
#include "mlir/IR/BuiltinOps.h"
#include <cstdint>
#include <span>

namespace zero::pipeline {

/// A run of words of which each is that `period` before it, but for those of the first period.
struct Repetition {
  size_t begin = 0, period = 0, times = 0; // whole periods; 0: there is none
};

/// The longest, among the periods that the distances of equal words speak for. Takes time in proportion to the words.
Repetition longestRepetition(std::span<const uint32_t> words);

/// Leaves a few of the layers of an imported model; what reads one that is left out reads the same place of the last before it. False, with
/// nothing changed, if the model has no layers, or too few to be worth it.
bool keepFewLayers(mlir::ModuleOp imported);

} // namespace zero::pipeline
