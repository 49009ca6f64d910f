//===- states.h - the persistent buffers of a module ----------------------------------------------===//
#pragma once
#include "compiler/plan/Plan.h"
#include "compiler/zero/Zero.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <map>
#include <utility>
#include <vector>

namespace zero::schedule {

/// Makes each plan.state once, whichever program asks first.
class States {
public:
  explicit States(mlir::ModuleOp module);

  state::BucketOp bucket(mlir::FlatSymbolRefAttr name) { return symbols.lookup<state::BucketOp>(name.getAttr()); }
  /// Pairs (result, operand) of a kernel of which the result may overwrite the operand: its attribute `nn.inplace`, which fusion leaves, or
  /// what the kernel compiler says about its body (the optimizer's kernels come later).
  using Pairs = std::vector<std::pair<unsigned, unsigned>>;
  mlir::FailureOr<const Pairs *> inplace(mlir::FlatSymbolRefAttr kernel);

  /// Whether buckets keep what the programs use of them; an error at the use of what one does not keep.
  mlir::LogicalResult checkTensors();
  /// What the bucket keeps in this role, after checkTensors().
  planir::StateOp tensor(state::BucketOp bucket, state::Role role);
  /// Null, with an error on the function, if programs disagree about the input.
  planir::StateOp input(mlir::func::FuncOp program, unsigned index);
  planir::StateOp constant(mlir::ElementsAttr value);
  /// What the host reads after a program.
  planir::StateOp result(llvm::StringRef name, int64_t bytes);

  int64_t world = 1;

private:
  planir::StateOp get(const std::string &name, planir::BufferKind kind, int64_t bytes, mlir::Location loc);

  mlir::ModuleOp module;
  mlir::SymbolTable symbols;
  mlir::OpBuilder builder;
  std::map<std::string, planir::StateOp> made;
  llvm::DenseMap<mlir::Attribute, planir::StateOp> constants;
  llvm::DenseMap<mlir::Attribute, Pairs> pairs; // by kernel
};

} // namespace zero::schedule
