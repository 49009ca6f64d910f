//===- merge_rows.h - the same computation with weights of each row's own ---------------------------------===//
#pragma once
#include "compiler/nn/rows.h"
#include "passes/raise/groups.h"
#include <map>

namespace zero::raise {

/// Values that are computed row by row, and alike but for what they are made with: one for each number from `first` on. Of each row that of
/// its number is wanted, and it is computed alone.
class MergeRows {
public:
  /// `numbers`: of each row, as many elements as there are rows; where it has several, its value of each is wanted. Whatever is made is
  /// made where `b` stands, after all of the values.
  MergeRows(llvm::ArrayRef<mlir::Value> numbers, int64_t first, int64_t count, Blocks blocks, mlir::OpBuilder &b);

  /// [numbers x rows, …]: of each row the value of its first number, then of its second, an arbitrary one where none has that number; null
  /// where they are not computed alike.
  mlir::Value merge(llvm::ArrayRef<mlir::Value> values);
  /// [numbers x rows]: where there is a value of the number.
  mlir::Value held() const { return isHeld; }

private:
  using Values = llvm::SmallVector<mlir::Value>;
  mlir::Value merged(llvm::ArrayRef<mlir::Value> values);
  mlir::Value compute(llvm::ArrayRef<mlir::Value> values);
  /// What is the same for all numbers.
  mlir::Value repeated(mlir::Value v);
  mlir::Value drop(llvm::ArrayRef<mlir::Value> values);
  mlir::Value product(llvm::ArrayRef<mlir::Value> values, mlir::Value input);
  mlir::Value lookup(llvm::ArrayRef<mlir::Value> values);
  mlir::Value pick(llvm::ArrayRef<mlir::Value> values);

  nn::Build b;
  int64_t numbers, count;
  Blocks blocks;
  nn::Rows rows;             // all: of the values; count: of the result, where each row stands once for each of its numbers
  mlir::Value group, isHeld; // numbers from 0 on, arbitrary where no value has a row's number
  unsigned steps = 0;        // of the recursion
  std::map<Values, mlir::Value, bool (*)(const Values &, const Values &)> known;
};

} // namespace zero::raise
