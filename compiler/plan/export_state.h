//===- export_state.h - model state, inputs and constants into plan.proto ----------------------------===//
#pragma once
#include "compiler/nn/Nn.h"
#include "compiler/plan/Plan.h"
#include "compiler/zero/Zero.h"
#include "runtime/plan/plan.pb.h"
#include <array>
#include <vector>
#include "llvm/ADT/StringMap.h"

namespace zero::planir {

/// DTYPE_UNSPECIFIED, which the loader refuses, for what plans do not know.
plan::DType dtypeOf(mlir::Type type);

/// Everything of a plan that belongs to no program: the header's numbers, persistent arenas and their buffers, inputs, constants, buckets
/// and parameters.
class StateExport {
public:
  StateExport(mlir::ModuleOp module, uint64_t initSeed, plan::Plan &plan, std::vector<char> &constants)
      : module(module), initSeed(initSeed), plan(plan), constants(constants) {}

  llvm::LogicalResult run();
  /// Index in Plan.buffers by the name of the plan.state; in Plan.buckets by that of the zero.bucket.
  const llvm::DenseMap<mlir::StringAttr, int> &indices() const { return states; }
  const llvm::DenseMap<mlir::StringAttr, int> &bucketIndices() const { return buckets; }

private:
  void addHeader();
  void addLosses();
  llvm::LogicalResult addState(StateOp op);
  int arenaOf(state::Tier tier);
  void addInput(StateOp op);
  llvm::LogicalResult addConstant(StateOp op);
  llvm::LogicalResult addBucket(state::BucketOp op, mlir::SymbolTable &symbols);
  void addParameter(nn::ParameterOp op, int bucket, int64_t offset);
  plan::Ref wholeOf(StateOp op) const;
  void countSamples();

  mlir::ModuleOp module;
  uint64_t initSeed;
  plan::Plan &plan;
  std::vector<char> &constants;
  llvm::DenseMap<mlir::StringAttr, int> states, buckets;
  llvm::StringMap<int> parameters; // by the name of the whole one
  llvm::DenseMap<mlir::StringAttr, std::vector<StateOp>> statesOfBucket;
  std::array<int, 3> arenas{-1, -1, -1}; // by tier
};

} // namespace zero::planir
