//===- products.cpp - the work of products and of attention -----------------------------------------===//
#include "compiler/nn/library/products.h"
#include "compiler/nn/build.h"
#include "compiler/nn/library/attention.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace zero::nn {
namespace {

uint64_t elements(Value v) { return uint64_t(typeOf(v).getNumElements()); }

/// Products of queries with keys, of `products` matrices as large as the scores; and 13 to 16 operations of a softmax for each score.
template <typename Op> uint64_t ofScores(Op attention, uint64_t products, uint64_t softmax) {
  AttentionSizes sizes = sizesOf(attention);
  return uint64_t(sizes.batch * sizes.heads * sizes.queries * sizes.keys) * (products * uint64_t(sizes.dim) + softmax / 2);
}

template <typename Op> uint64_t ofProduct(Op product) {
  auto lhs = typeOf(product.getLhs());
  return elements(product.getResult()) * uint64_t(lhs.getDimSize(lhs.getRank() - (product.getTransposeLhs() ? 2 : 1)));
}

/// Blocks of groups whose matrices are elsewhere are left out.
template <typename Op> uint64_t ofGroups(Op product, Value blocks, int64_t inner, RankedTensorType matrices) {
  uint64_t here = uint64_t(matrices.getDimSize(0)), all = uint64_t(product.getAllGroups().value_or(here));
  return uint64_t(double(elements(blocks)) * double(here) / double(all)) * uint64_t(inner);
}

} // namespace

uint64_t multiplyAddsOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, uint64_t>(op)
      .Case([](MatMulOp product) { return ofProduct(product); })
      .Case([](MatMulEpilogueOp product) { return ofProduct(product); })
      .Case([](BlockMatMulOp blocks) {
        return ofGroups(blocks, blocks.getResult(), typeOf(blocks.getLhs()).getDimSize(2), typeOf(blocks.getRhs()));
      })
      .Case([](BlockMatMulSumOp blocks) {
        return ofGroups(blocks, blocks.getLhs(), typeOf(blocks.getRhs()).getDimSize(2), typeOf(blocks.getResult()));
      })
      .Case([](AttentionOp attention) { return ofScores(attention, 2, 13); })
      .Case([](AttentionGradOp attention) { return ofScores(attention, 5, 16); })
      .Case([](AttentionGradByRowSumsOp attention) { return ofScores(attention, 7, 32); }) // the scores twice
      .Default(uint64_t(0));
}

} // namespace zero::nn
