//===- choices.h - rows for which a number of the data is one of a few ----------------------------------===//
// Routers number the experts that each token goes to, and who computes for one of them asks where its number stands: "chosen == 3", one of
// a one-hot table's columns, "any(chosen == 3)".
#pragma once
#include "passes/raise/movement.h"
#include <map>

namespace zero::raise {

/// Of each row of a mask: whether a number of the data is this one.
struct Choice {
  mlir::Value numbers; // of integers, where they are computed
  Index place;         // of a row's number among these
  int64_t number = 0;
  mlir::Value compared;                                    // with this number, element by element, and
  llvm::SmallVector<mlir::Operation *> path;               // what makes the mask of that, the comparison last
  llvm::SmallVector<llvm::SmallVector<int64_t>> inReduced; // of each reduction on the path: where along its dimensions

  /// Whether both ask for the same number of a row.
  bool isOfSameNumbers(const Choice &other) const { return numbers == other.numbers && place == other.place; }
};

class Choices {
public:
  /// Those of which `mask` says that one or another holds; none where it says something else. Masks of one shape have the same rows.
  std::vector<Choice> of(mlir::Value mask);
  /// What the choice is made of, in the shape of its mask.
  static mlir::Value numbersOf(const Choice &choice, mlir::OpBuilder &b);

  Space space;
  Movement movement{space};
  /// Any index of a tensor of this shape.
  Indices anywhere(llvm::ArrayRef<int64_t> shape);
  /// The element of a value, followed as far as it is only moved.
  std::pair<mlir::Value, Index> origin(mlir::Value v, Indices at);

private:
  bool find(mlir::Value v, Indices at, Choice so);
  bool compared(mlir::Value v, mlir::Value with, Indices at, Choice so);

  std::map<std::pair<size_t, int64_t>, unsigned> dims; // atoms, by dimension and size
  std::vector<Choice> found;
};

} // namespace zero::raise
