//===- storage.h - in which bytes each tensor of a program lives ----------------------------------===//
// The decisions of destination passing, taken before any step is made. A *slot* becomes a buffer: transient, or a persistent
// one. A value lies in a slot at an offset (which may depend on the rank). Several values lie in one slot when
//   - one is a view of the other (nn.reshape, nn.rows, zero.view, zero.own_shard),
//   - one is packed into the other: whoever computes it writes it in place (zero.pack, nn.join_rows),
//   - a collective, kernel or product overwrites an operand that nobody reads any more.
#pragma once
#include "compiler/nn/Nn.h"
#include "compiler/plan/Plan.h"
#include "compiler/zero/Zero.h"
#include "passes/schedule/states.h"
#include <deque>

namespace zero::schedule {

struct Slot {
  std::string name;
  planir::BufferKind kind = planir::BufferKind::activation;
  int64_t bytes = 0;
  planir::StateOp state;                  // the persistent buffer it is; null: transient
  int64_t lastUse = -1;                   // position of the last operation that reads any value in the slot
  mlir::Value value;                      // !plan.buffer, once made
  mlir::FlatSymbolRefAttr bucket;         // that a transient one works for, null if none
  state::TensorAttr tensor;               // what of the bucket's elements lies in it; null if none
  int64_t begin = 0;                      // the first of these elements
  state::Tier tier = state::Tier::device; // of a transient one
};

struct Place {
  Slot *slot = nullptr;
  int64_t offset = 0, stride = 0; // bytes [offset + rank * stride, …)
};

class Storage {
public:
  Storage(mlir::func::FuncOp program, States &states) : program(program), states(states) {}
  mlir::LogicalResult run();

  /// Where a value lies; every operand and result of the program has a place after run().
  Place placeOf(mlir::Value value) const;
  planir::Ref refOf(mlir::Value value) const;
  /// Where the sum of an accumulator is worked on: in the accumulator itself, if that lies where the gradient is, or in room on the device.
  Slot *sumOf(state::AccumulateOp op);
  /// A slot that no value of the program stands for (room of a collective, what is fetched for one operation).
  Slot *scratch(std::string name, planir::BufferKind kind, int64_t bytes, mlir::FlatSymbolRefAttr bucket);
  Slot *persistent(planir::StateOp state);
  /// Inputs of a pack, or of tensors that are joined, that could not be written in place and must be copied.
  bool isCopied(mlir::Operation *pack, unsigned input) const { return copied.contains({pack, input}); }
  /// The returned value is copied here, its producer could not write there; null if it lies right.
  Slot *resultCopy(unsigned index) const { return index < resultCopies.size() ? resultCopies[index] : nullptr; }

  std::deque<Slot> &allSlots() { return slots; }

private:
  /// What a value is a view of.
  struct View {
    mlir::Value root;
    int64_t offset = 0, stride = 0;
  };
  View viewOf(mlir::Value value) const;
  void findUses();
  mlir::LogicalResult placePack(state::PackOp pack);
  mlir::LogicalResult placeJoin(nn::JoinRowsOp join);
  mlir::FailureOr<llvm::SmallVector<unsigned>> overwritable(mlir::Value value);
  mlir::LogicalResult placeOverwritten(mlir::Value value);
  void placeProduct(mlir::Value product, mlir::Value onto);
  mlir::LogicalResult placeResults(mlir::Operation &op);
  mlir::LogicalResult placeLaunch(nn::LaunchOp launch);
  void placeAllGather(state::AllGatherOp op);
  mlir::LogicalResult placeResident(state::ResidentOp op);
  mlir::LogicalResult placeGather(state::GatherOp op);
  void placeToHost(state::ToHostOp op);
  void placeReduceScatter(state::ReduceScatterOp op);
  void placeReturned();

  Slot *make(std::string name, planir::BufferKind kind, int64_t bytes);
  Slot *makeFor(mlir::Value value, planir::BufferKind kind);
  /// For elements of a bucket: its gradient, or its parameters while they are gathered.
  Slot *makeFor(mlir::Value value, planir::BufferKind kind, mlir::FlatSymbolRefAttr bucket, state::Role role, state::Part part);
  void put(mlir::Value value, Place place);
  bool isPlaced(mlir::Value value) const { return places.count(value); }
  /// Nobody reads the bytes of the slot after operation `position`, and they are the program's own.
  bool diesAt(const Slot &slot, int64_t position) const;

  mlir::func::FuncOp program;
  States &states;
  std::deque<Slot> slots;
  llvm::DenseMap<mlir::Value, Place> places; // of roots
  llvm::DenseMap<mlir::Value, View> views;
  llvm::DenseMap<mlir::Value, int64_t> lastUse; // of roots, views included
  llvm::DenseMap<mlir::Operation *, int64_t> position;
  llvm::DenseMap<mlir::Operation *, Slot *> persistentSlots, sums;
  llvm::SmallVector<int64_t> scatters; // positions of zero.reduce_scatter
  llvm::DenseSet<std::pair<mlir::Operation *, unsigned>> copied;
  llvm::SmallVector<Slot *> resultCopies;
};

inline int64_t bytesOf(mlir::Value value) { return nn::bytesOf(llvm::cast<mlir::ShapedType>(value.getType())); }
inline int64_t elementBytes(mlir::Value value) { return (llvm::cast<mlir::ShapedType>(value.getType()).getElementTypeBitWidth() + 7) / 8; }
/// Its result is part of the operand's bytes.
inline bool isView(mlir::Operation *op) { return llvm::isa<nn::ReshapeOp, nn::RowsOp, state::ViewOp, state::OwnShardOp>(op); }

/// The bucket a gradient on its way belongs to, null if the value is none; and its name or "".
mlir::FlatSymbolRefAttr bucketOf(mlir::Value gradient);
llvm::StringRef bucketNameOf(mlir::Value gradient);

} // namespace zero::schedule
