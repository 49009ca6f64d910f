//===- reader.h - which element an operation reads --------------------------------------------------===//
// What moves, repeats or selects elements says so here, in terms of indices; codegen makes nodes of a kernel of it, for every target.
#pragma once
#include "compiler/nn/index.h"
#include "compiler/nn/scalar.h"
#include "mlir/IR/BuiltinAttributeInterfaces.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <optional>

namespace zero::nn {

/// Asked on behalf of one operation. Every number may be none (id -1) after an error; whoever gets none hands it on.
class ElementReader {
public:
  virtual ~ElementReader() = default;
  /// Where indices live: reshapes, quotients and remainders.
  virtual Space &space() = 0;

  /// The element of an operand at this index.
  virtual Number operand(unsigned number, llvm::ArrayRef<Index> at) = 0;
  /// The same of an integer operand, as an index in [0, size).
  virtual std::optional<Index> indexFrom(unsigned number, llvm::ArrayRef<Index> at, int64_t size) = 0;
  /// `inside` where all guards hold, else `outside`. `otherwise` is known where they do not.
  virtual Number choose(llvm::ArrayRef<Guard> guards, llvm::function_ref<Number()> inside, llvm::function_ref<Number()> outside,
                        std::optional<Guard> otherwise = {}) = 0;
  /// `body`, which is only asked for where the guard holds: there its reads stay inside their tensors.
  virtual Number under(const Guard &guard, llvm::function_ref<Number()> body) = 0;
  /// An attribute of the result's element type.
  virtual Number constant(mlir::Attribute value) = 0;
  /// An index as a number of the result's element type.
  virtual Number position(const Index &index) = 0;
  /// Number `first + index` of the stream (seed, id) of compiler/nn/random.h, where `first` is the second number of operand 0, the seed,
  /// times `perSample`.
  virtual Number random(uint64_t id, int64_t perSample, const Index &index) = 0;
};

} // namespace zero::nn
