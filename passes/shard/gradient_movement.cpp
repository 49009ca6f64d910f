//===- gradient_movement.cpp - gradients to the optimizer, loss and norm to the caller --------------------===//
#include "passes/shard/gradient_movement.h"

using namespace mlir;

namespace zero::shard {
namespace {

/// Each rank updates all of it.
bool updatesWhole(state::BucketOp bucket) {
  return bucket.getElements() != bucket.getShard() && !bucket.isPublished() && !bucket.isSharded(state::Role::master);
}

/// The host's processors add to the sum of gradients, where it rests. The last micro-step's is added on the device, which sums its squares.
bool addsOnHost(state::BucketOp bucket) {
  state::TensorAttr sum = bucket.tensorOf(state::Role::gradient);
  return bucket.getUpdatedOnHost() && sum && sum.getTier() == state::Tier::host;
}

RankedTensorType flat(OpBuilder &b, int64_t elements, Type type = nullptr) {
  return RankedTensorType::get({elements}, type ? type : b.getF32Type());
}
} // namespace

void GradientMovement::finish() {
  auto terminator = cast<func::ReturnOp>(uses.program.getBody().front().getTerminator());
  OpBuilder end(terminator);
  Location loc = NameLoc::get(end.getStringAttr("results")); // no node of the model: what the step reports
  Pending pending;
  SmallVector<Value> sums;
  late = lateUpdates();
  if (uses.role != "eval")
    for (state::BucketOp bucket : uses.buckets)
      if (bucket.getTrainable()) consumeGradients(bucket, pending, sums);
  sums.append(tied.finish());

  SmallVector<Value> scalars(terminator.getOperands());
  if (uses.updates) scalars.push_back(sum(end, loc, sums));
  Value packed = pack(end, loc, scalars);
  if (uses.sharding.world > 1) packed = end.create<state::AllReduceOp>(loc, packed.getType(), packed);
  int64_t all = cast<ShapedType>(packed.getType()).getNumElements(),
          losses = all - uses.updates; // the terms of each micro-step's, and the norm
  SmallVector<Value> results{end.create<state::ViewOp>(loc, flat(end, losses), packed, 0)};
  if (uses.updates) results.push_back(end.create<state::ViewOp>(loc, flat(end, 1), packed, losses));
  tied.writeMoments(end);
  sortByUse(pending); // forward needs them in this order
  for (auto [bucket, shard] : pending) update(end, bucket, shard, uses.waitsForNorm ? results[1] : Value(), /*sumsApart=*/true);

  terminator->setOperands(results);
  uses.program.setType(end.getFunctionType(uses.program.getArgumentTypes(), ValueRange(results).getTypes()));
  for (auto gradient : llvm::make_early_inc_range(uses.program.getOps<nn::GradientOp>())) gradient.erase();
  for (nn::LaunchOp launch : superseded) launch.erase();
}

void GradientMovement::sortByUse(Pending &pending) const {
  auto before = [&](const auto &a, const auto &b) {
    Operation *first = uses.firstRead.lookup(a.first), *second = uses.firstRead.lookup(b.first);
    return first && (!second || first->isBeforeInBlock(second));
  };
  llvm::stable_sort(pending, before);
}

llvm::DenseSet<Operation *> GradientMovement::lateUpdates() const {
  llvm::DenseSet<Operation *> found;
  if (uses.role != "step" || uses.waitsForNorm) return found; // else another program comes after it, or all wait
  Pending buckets;
  for (state::BucketOp bucket : uses.buckets)
    if (bucket.getTrainable() && isElsewhere(bucket) && !bucket.isPublished() && !bucket.getUpdatedOnHost() && !tied.tileIn(bucket))
      buckets.push_back({bucket, {}});
  if (buckets.empty()) return found;
  sortByUse(buckets);
  llvm::DenseMap<Operation *, int64_t> positions;
  for (Operation &op : uses.program.getBody().front()) positions.try_emplace(&op, int64_t(positions.size()));
  int64_t begin = INT64_MAX; // of forward: the first read of any bucket
  for (auto [bucket, reader] : uses.firstRead) begin = std::min(begin, positions.lookup(reader));
  auto readAt = [&](state::BucketOp bucket) { return positions.lookup(uses.firstRead.lookup(bucket)) - begin; };
  int64_t forward = std::max<int64_t>(readAt(buckets.back().first), 1), taken = 0;
  for (auto [bucket, none] : buckets) {
    auto bytes = int64_t(bucket.getShard() * sizeof(float));
    if (taken + bytes > lateBytes * readAt(bucket) / forward) continue;
    taken += bytes;
    found.insert(bucket);
  }
  return found;
}

void GradientMovement::consumeGradients(state::BucketOp bucket, Pending &pending, SmallVectorImpl<Value> &sums) {
  OpBuilder b(uses.program.getContext());
  Operation *anchor = nullptr; // the last gradient
  Value shard;                 // of the sum so far
  if (const TableTile *tile = tied.tileIn(bucket)) {
    anchor = tile->rest.getDefiningOp();
    b.setInsertionPointAfter(anchor);
    shard = reduce(b, bucket, {tile->rest}, {0});
    superseded.push_back(tile->addsRows);
  } else {
    for (auto &found : uses.gradients[bucket]) {
      anchor = nullptr;
      for (nn::GradientOp gradient : found) anchor = later(anchor, gradient);
      b.setInsertionPointAfter(anchor);
      shard = accumulate(b, bucket, sumOverRanks(b, bucket, found), shard);
    }
  }
  if (!uses.updates) return;
  bool host = bucket.getUpdatedOnHost(), waits = uses.waitsForNorm || late.contains(bucket);
  if (waits || host) sums.push_back(sumSquares(b, bucket, shard)); // while it is at hand
  if (host) shard = b.create<state::ToHostOp>(bucket.getLoc(), wholeIfUpdated(b, bucket, shard));
  if (waits) {
    pending.push_back({bucket, shard});
    return;
  }
  // The parameters must have been read for the last time before they change.
  if (Operation *read = uses.lastRead.lookup(bucket); read && anchor->isBeforeInBlock(read)) b.setInsertionPointAfter(read);
  Value own = update(b, bucket, shard, {}, /*sumsApart=*/host);
  if (!host) sums.push_back(own);
}

Value GradientMovement::wholeIfUpdated(OpBuilder &b, state::BucketOp bucket, Value shard) {
  if (!updatesWhole(bucket)) return shard;
  return b.create<state::AllGatherOp>(bucket.getLoc(), flat(b, bucket.getElements()), shard);
}

Value GradientMovement::onHost(Value value) {
  Value &there = hostCopies[value];
  if (!there) {
    OpBuilder b(uses.program.getContext());
    b.setInsertionPointAfterValue(value);
    there = b.create<state::ToHostOp>(NameLoc::get(b.getStringAttr("updates on the host")), value);
  }
  return there;
}

Value GradientMovement::sumOverRanks(OpBuilder &b, state::BucketOp bucket, SmallVectorImpl<nn::GradientOp> &found) {
  SmallVector<nn::LaunchOp> rows; // the last first
  Value rest = found[0].getValue();
  if (uses.sharding.world > 1 && found.size() == 1 && RowExchange::splitsRows(bucket, rest.getType()))
    for (auto launch = rest.getDefiningOp<nn::LaunchOp>(); launch && launch->hasAttr(nn::kAddsRows);
         launch = rest ? rest.getDefiningOp<nn::LaunchOp>() : nn::LaunchOp()) {
      rows.push_back(launch);
      rest = nn::addedRows(launch).onto;
    }
  if (rows.empty()) return reduce(b, bucket, found);
  Value shard;
  if (rest) {
    OpBuilder early(uses.program.getContext());
    early.setInsertionPointAfterValue(rest);
    shard = reduce(early, bucket, {rest}, {0});
  } else {
    shard = b.create<state::PackOp>(bucket.getLoc(), flat(b, bucket.getShard()), ValueRange(), ArrayRef<int64_t>());
  }
  for (nn::LaunchOp launch : llvm::reverse(rows)) shard = exchange.addRows(b, launch, bucket, shard);
  superseded.append(rows);
  return shard;
}

Value GradientMovement::reduce(OpBuilder &b, state::BucketOp bucket, SmallVectorImpl<nn::GradientOp> &found) {
  llvm::sort(found, [&](nn::GradientOp a, nn::GradientOp c) {
    return uses.homeOf(a.getParameterAttr()).offset < uses.homeOf(c.getParameterAttr()).offset;
  });
  SmallVector<Value> values;
  SmallVector<int64_t> offsets;
  for (nn::GradientOp gradient : found) {
    values.push_back(gradient.getValue());
    offsets.push_back(uses.homeOf(gradient.getParameterAttr()).offset);
  }
  return reduce(b, bucket, values, offsets);
}

Value GradientMovement::reduce(OpBuilder &b, state::BucketOp bucket, ArrayRef<Value> values, ArrayRef<int64_t> offsets) {
  Type travels = cast<ShapedType>(values[0].getType()).getElementType();
  Value packed = b.create<state::PackOp>(bucket.getLoc(), flat(b, bucket.getElements(), travels), values, offsets);
  if (uses.sharding.world == 1) return packed;
  return b.create<state::ReduceScatterOp>(bucket.getLoc(), flat(b, bucket.getShard()), packed);
}

Value GradientMovement::accumulate(OpBuilder &b, state::BucketOp bucket, Value shard, Value sum) {
  bool starts = uses.microSteps > 1 && !sum;
  if (uses.sharding.accumulate == 1 || starts) return shard;
  bool first = uses.role == "first";
  FlatSymbolRefAttr add;
  if (!first) add = kernels.accumulate(uses.rows(bucket), uses.row(bucket));
  if (uses.role == "middle" && addsOnHost(bucket)) shard = b.create<state::ToHostOp>(bucket.getLoc(), shard);
  return b.create<state::AccumulateOp>(bucket.getLoc(), shard.getType(), bucket.getSymName(), shard, sum, add, first);
}

Value GradientMovement::update(OpBuilder &b, state::BucketOp bucket, Value shard, Value norm2, bool sumsApart) {
  Location loc = bucket.getLoc();
  bool whole = updatesWhole(bucket), clip = bool(norm2), host = bucket.getUpdatedOnHost();
  Value hyper = uses.program.getArguments().back();
  if (!host) shard = wholeIfUpdated(b, bucket, shard);
  if (host) hyper = onHost(hyper);
  if (host && clip) norm2 = onHost(norm2);
  int64_t count = uses.rows(bucket) * (whole ? uses.sharding.world : 1), columns = uses.row(bucket), slice = rowsOfSlice(bucket, count);
  SmallVector<Value> sums;
  for (int64_t begin = 0; begin < count; begin += slice) {
    int64_t here = std::min(slice, count - begin);
    Value gradient = shard;
    if (here < count) gradient = b.create<state::ViewOp>(loc, flat(b, here * columns), shard, begin * columns);
    auto symbol =
        kernels.update(uses.sharding.optimizer, here, columns, {clip, clip && uses.sharding.scalesLoss, computeType(bucket), sumsApart});
    auto op = b.create<state::UpdateOp>(loc, sumsApart ? TypeRange() : TypeRange(flat(b, here)), bucket.getSymName(), gradient, hyper,
                                        norm2, Value(), Value(), symbol.getValue(), whole, begin * columns);
    tied.setApart(op, bucket);
    if (!sumsApart) sums.push_back(op.getSums());
  }
  if (bucket.isPublished()) b.create<state::PublishOp>(loc, bucket.getSymName());
  if (sumsApart) return {};
  Value all = sums.size() == 1 ? sums[0] : pack(b, loc, sums);
  return whole ? b.create<state::OwnShardOp>(loc, flat(b, uses.rows(bucket)), all) : all;
}

int64_t GradientMovement::rowsOfSlice(state::BucketOp bucket, int64_t rows) const {
  // What ranks join after their updates is whole where they are made.
  bool joins = bucket.isPublished() && (bucket.getUpdatedOnHost() || !bucket.isResident(bucket.readRole()));
  if (!isElsewhere(bucket) || joins || rows * uses.row(bucket) <= uses.sharding.sliceElements) return rows;
  return uses.sharding.sliceElements / uses.row(bucket); // rows of 1024, then: whole blocks of a disk
}

Value GradientMovement::sumSquares(OpBuilder &b, state::BucketOp bucket, Value shard) {
  auto symbol = kernels.sumSquares(uses.rows(bucket), uses.row(bucket));
  auto matrix = RankedTensorType::get({uses.rows(bucket), uses.row(bucket)}, b.getF32Type());
  Value view = b.create<nn::ReshapeOp>(bucket.getLoc(), matrix, shard);
  return b.create<nn::LaunchOp>(bucket.getLoc(), TypeRange(flat(b, uses.rows(bucket))), symbol, ValueRange(view)).getResult(0);
}

Value GradientMovement::sum(OpBuilder &b, Location loc, ArrayRef<Value> parts) {
  Value all = pack(b, loc, parts);
  int64_t n = cast<ShapedType>(all.getType()).getNumElements();
  auto symbol = kernels.sum(n);
  return b.create<nn::LaunchOp>(loc, TypeRange(flat(b, 1)), symbol, ValueRange(all)).getResult(0);
}

Value GradientMovement::pack(OpBuilder &b, Location loc, ArrayRef<Value> values) {
  SmallVector<int64_t> offsets;
  int64_t end = 0;
  for (Value v : values) {
    offsets.push_back(end);
    end += cast<ShapedType>(v.getType()).getNumElements();
  }
  return b.create<state::PackOp>(loc, flat(b, end), values, offsets);
}

} // namespace zero::shard
