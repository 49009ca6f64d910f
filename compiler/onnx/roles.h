//===- roles.h - which initializers are parameters -----------------------------------------------===//
// Exporters name folded weights, masks and rotary tables alike, so the use decides. The forward graph is
// imported once with every float initializer as a symbol; then each of its values gets a fact:
//
//   known      depends on initializers and constants only, and remembers which, and along which dimensions it
//              really varies (a bias repeated over rows varies along the last one)
//   plain      numbers computed from integer inputs alone: masks, positions
//   feature    a float input of the model, or elementwise of it
//   hidden     an activation: after a product or a lookup
//   scores     product of two activations on its way to a softmax
//
// Where an operation has a known value and data, that use says what its initializers are:
//
//   product with data             parameter, unless it multiplies positions on their way to a sine
//   lookup by data or constants   parameter, unless it may hold cosines and all it does is multiply activations (rotary cache)
//   scale or bias of a norm       parameter
//   added, varies along one dimension    bias: parameter, unless scores are masked by it, it holds -inf,
//                                 or it is a [1, n] row of zeros added to the logits (a buffer)
//   added, varies along more      position table: parameter, unless added to scores (mask), repeated for each
//                                 sample (folded) or sinusoidal
//   multiplied, one dimension     scale: parameter
//   multiplied, one number        constant, unless picked out of several, after a function, or a vector of one of a module
//   multiplied, more              rotary table: constant, unless it does not vary along the sequence
//   joined to data                class token: parameter, unless repeated for each sample
//   anything else                 constant
//
// Where the exporter names the arguments of calls after what PyTorch called them, a parameter is one in every such use and a buffer in
// none.
#pragma once
#include "compiler/onnx/importer.h"

namespace zero::onnx {

/// Why some tables are constants, whatever the exporter calls them.
inline constexpr llvm::StringLiteral kSinusoid = "a sinusoidal table", kFrequencies = "frequencies of a sine";

/// A use of an initializer and what it says.
struct Site {
  Use use;
  mlir::Operation *get = nullptr; // in the analysed module; erased where nothing reads it
  std::string role;               // empty: no parameter's use
  std::string why;                // of an empty role, where there is more to say
  bool plusOne = false;           // used as 1 + w
  std::optional<unsigned> summed; // of a matrix: the dimension a product sums over, or of whose rows a lookup takes some
};

void findRoles(mlir::func::FuncOp forward, llvm::MutableArrayRef<Site> sites, Weights &weights);

} // namespace zero::onnx
