//===- movement.h - elements followed through what moves them ---------------------------------------===//
#pragma once
#include "compiler/nn/Nn.h"
#include "compiler/nn/reader.h"

namespace zero::raise {

using nn::Guard, nn::Index, nn::Indices, nn::Number, nn::Space;

/// Where an operation that only moves elements of one operand reads it.
class Movement : public nn::ElementReader {
public:
  explicit Movement(Space &space) : indices(space) {}

  /// From an element of a value to the same in what it is made of; false where it is made otherwise.
  bool follow(mlir::Value &v, Indices &at) {
    auto op = v.getDefiningOp<nn::IndexedOpInterface>();
    if (!op || op->getNumOperands() != 1 || op.read(*this, at).id < 0) return false;
    v = op->getOperand(0), at = from;
    return true;
  }

private:
  Space &indices;
  Indices from;

  Space &space() override { return indices; }
  Number operand(unsigned, llvm::ArrayRef<Index> at) override { return from.assign(at.begin(), at.end()), Number{0}; }
  std::optional<Index> indexFrom(unsigned, llvm::ArrayRef<Index>, int64_t) override { return std::nullopt; }
  Number choose(llvm::ArrayRef<Guard>, llvm::function_ref<Number()>, llvm::function_ref<Number()>, std::optional<Guard>) override {
    return {-1};
  }
  Number under(const Guard &, llvm::function_ref<Number()>) override { return {-1}; }
  Number constant(mlir::Attribute) override { return {-1}; }
  Number position(const Index &) override { return {-1}; }
  Number random(uint64_t, int64_t, const Index &) override { return {-1}; }
};

} // namespace zero::raise
