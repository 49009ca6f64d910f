//===- insert_movement.cpp - zero-insert-movement --------------------------------------------------===//
#include "passes/shard/Passes.h"
#include "passes/shard/gradient_movement.h"

#define DEBUG_TYPE "zero-insert-movement"

using namespace mlir;

namespace zero::shard {
#define GEN_PASS_DEF_INSERTMOVEMENTPASS
#include "passes/shard/Passes.h.inc"

namespace {

/// Parameters where they are whole, or where rows of them are enough.
class ParameterMovement {
public:
  ParameterMovement(ProgramUses &uses, StateKernels &kernels, RowExchange &exchange) : uses(uses), kernels(kernels), exchange(exchange) {}

  /// The whole bucket around each read where it is gathered, once and for all otherwise.
  void place() {
    llvm::DenseMap<Operation *, Value> resident;
    llvm::DenseMap<std::pair<Operation *, Operation *>, Value> gathered; // (reader, bucket)
    for (Read &read : uses.reads) {
      Home home = uses.homeOf(read.get.getParameterAttr());
      Operation *reader = read.operand->getOwner();
      if (looksUpInShards(read, home.bucket)) {
        Operation *instead = exchange.lookUp(cast<nn::LaunchOp>(reader), home.bucket);
        for (auto *reads : {&uses.firstRead, &uses.lastRead})
          if (Operation *&known = (*reads)[home.bucket]; known == reader) known = instead;
        continue;
      }
      OpBuilder b(reader);
      Value whole;
      if (gathers(home.bucket)) {
        Value &here = gathered[{reader, home.bucket}];
        if (!here) {
          here = gather(b, reader->getLoc(), home.bucket);
          OpBuilder after(reader->getContext());
          after.setInsertionPointAfter(reader);
          after.create<state::ReleaseOp>(reader->getLoc(), here);
        }
        whole = here;
      } else {
        Value &once = resident[home.bucket];
        if (!once) {
          OpBuilder start = OpBuilder::atBlockBegin(&uses.program.getBody().front());
          once = start.create<state::ResidentOp>(home.bucket.getLoc(), uses.wholeOf(home.bucket), home.bucket.getSymName());
        }
        whole = once;
      }
      Value value = b.create<state::ViewOp>(read.get.getLoc(), read.get.getType(), whole, home.offset);
      for (nn::ReshapeOp view : read.views) value = b.create<nn::ReshapeOp>(view.getLoc(), view.getType(), value);
      read.operand->set(value);
    }
    SmallVector<Operation *> dead;
    for (Read &read : uses.reads)
      for (nn::ReshapeOp view : llvm::reverse(read.views)) dead.push_back(view);
    llvm::SmallPtrSet<Operation *, 16> erased;
    for (Operation *op : dead)
      if (!erased.contains(op) && op->use_empty()) {
        erased.insert(op);
        op->erase();
      }
    for (auto get : llvm::make_early_inc_range(uses.program.getOps<nn::GetOp>())) get.erase();
  }

private:
  /// Its parameters are read as another type than that in which it keeps them.
  bool isRounded(state::BucketOp bucket) const {
    Type read = uses.readAs.lookup(bucket);
    return read && read != bucket.tensorOf(bucket.readRole()).getType();
  }
  /// They are whole, on the device and of the type that is read only around their use.
  bool gathers(state::BucketOp bucket) const { return !bucket.isResident(bucket.readRole()) || isRounded(bucket); }

  Value gather(OpBuilder &b, Location loc, state::BucketOp bucket) {
    FlatSymbolRefAttr kernel;
    if (isRounded(bucket)) kernel = kernels.round(uses.readAs[bucket], uses.rows(bucket) * uses.sharding.world, uses.row(bucket));
    return b.create<state::GatherOp>(loc, uses.wholeOf(bucket), bucket.getSymName(), kernel);
  }

  /// Rows travel, and the table does not.
  bool looksUpInShards(const Read &read, state::BucketOp bucket) const {
    return read.operand->getOwner()->hasAttr(nn::kLooksUp) && bucket.isSharded(bucket.readRole()) && !isRounded(bucket) &&
           RowExchange::splitsRows(bucket, nn::GetOp(read.get).getType());
  }

  ProgramUses &uses;
  StateKernels &kernels;
  RowExchange &exchange;
};

struct InsertMovement : impl::InsertMovementPassBase<InsertMovement> {
  using InsertMovementPassBase::InsertMovementPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (StringRef name :
         {state::ZeroDialect::kWorld, state::ZeroDialect::kStage, state::ZeroDialect::kAccumulate, state::ZeroDialect::kOptimizer})
      if (!module->hasAttr(name)) {
        module.emitError() << "is not partitioned: it lacks '" << name << "'; run zero-partition first";
        return signalPassFailure();
      }
    Homes homes;
    SmallVector<state::BucketOp> buckets(module.getOps<state::BucketOp>());
    for (state::BucketOp bucket : buckets)
      for (auto [name, offset] : llvm::zip(bucket.getParameters(), bucket.getOffsets()))
        homes[cast<FlatSymbolRefAttr>(name).getAttr()] = {bucket, offset};
    SmallVector<func::FuncOp> programs;
    for (auto function : module.getOps<func::FuncOp>())
      if (function->hasAttr(state::ZeroDialect::kRole)) programs.push_back(function);
    StateKernels kernels(module);
    Sharding sharding(module);
    for (func::FuncOp program : programs) {
      ProgramUses uses{program, homes, buckets, sharding};
      if (failed(uses.find())) return signalPassFailure();
      RowExchange exchange(program, sharding.world, kernels);
      ParameterMovement(uses, kernels, exchange).place();
      GradientMovement(uses, kernels, exchange, lateBytes).finish();
    }
  }
};

} // namespace
} // namespace zero::shard
