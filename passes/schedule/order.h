//===- order.h - the steps of a program and who touches which buffer when --------------------------===//
#pragma once
#include "compiler/plan/Plan.h"

namespace zero::schedule {

/// A snapshot: positions are those of the steps when it was taken. Passes take it from the pass manager (getAnalysis), and those that have
/// neither moved a step nor changed what one touches preserve it for the next one.
class Order {
public:
  explicit Order(planir::ProgramOp program);

  size_t size() const { return steps.size(); }
  planir::StepOp operator[](size_t position) const { return steps[position]; }
  int64_t positionOf(mlir::Operation *step) const { return positions.lookup(step); }

  struct Touch {
    int64_t position;
    bool writes;
    int64_t begin, end; // bytes, over all ranks
  };
  /// Every reference to the buffer, in order.
  llvm::ArrayRef<Touch> touches(mlir::Value buffer) const;
  /// Position of the first step after `position` with which a step of these accesses could not be exchanged; size() if none.
  int64_t firstConflictAfter(int64_t position, llvm::ArrayRef<planir::Access> accesses) const;
  /// The same, the last step before `position`; -1 if none.
  int64_t lastConflictBefore(int64_t position, llvm::ArrayRef<planir::Access> accesses) const;
  /// Position of the last step that touches the buffer.
  int64_t lastTouch(mlir::Value buffer) const;

private:
  int64_t world;
  llvm::SmallVector<planir::StepOp> steps;
  llvm::DenseMap<mlir::Operation *, int64_t> positions;
  llvm::DenseMap<mlir::Value, size_t> buffers; // their numbers
  std::vector<llvm::SmallVector<Touch, 4>> byBuffer;
};

/// A buffer of the program on the device.
bool isTransient(mlir::Value buffer);
/// The sum of those alive at each step, and a 0 after the last.
std::vector<int64_t> liveBytes(const Order &order);

/// "1 step", "2 steps": for the sentences of decisions.
std::string counted(uint64_t n, llvm::StringRef noun);
/// Records why something was done, after the program's steps.
void decide(planir::ProgramOp program, const llvm::Twine &subject, const llvm::Twine &choice, const llvm::Twine &reason);

} // namespace zero::schedule
