//===- by_mask.h - tensors that are indexed by a mask ----------------------------------------------===//
// `data.masked_scatter(mask, source)`, `data[mask] = source` and `data[mask].view(batch, -1, n)[:, -1]` have results whose shapes are
// known, but exporters write them with NonZero, whose number of elements is not: nothing in between could be given a type. Such nodes are
// found by what they are made of, and read the mask itself from then on.
#pragma once
#include "compiler/onnx/model.h"

namespace zero::onnx {

/// Marks the last node of each (Node::mask) and gives it other inputs; nobody needs those in between any more.
void findMasks(Model &model);

} // namespace zero::onnx
