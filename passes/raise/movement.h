//===- movement.h - elements followed through what moves them ---------------------------------------===//
#pragma once
#include "compiler/nn/Nn.h"
#include "compiler/nn/reader.h"
#include "llvm/ADT/DenseMap.h"

namespace zero::raise {

using nn::Guard, nn::Index, nn::Indices, nn::Number, nn::Space;

/// Where an operation that only moves elements of one operand reads it. Rows that constant indices look up are followed where these are
/// affine in the indices of the result.
class Movement : public nn::ElementReader {
public:
  explicit Movement(Space &space) : indices(space) {}

  /// From an element of a value to the same in what it is made of; false where it is made otherwise.
  bool follow(mlir::Value &v, Indices &at);

private:
  Space &indices;
  Indices from;
  mlir::Value lookedUp;                                        // the indices of the operation that is followed, if it looks rows up
  llvm::DenseMap<mlir::Value, std::vector<int64_t>> constants; // such indices; none where they are not known

  Space &space() override { return indices; }
  Number operand(unsigned, llvm::ArrayRef<Index> at) override { return from.assign(at.begin(), at.end()), Number{0}; }
  std::optional<Index> indexFrom(unsigned number, llvm::ArrayRef<Index> at, int64_t size) override;
  Number choose(llvm::ArrayRef<Guard>, llvm::function_ref<Number()>, llvm::function_ref<Number()>, std::optional<Guard>) override {
    return {-1};
  }
  Number under(const Guard &, llvm::function_ref<Number()>) override { return {-1}; }
  Number constant(mlir::Attribute) override { return {-1}; }
  Number position(const Index &) override { return {-1}; }
  Number random(uint64_t, int64_t, const Index &) override { return {-1}; }
};

} // namespace zero::raise
