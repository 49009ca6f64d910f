//===- ties.h - which parameters that hold the same values are one ----------------------------------===//
// Equal values alone say little: layers that are copies of one start equal and are trained apart. A reason is
//
//   the exporter's word    both uses were of one parameter of PyTorch's (origin.h)
//   a pair                 one use reads the matrix and another its transpose: an embedding and an output projection, the two halves
//                          of an autoencoder. Nobody initialises two layers so
//   the user's word        --tie names both
#pragma once
#include "compiler/onnx/parameters.h"

namespace zero::onnx {

/// A parameter among others that hold the same values, as the first of them has them or transposed.
struct Copy {
  Parameter *parameter;
  bool transposed;
};

/// Sets of two and more that hold the same values. Constants that are filled with one number are no copies of each other.
std::vector<std::vector<Copy>> equalParameters(llvm::ArrayRef<std::unique_ptr<Parameter>> list, Weights &weights);

/// Divides such a set: what is one parameter comes together, in the set's order. `automatic`: not by the user's word alone.
std::vector<std::vector<Copy>> onesAmong(llvm::ArrayRef<Copy> copies, const Origins &origins, Weights &weights, bool automatic);

} // namespace zero::onnx
