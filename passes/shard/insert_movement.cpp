//===- insert_movement.cpp - zero-insert-movement --------------------------------------------------===//
#include "compiler/nn/Nn.h"
#include "passes/shard/Passes.h"
#include "passes/shard/kernels.h"
#include "passes/shard/layout.h"
#include "passes/shard/row_exchange.h"
#include "passes/shard/uses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#define DEBUG_TYPE "zero-insert-movement"

using namespace mlir;

namespace zero::shard {
#define GEN_PASS_DEF_INSERTMOVEMENTPASS
#include "passes/shard/Passes.h.inc"

namespace {

/// Where a parameter lies.
struct Home {
  state::BucketOp bucket;
  int64_t offset = 0;
};
using Homes = llvm::DenseMap<StringAttr, Home>;

/// What the whole module says about sharding.
struct Sharding {
  int64_t world, accumulate, sliceElements;
  bool scalesLoss;
  train::OptimizerKind optimizer;

  explicit Sharding(ModuleOp module) {
    auto number = [&](StringRef name) { return module->getAttrOfType<IntegerAttr>(name).getInt(); };
    world = number(state::ZeroDialect::kWorld);
    accumulate = number(state::ZeroDialect::kAccumulate);
    scalesLoss = module->hasAttr(state::ZeroDialect::kScalesLoss);
    optimizer = module->getAttrOfType<StringAttr>(state::ZeroDialect::kOptimizer) == "sgd" ? train::OptimizerKind::SGD
                                                                                           : train::OptimizerKind::AdamW;
    int64_t shards = 0;
    for (auto bucket : module.getOps<state::BucketOp>()) shards += int64_t(bucket.getShard());
    sliceElements = sliceElementsOf(shards);
  }
};

/// Each rank updates all of it.
bool updatesWhole(state::BucketOp bucket) {
  return bucket.getElements() != bucket.getShard() && !bucket.isPublished() && !bucket.isSharded(state::Role::master);
}

RankedTensorType flat(OpBuilder &b, int64_t elements, Type type = nullptr) {
  return RankedTensorType::get({elements}, type ? type : b.getF32Type());
}
/// The type of the compute copy that an update writes; null if there is none, or it has the master's numbers and is copied from there.
Type computeType(state::BucketOp bucket) {
  state::TensorAttr compute = bucket.tensorOf(state::Role::compute);
  return compute && !compute.getType().isF32() ? compute.getType() : nullptr;
}

Operation *later(Operation *a, Operation *b) { return !a || (b && a->isBeforeInBlock(b)) ? b : a; }

//===----------------------------------------------------------------------===//
// Parameters: who reads them, and where they are whole
//===----------------------------------------------------------------------===//

class ProgramBuilder {
public:
  ProgramBuilder(func::FuncOp program, const Homes &homes, ArrayRef<state::BucketOp> buckets, Sharding sharding, StateKernels &kernels)
      : program(program), homes(homes), buckets(buckets), sharding(sharding), kernels(kernels), exchange(program, sharding.world, kernels) {
  }

  LogicalResult run() {
    role = program->getAttrOfType<StringAttr>(state::ZeroDialect::kRole).getValue();
    waitsForNorm = sharding.scalesLoss || program->hasAttr(state::ZeroDialect::kClips);
    updates = role == "step" || role == "last";
    microSteps = size_t(state::ZeroDialect::microStepsOf(program));
    if (failed(checkSignature()) || failed(findReads()) || failed(findGradients())) return failure();
    placeParameters();
    finish();
    return success();
  }

private:
  LogicalResult checkSignature() {
    if (program.getNumResults() != microSteps)
      return program.emitError() << "@" << program.getName() << " returns " << program.getNumResults() << " values, not the loss alone"
                                 << (microSteps > 1 ? " of each micro-step; run zero-interleave first" : "");
    unsigned last = program.getNumArguments() - 1;
    auto hyper = program.getNumArguments() ? program.getArgAttrOfType<StringAttr>(last, nn::NnDialect::kRoleAttr) : StringAttr();
    if (updates && (!hyper || hyper.getValue() != "hyper"))
      return program.emitError() << "@" << program.getName() << " updates, but its last argument is not the hyper-parameters";
    return success();
  }

  /// The bucket of a parameter, or null, with an error on `user`.
  state::BucketOp bucketOf(Operation *user, FlatSymbolRefAttr parameter) const {
    state::BucketOp bucket = homeOf(parameter).bucket;
    if (!bucket) user->emitOpError() << parameter << " lies in no bucket; run zero-partition first";
    return bucket;
  }

  LogicalResult findReads() {
    program.walk([&](nn::GetOp get) {
      readAs[homeOf(get.getParameterAttr()).bucket] = cast<ShapedType>(get.getType()).getElementType();
      collectReads(get, reads);
    });
    for (Read &read : reads) {
      state::BucketOp bucket = bucketOf(read.get, read.get.getParameterAttr());
      if (!bucket) return failure();
      Operation *&last = lastRead[bucket], *&first = firstRead[bucket], *reader = read.operand->getOwner();
      if (!first || reader->isBeforeInBlock(first)) first = reader;
      last = later(last, read.operand->getOwner());
    }
    return success();
  }

  LogicalResult findGradients() {
    llvm::DenseMap<Attribute, size_t> found; // of each parameter
    for (auto gradient : program.getOps<nn::GradientOp>()) {
      state::BucketOp bucket = bucketOf(gradient, gradient.getParameterAttr());
      if (!bucket) return failure();
      size_t micro = found[gradient.getParameterAttr()]++; // they stand in the order of micro-steps
      gradients[bucket].resize(std::max(gradients[bucket].size(), micro + 1));
      gradients[bucket][micro].push_back(gradient);
    }
    if (role == "eval") return success();
    for (state::BucketOp bucket : buckets) {
      size_t count = 0, expected = bucket.getParameters().size() * microSteps;
      for (auto &micro : gradients[bucket]) count += micro.size();
      if (bucket.getTrainable() && (count != expected || gradients[bucket].size() != microSteps))
        return bucket.emitError() << "has " << bucket.getParameters().size() << " parameters"
                                  << (microSteps > 1 ? " in " + std::to_string(microSteps) + " micro-steps" : "") << " but @"
                                  << program.getName() << " yields " << count << " gradients for it";
    }
    return success();
  }

  /// Its parameters are read as another type than that in which it keeps them.
  bool isRounded(state::BucketOp bucket) const {
    Type read = readAs.lookup(bucket);
    return read && read != bucket.tensorOf(bucket.readRole()).getType();
  }
  /// They are whole, on the device and of the type that is read only around their use.
  bool gathers(state::BucketOp bucket) const { return !bucket.isResident(bucket.readRole()) || isRounded(bucket); }

  Value gather(OpBuilder &b, Location loc, state::BucketOp bucket) {
    FlatSymbolRefAttr kernel;
    if (isRounded(bucket)) kernel = kernels.round(readAs[bucket], rows(bucket) * sharding.world, row(bucket));
    return b.create<state::GatherOp>(loc, wholeOf(bucket), bucket.getSymName(), kernel);
  }

  /// Rows travel, and the table does not.
  bool looksUpInShards(const Read &read, state::BucketOp bucket) const {
    return read.operand->getOwner()->hasAttr(nn::kLooksUp) && bucket.isSharded(bucket.readRole()) && !isRounded(bucket) &&
           RowExchange::splitsRows(bucket, nn::GetOp(read.get).getType());
  }

  /// The whole bucket around each read where it is gathered, once and for all otherwise.
  void placeParameters() {
    llvm::DenseMap<Operation *, Value> resident;
    llvm::DenseMap<std::pair<Operation *, Operation *>, Value> gathered; // (reader, bucket)
    for (Read &read : reads) {
      Home home = homeOf(read.get.getParameterAttr());
      Operation *reader = read.operand->getOwner();
      if (looksUpInShards(read, home.bucket)) {
        Operation *instead = exchange.lookUp(cast<nn::LaunchOp>(reader), home.bucket);
        for (auto *reads : {&firstRead, &lastRead})
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
          OpBuilder start = OpBuilder::atBlockBegin(&program.getBody().front());
          once = start.create<state::ResidentOp>(home.bucket.getLoc(), wholeOf(home.bucket), home.bucket.getSymName());
        }
        whole = once;
      }
      Value value = b.create<state::ViewOp>(read.get.getLoc(), read.get.getType(), whole, home.offset);
      for (nn::ReshapeOp view : read.views) value = b.create<nn::ReshapeOp>(view.getLoc(), view.getType(), value);
      read.operand->set(value);
    }
    SmallVector<Operation *> dead;
    for (Read &read : reads)
      for (nn::ReshapeOp view : llvm::reverse(read.views)) dead.push_back(view);
    llvm::SmallPtrSet<Operation *, 16> erased;
    for (Operation *op : dead)
      if (!erased.contains(op) && op->use_empty()) {
        erased.insert(op);
        op->erase();
      }
    for (auto get : llvm::make_early_inc_range(program.getOps<nn::GetOp>())) get.erase();
  }

  /// Gradients into the optimizer, loss and norm to the caller.
  void finish() {
    auto terminator = cast<func::ReturnOp>(program.getBody().front().getTerminator());
    OpBuilder end(terminator);
    Location loc = NameLoc::get(end.getStringAttr("results")); // no node of the model: what the step reports
    SmallVector<std::pair<state::BucketOp, Value>> pending;    // final gradient shards that wait for the norm
    SmallVector<Value> sums;
    if (role != "eval")
      for (state::BucketOp bucket : buckets)
        if (bucket.getTrainable()) consumeGradients(bucket, pending, sums);

    SmallVector<Value> scalars(terminator.getOperands());
    if (updates) scalars.push_back(sum(end, loc, sums));
    Value packed = pack(end, loc, scalars);
    if (sharding.world > 1) packed = end.create<state::AllReduceOp>(loc, packed.getType(), packed);
    int64_t all = cast<ShapedType>(packed.getType()).getNumElements(),
            losses = all - updates; // the terms of each micro-step's, and the norm
    SmallVector<Value> results{end.create<state::ViewOp>(loc, flat(end, losses), packed, 0)};
    if (updates) results.push_back(end.create<state::ViewOp>(loc, flat(end, 1), packed, losses));
    sortByUse(pending); // forward needs them in this order
    for (auto [bucket, shard] : pending) update(end, bucket, shard, results[1]);

    terminator->setOperands(results);
    program.setType(end.getFunctionType(program.getArgumentTypes(), ValueRange(results).getTypes()));
    for (auto gradient : llvm::make_early_inc_range(program.getOps<nn::GradientOp>())) gradient.erase();
    for (nn::LaunchOp launch : superseded) launch.erase();
  }

  void sortByUse(SmallVectorImpl<std::pair<state::BucketOp, Value>> &pending) const {
    auto before = [&](const auto &a, const auto &b) {
      Operation *first = firstRead.lookup(a.first), *second = firstRead.lookup(b.first);
      return first && (!second || first->isBeforeInBlock(second));
    };
    llvm::stable_sort(pending, before);
  }

  void consumeGradients(state::BucketOp bucket, SmallVectorImpl<std::pair<state::BucketOp, Value>> &pending, SmallVectorImpl<Value> &sums) {
    OpBuilder b(program.getContext());
    Operation *anchor = nullptr; // the last gradient
    Value shard;                 // of the sum so far
    for (auto &found : gradients[bucket]) {
      anchor = nullptr;
      for (nn::GradientOp gradient : found) anchor = later(anchor, gradient);
      b.setInsertionPointAfter(anchor);
      shard = accumulate(b, bucket, sumOverRanks(b, bucket, found), shard);
    }
    if (!updates) return;
    bool host = bucket.getUpdatedOnHost();
    if (waitsForNorm || host) sums.push_back(sumSquares(b, bucket, shard)); // while it is at hand
    if (host) shard = b.create<state::ToHostOp>(bucket.getLoc(), wholeIfUpdated(b, bucket, shard));
    if (waitsForNorm) {
      pending.push_back({bucket, shard});
      return;
    }
    // The parameters must have been read for the last time before they change.
    if (Operation *read = lastRead.lookup(bucket); read && anchor->isBeforeInBlock(read)) b.setInsertionPointAfter(read);
    Value own = update(b, bucket, shard, {});
    if (!host) sums.push_back(own);
  }

  /// Where every rank updates all of a bucket it takes the gradient of all.
  Value wholeIfUpdated(OpBuilder &b, state::BucketOp bucket, Value shard) {
    if (!updatesWhole(bucket)) return shard;
    return b.create<state::AllGatherOp>(bucket.getLoc(), flat(b, bucket.getElements()), shard);
  }

  /// A scalar, or the hyper-parameters, where updates on the host read them: brought there once, from where they are known.
  Value onHost(Value value) {
    Value &there = hostCopies[value];
    if (!there) {
      OpBuilder b(program.getContext());
      b.setInsertionPointAfterValue(value);
      there = b.create<state::ToHostOp>(NameLoc::get(b.getStringAttr("updates on the host")), value);
    }
    return there;
  }

  /// A micro-step's gradients, summed over the ranks. Rows of a table are added to the sum of the rest, which travels as soon as it is
  /// known.
  Value sumOverRanks(OpBuilder &b, state::BucketOp bucket, SmallVectorImpl<nn::GradientOp> &found) {
    SmallVector<nn::LaunchOp> rows; // the last first
    Value rest = found[0].getValue();
    if (sharding.world > 1 && found.size() == 1 && RowExchange::splitsRows(bucket, rest.getType()))
      for (auto launch = rest.getDefiningOp<nn::LaunchOp>(); launch && launch->hasAttr(nn::kAddsRows);
           launch = rest ? rest.getDefiningOp<nn::LaunchOp>() : nn::LaunchOp()) {
        rows.push_back(launch);
        rest = nn::addedRows(launch).onto;
      }
    if (rows.empty()) return reduce(b, bucket, found);
    Value shard;
    if (rest) {
      OpBuilder early(program.getContext());
      early.setInsertionPointAfterValue(rest);
      shard = reduce(early, bucket, {rest}, {0});
    } else {
      shard = b.create<state::PackOp>(bucket.getLoc(), flat(b, bucket.getShard()), ValueRange(), ArrayRef<int64_t>());
    }
    for (nn::LaunchOp launch : llvm::reverse(rows)) shard = exchange.addRows(b, launch, bucket, shard);
    superseded.append(rows);
    return shard;
  }

  /// Gradients side by side, summed over the ranks.
  Value reduce(OpBuilder &b, state::BucketOp bucket, SmallVectorImpl<nn::GradientOp> &found) {
    llvm::sort(found, [&](nn::GradientOp a, nn::GradientOp c) {
      return homeOf(a.getParameterAttr()).offset < homeOf(c.getParameterAttr()).offset;
    });
    SmallVector<Value> values;
    SmallVector<int64_t> offsets;
    for (nn::GradientOp gradient : found) {
      values.push_back(gradient.getValue());
      offsets.push_back(homeOf(gradient.getParameterAttr()).offset);
    }
    return reduce(b, bucket, values, offsets);
  }
  Value reduce(OpBuilder &b, state::BucketOp bucket, ArrayRef<Value> values, ArrayRef<int64_t> offsets) {
    Type travels = cast<ShapedType>(values[0].getType()).getElementType();
    Value packed = b.create<state::PackOp>(bucket.getLoc(), flat(b, bucket.getElements(), travels), values, offsets);
    if (sharding.world == 1) return packed;
    return b.create<state::ReduceScatterOp>(bucket.getLoc(), flat(b, bucket.getShard()), packed);
  }

  /// Added to those of the micro-steps before: `sum`, if they are of this program, else the bucket's accumulator.
  Value accumulate(OpBuilder &b, state::BucketOp bucket, Value shard, Value sum) {
    bool starts = microSteps > 1 && !sum;
    if (sharding.accumulate == 1 || starts) return shard;
    bool first = role == "first";
    FlatSymbolRefAttr add;
    if (!first) add = kernels.accumulate(rows(bucket), row(bucket));
    return b.create<state::AccumulateOp>(bucket.getLoc(), shard.getType(), bucket.getSymName(), shard, sum, add, first);
  }

  /// One optimizer step from a gradient shard, which is there where the update is made; yields the squared gradient per row of the own
  /// shard unless clipping, or where the host updates.
  Value update(OpBuilder &b, state::BucketOp bucket, Value shard, Value norm2) {
    Location loc = bucket.getLoc();
    bool whole = updatesWhole(bucket), clip = bool(norm2), host = bucket.getUpdatedOnHost(), sumsSquares = !clip && !host;
    Value hyper = program.getArguments().back();
    if (!host) shard = wholeIfUpdated(b, bucket, shard);
    if (host) hyper = onHost(hyper);
    if (host && clip) norm2 = onHost(norm2);
    int64_t count = rows(bucket) * (whole ? sharding.world : 1), columns = row(bucket), slice = rowsOfSlice(bucket, count);
    SmallVector<Value> sums;
    for (int64_t begin = 0; begin < count; begin += slice) {
      int64_t here = std::min(slice, count - begin);
      Value gradient = shard;
      if (here < count) gradient = b.create<state::ViewOp>(loc, flat(b, here * columns), shard, begin * columns);
      auto symbol = kernels.update(sharding.optimizer, here, columns, {clip, clip && sharding.scalesLoss, computeType(bucket), host});
      auto op = b.create<state::UpdateOp>(loc, sumsSquares ? TypeRange(flat(b, here)) : TypeRange(), bucket.getSymName(), gradient, hyper,
                                          norm2, symbol.getValue(), whole, begin * columns);
      if (sumsSquares) sums.push_back(op.getSums());
    }
    if (bucket.isPublished()) b.create<state::PublishOp>(loc, bucket.getSymName());
    if (!sumsSquares) return {};
    Value all = sums.size() == 1 ? sums[0] : pack(b, loc, sums);
    return whole ? b.create<state::OwnShardOp>(loc, flat(b, rows(bucket)), all) : all;
  }

  /// What rests in another tier is fetched, updated and brought back slice by slice, so that a bucket need not be on the device at once.
  int64_t rowsOfSlice(state::BucketOp bucket, int64_t rows) const {
    bool elsewhere = llvm::any_of(bucket.getTensors().getAsRange<state::TensorAttr>(), [](state::TensorAttr tensor) {
      return tensor.getRole() != state::Role::gradient && tensor.getTier() != state::Tier::device;
    });
    if (!elsewhere || bucket.isPublished() || rows * row(bucket) <= sharding.sliceElements) return rows;
    return sharding.sliceElements / row(bucket); // rows of 1024, then: whole blocks of a disk
  }

  Value sumSquares(OpBuilder &b, state::BucketOp bucket, Value shard) {
    auto symbol = kernels.sumSquares(rows(bucket), row(bucket));
    auto matrix = RankedTensorType::get({rows(bucket), row(bucket)}, b.getF32Type());
    Value view = b.create<nn::ReshapeOp>(bucket.getLoc(), matrix, shard);
    return b.create<nn::LaunchOp>(bucket.getLoc(), TypeRange(flat(b, rows(bucket))), symbol, ValueRange(view)).getResult(0);
  }

  Value sum(OpBuilder &b, Location loc, ArrayRef<Value> parts) {
    Value all = pack(b, loc, parts);
    int64_t n = cast<ShapedType>(all.getType()).getNumElements();
    auto symbol = kernels.sum(n);
    return b.create<nn::LaunchOp>(loc, TypeRange(flat(b, 1)), symbol, ValueRange(all)).getResult(0);
  }

  Value pack(OpBuilder &b, Location loc, ArrayRef<Value> values) {
    SmallVector<int64_t> offsets;
    int64_t end = 0;
    for (Value v : values) {
      offsets.push_back(end);
      end += cast<ShapedType>(v.getType()).getNumElements();
    }
    return b.create<state::PackOp>(loc, flat(b, end), values, offsets);
  }

  Home homeOf(FlatSymbolRefAttr parameter) const { return homes.lookup(parameter.getAttr()); }
  /// All of a bucket as programs read it.
  RankedTensorType wholeOf(state::BucketOp bucket) const {
    return RankedTensorType::get({int64_t(bucket.getElements())}, readAs.lookup(bucket));
  }
  /// The same whether a compute copy is kept or not: so are the sums over rows.
  int64_t row(state::BucketOp bucket) const {
    return rowElements(bucket.getShard(), alignElements(readAs.lookup(bucket).getIntOrFloatBitWidth() / 8));
  }
  int64_t rows(state::BucketOp bucket) const { return bucket.getShard() / row(bucket); }

  func::FuncOp program;
  const Homes &homes;
  ArrayRef<state::BucketOp> buckets;
  Sharding sharding;
  StateKernels &kernels;
  RowExchange exchange;
  SmallVector<nn::LaunchOp> superseded; // by exchanges, each before what it reads
  StringRef role;
  bool waitsForNorm = false, updates = false;
  size_t microSteps = 1; // that the program holds
  SmallVector<Read> reads;
  llvm::DenseMap<Operation *, Type> readAs; // of each bucket, the type in which its parameters are read
  llvm::DenseMap<Operation *, Operation *> lastRead, firstRead;
  llvm::DenseMap<Value, Value> hostCopies;
  llvm::DenseMap<Operation *, SmallVector<SmallVector<nn::GradientOp>, 1>> gradients; // of each bucket, by micro-step
};

//===----------------------------------------------------------------------===//
// zero-insert-movement
//===----------------------------------------------------------------------===//

struct InsertMovement : impl::InsertMovementPassBase<InsertMovement> {
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
    for (func::FuncOp program : programs)
      if (failed(ProgramBuilder(program, homes, buckets, Sharding(module), kernels).run())) return signalPassFailure();
  }
};

} // namespace
} // namespace zero::shard
