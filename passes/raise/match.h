//===- match.h - what the raising patterns ask of a value -----------------------------------------===//
#pragma once
#include "compiler/nn/eval/eval.h"
#include "compiler/nn/rows.h"
#include "mlir/IR/PatternMatch.h"
#include <array>

namespace zero::raise {

inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value v) { return mlir::cast<mlir::RankedTensorType>(v.getType()).getShape(); }

/// Whether a constant of an export is meant to be `expected`: relative difference below the precision with which `type`
/// holds it.
bool isNear(double found, double expected, mlir::Type type);

/// `accept(lhs, rhs)` in one order, then in the other; false if `v` is not an Op.
template <typename Op, typename Accept> bool inEitherOrder(mlir::Value v, Accept accept) {
  auto op = v.getDefiningOp<Op>();
  return op && (accept(op.getLhs(), op.getRhs()) || accept(op.getRhs(), op.getLhs()));
}

/// The one operation that uses `v`, once; null otherwise.
mlir::Operation *onlyUser(mlir::Value v);

/// r where `v` repeats one number per row along its last dimension: r has one element per row, in the same order.
mlir::Value perRow(mlir::Value v);
/// c where `v` repeats one vector in every row: c has as many elements as v has columns.
mlir::Value perColumn(mlir::Value v);

/// x where `v` holds the mean of each row of x.
mlir::Value meanOfRows(mlir::Value v);

/// Coefficients of `v` as a polynomial in `x` of degree three at most: sums, products, powers and divisions by numbers.
std::optional<std::array<double, 4>> polynomialIn(mlir::Value v, mlir::Value x);

/// A product taken apart: a number times factors that are not products (divisions by numbers count as products).
struct Product {
  double number = 1;
  llvm::SmallVector<mlir::Value> factors;
};
/// `whole` is not taken apart where it occurs.
Product factorsOf(mlir::Value v, mlir::Value whole = {});
/// Every value `factorsOf` may take apart or return.
llvm::SmallVector<mlir::Value> partsOf(mlir::Value v);

/// Whether the value can change when a trainable parameter does.
bool dependsOnTrainable(mlir::Value v);
/// Whether `v` depends on what the model is given.
bool dependsOnSamples(mlir::Value v);

/// The elements of a value that depends on constants alone, if it has at most `limit` of them.
std::optional<nn::Tensor> constantOf(mlir::Value v, int64_t limit = 1 << 24);

} // namespace zero::raise
