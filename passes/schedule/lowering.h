//===- lowering.h - operations of a program to steps ------------------------------------------------------===//
// Private to lower*.cpp.
#pragma once
#include "passes/schedule/storage.h"

namespace zero::schedule {

inline int64_t elementsOf(mlir::Value value) { return llvm::cast<mlir::ShapedType>(value.getType()).getNumElements(); }
inline mlir::Type elementOf(mlir::Value value) { return llvm::cast<mlir::ShapedType>(value.getType()).getElementType(); }

/// One program: its operations in order, each as the steps that do it.
class Lowering {
public:
  Lowering(mlir::func::FuncOp function, States &states, int64_t stagingBytes, bool librarySums, bool tf32)
      : function(function), states(states), stagingBytes(stagingBytes), librarySums(librarySums), tf32(tf32), storage(function, states),
        b(function) {}

  mlir::LogicalResult run();
  int64_t copies = 0, inplace = 0;

private:
  void makeBuffers();
  mlir::LogicalResult lower(mlir::Operation &op);
  void lowerLaunch(nn::LaunchOp op);
  void lowerMatMul(nn::MatMulOp op);
  void lowerBlocks(nn::BlockMatMulOp op);
  void lowerBlockSum(nn::BlockMatMulSumOp op);
  void lowerMatMulEpilogue(nn::MatMulEpilogueOp op);
  template <typename Op>
  void makeMatMul(Op op, llvm::ArrayRef<planir::Ref> read, llvm::ArrayRef<planir::Ref> written, bool accumulate, planir::Epilogue epilogue);
  void lowerJoin(nn::JoinRowsOp op);
  void lowerAttention(nn::AttentionOp op);
  void lowerAttentionGrad(nn::AttentionGradOp op);
  void lowerPack(state::PackOp op);
  void lowerAccumulate(state::AccumulateOp op);
  struct StateUpdate;
  void lowerUpdate(state::UpdateOp op);
  void lowerUpdateRows(state::UpdateRowsOp op);
  void lowerWriteRows(state::WriteRowsOp op);
  void lowerPublish(state::PublishOp op);
  void lowerGather(state::GatherOp op);
  void lowerLookUp(state::LookUpOp op);
  void lowerAddRows(state::AddRowsOp op);
  void lowerReturn(mlir::func::ReturnOp op);

  planir::Ref at(mlir::Value value) { return storage.refOf(value); }
  llvm::SmallVector<planir::Ref> at(mlir::ValueRange values) {
    return llvm::map_to_vector(values, [&](mlir::Value v) { return at(v); });
  }
  mlir::Value use(Slot *slot);
  planir::Ref whole(planir::StateOp state) { return {use(storage.persistent(state)), 0, 0, int64_t(state.getBytes())}; }
  /// What this rank updates of a state that lies at `ref` on the device: its shard, unless `all` or unless it stores nothing else.
  planir::Ref own(planir::Ref ref, planir::StateOp state, bool all);
  /// Bytes of a state where steps reach them: at home in the memory that these work in, or in a buffer there that they are fetched to.
  struct Reached {
    planir::StateOp state;
    planir::Ref home, here;
  };
  Reached fetched(mlir::Operation *op, planir::StateOp state) { return fetched(op, state, whole(state), state::Tier::device); }
  Reached fetched(mlir::Operation *op, planir::StateOp state, planir::Ref home, state::Tier memory);
  /// The same of what is written before anything reads it.
  Reached overwritten(mlir::Operation *op, planir::StateOp state, planir::Ref home, state::Tier memory);
  /// Room in a memory for these bytes of a state in another tier.
  planir::Ref roomFor(planir::StateOp state, planir::Ref home, state::Tier memory, llvm::StringRef what);
  /// What was changed there goes home, if that is elsewhere.
  void evict(mlir::Operation *op, const Reached &reached);
  void copy(mlir::Location loc, planir::Ref from, planir::Ref to) {
    if (from == to) return;
    ++copies;
    make<planir::CopyStep>(loc, {from}, {to});
  }
  void allGather(mlir::Location loc, planir::Ref from, planir::Ref to, int64_t count, mlir::Type type) {
    make<planir::CollectiveStep>(loc, {from}, {to}, planir::CollectiveKind::all_gather, count, type, nullptr);
  }
  /// A sum over ranks, of a bucket's elements or of others.
  void sum(mlir::Location loc, planir::CollectiveKind kind, planir::Ref from, planir::Ref to, int64_t count, mlir::Type type,
           mlir::FlatSymbolRefAttr bucket);
  /// A step on lane compute; `rest` are the operands of its own.
  template <typename Step, typename... Rest>
  Step make(mlir::Location loc, llvm::ArrayRef<planir::Ref> read, llvm::ArrayRef<planir::Ref> written, Rest &&...rest) {
    planir::Refs refs(read, written);
    return b.create<Step>(loc, refs.buffers, refs.offsets, refs.strides, refs.bytes, refs.inputs, planir::Lane::compute,
                          mlir::DenseI64ArrayAttr(), std::forward<Rest>(rest)...);
  }
  mlir::Location named(mlir::Operation *op, llvm::StringRef bucket, llvm::StringRef what) {
    return mlir::NameLoc::get(b.getStringAttr(bucket + "." + what), op->getLoc());
  }
  /// Of what makes `result`: after the bucket whose gradient that is, else its own.
  mlir::Location namedAfter(mlir::Value result, llvm::StringRef what) {
    llvm::StringRef bucket = bucketNameOf(result);
    return bucket.empty() ? result.getLoc() : named(result.getDefiningOp(), bucket, what);
  }
  /// The operation's location; with a name that people can make something of.
  mlir::Location named(mlir::Operation *op, llvm::StringRef otherwise) {
    return planir::nameOf(op->getLoc()).empty() ? mlir::NameLoc::get(b.getStringAttr(otherwise), op->getLoc()) : op->getLoc();
  }

  mlir::func::FuncOp function;
  States &states;
  int64_t stagingBytes;
  bool librarySums, tf32;
  Storage storage;
  mlir::OpBuilder b; // at the end of the program's steps
  planir::ProgramOp program;
  llvm::DenseMap<mlir::Operation *, Reached> updated;                          // parameters of a bucket that is to be published
  llvm::DenseMap<mlir::Value, planir::Ref> indicesOfRows;                      // that are updated apart, as long as they are written
  mlir::OpBuilder uses{function.getContext()}, buffers{function.getContext()}; // after the last of each
};

} // namespace zero::schedule
