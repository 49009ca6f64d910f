//===- losses.h - what --loss says, and the outputs it means ---------------------------------------===//
#pragma once
#include "compiler/nn/Nn.h"

namespace zero::train {

/// One loss of the weighted sum that is trained: "[WEIGHT*]cross_entropy[:OUTPUT]", "[WEIGHT*]mse[:OUTPUT]", "[WEIGHT*]output:OUTPUT".
struct Loss {
  enum class Kind { CrossEntropy, Mse, Output };
  Kind kind = Kind::CrossEntropy;
  double weight = 1;
  std::string output; // a result of @forward
  mlir::Value value;  // that result
  std::string labels; // the argument it compares with; empty for Kind::Output

  bool hasLabels() const { return kind != Kind::Output; }
  llvm::StringRef name() const { return kind == Kind::CrossEntropy ? "cross_entropy" : kind == Kind::Mse ? "mse" : "output"; }
};

/// Finds the results of `forward` that the losses are made of. cross_entropy and mse without a name take the one called "logits", or the
/// only one that fits. Labels are called "labels" where one loss has some, else "labels.OUTPUT". Fails after an error that lists the
/// outputs with their types.
llvm::FailureOr<llvm::SmallVector<Loss>> findLosses(llvm::ArrayRef<std::string> texts, mlir::func::FuncOp forward);

} // namespace zero::train
