//===- same_names.h - results that are called as a weight or an input is -----------------------------===//
// PyTorch's newer exporter calls results after operations, "mean" or "relu", and does not look whether the model has a buffer or a
// parameter of that name. Which of the two a node reads the call says that the exporter has noted beside it: "%mean" is the result,
// "%b_mean" the model's.
#pragma once
#include "compiler/onnx/model.h"

namespace zero::onnx {

/// Gives such results names of their own, where it is told for every node that reads the name; the importer refuses what is left.
void partNames(Model &model);

} // namespace zero::onnx
