//===- implement.h - what the implementations of operations share -----------------------------------===//
// An operation is implemented in one file of its family's folder: its result types and verifier, what passes ask of it (its formula, which
// elements it reads, its primitives, its gradient), and what the interpreter does for it.
#pragma once
#include "compiler/nn/build.h"
#include "compiler/nn/eval/kernels.h"
#include "compiler/nn/random.h"
#include "compiler/nn/rows.h"

namespace zero::nn {
using namespace eval;

using Types = llvm::SmallVectorImpl<mlir::Type>;
using Gradients = llvm::SmallVectorImpl<mlir::Value>;
using Numbers = llvm::ArrayRef<Number>;
using Composed = llvm::SmallVector<mlir::Value>;
using At = llvm::ArrayRef<Index>;

/// Fails, after a report where a location is known: types are also inferred while building, before there is an operation.
template <typename... Parts> mlir::LogicalResult reject(std::optional<mlir::Location> loc, Parts &&...parts) {
  if (!loc) return mlir::failure();
  auto diagnostic = mlir::emitError(*loc);
  (diagnostic << ... << parts);
  return diagnostic;
}

inline mlir::RankedTensorType with(mlir::RankedTensorType like, llvm::ArrayRef<int64_t> shape) {
  return mlir::RankedTensorType::get(shape, like.getElementType());
}
inline std::string text(llvm::ArrayRef<int64_t> shape) {
  std::string s = "[";
  llvm::raw_string_ostream os(s);
  llvm::interleaveComma(shape, os);
  return s + "]";
}

/// What nn.random, nn.dropout and nn.noise say of the stream they draw from.
template <typename Op> mlir::LogicalResult verifyStream(Op op) {
  if (typeOf(op.getSeed()).getShape() != llvm::ArrayRef<int64_t>{2})
    return op.emitOpError() << "needs a seed of two numbers, not " << op.getSeed().getType();
  if (int64_t(op.getSamples()) < 0)
    return op.emitOpError() << "covers " << int64_t(op.getSamples()) << " samples; it is at least one, or 0 for all of them";
  return mlir::success();
}

/// Their numbers for `elements` elements: calls `body` with each index and the number there.
template <typename Op, typename Body> mlir::LogicalResult draw(Op op, const Tensor &seed, int64_t elements, Body body) {
  if (seed.size() != 2 || (op.getSamples() && elements % int64_t(op.getSamples())))
    return op.emitOpError() << "needs a seed of two numbers and samples that divide its " << elements << " elements";
  RandomKey key = randomKey(seed.data<int64_t>()[0], op.getId());
  uint64_t first = op.getSamples() ? uint64_t(seed.data<int64_t>()[1]) * uint64_t(elements / op.getSamples()) : 0;
  for (size_t i = 0; i < size_t(elements); ++i) body(i, uniform(key, first + i));
  return mlir::success();
}

} // namespace zero::nn
