//===- offload_activations.cpp - plan-offload-activations -------------------------------------------===//
#include "passes/schedule/Passes.h"
#include "passes/schedule/order.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallPtrSet.h"

#define DEBUG_TYPE "plan-offload-activations"

using namespace mlir;
using namespace zero::planir;

namespace zero::schedule {
#define GEN_PASS_DEF_OFFLOADACTIVATIONSPASS
#include "passes/schedule/Passes.h.inc"

namespace {

constexpr int64_t kLeastOfPadding = 16; // times what fills up the last block of a disk
constexpr int64_t kFull = 90;           // percent of the most bytes that are live in a step
constexpr int64_t kSmall = 256;         // a smaller part of these makes no room

/// Bytes that so many take there.
int64_t roomOn(state::Tier home, int64_t bytes) {
  return home == state::Tier::disk ? int64_t(llvm::alignTo(uint64_t(bytes), uint64_t(alignmentOf(home)))) : bytes;
}

struct OffloadActivations : impl::OffloadActivationsPassBase<OffloadActivations> {
  using OffloadActivationsPassBase::OffloadActivationsPassBase;

  /// A buffer that nobody touches between two steps.
  struct Gap {
    BufferOp buffer;
    int64_t from, to;          // positions: its last touch before, its first after
    int64_t length;            // steps of lane compute in between
    SmallVector<StepOp> fills; // of its padding, which come before it leaves
  };

  /// Where the content of a buffer lies at some step: what steps use, and a copy elsewhere if that is still the same.
  struct Copies {
    Value here, away;
  };

  /// What has been done: steps of lane compute, multiply-adds of products, and steps in which memory is full.
  struct Done {
    int64_t steps = 0, work = 0, full = 0;
  };

  void runOnOperation() override {
    auto home = state::symbolizeTier(tier);
    if (!home || home == state::Tier::device) {
      getOperation().emitError() << "activations wait on host or disk, not on " << tier;
      return signalPassFailure();
    }
    const Order &order = getAnalysis<Order>();
    std::vector<int64_t> live = liveBytes(order);
    most = *std::max_element(live.begin(), live.end());
    before.assign(1, {});
    for (size_t position = 0; position < order.size(); ++position) {
      Done done = before.back();
      done.steps += order[position].getLane() == Lane::compute;
      done.full += live[position] >= most / 100 * kFull;
      if (auto product = dyn_cast<MatMulStep>(*order[position])) done.work += multiplyAddsOf(product);
      before.push_back(done);
    }
    SmallVector<Gap> gaps;
    for (auto buffer : getOperation().getBody().front().getOps<BufferOp>()) llvm::append_range(gaps, gapsOf(order, buffer, *home));
    if (mostBytes >= 0) keepLongest(gaps);
    if (gaps.empty()) return markAllAnalysesPreserved();
    size_t buffers = 0;
    Copies copies;
    for (auto [i, gap] : llvm::enumerate(gaps)) {
      bool first = i == 0 || gaps[i - 1].buffer != gap.buffer;
      buffers += first;
      if (first)
        copies = {gap.buffer.getResult(), {}};
      else if (writesBetween(order, gap.buffer, gaps[i - 1].to, gap.from))
        copies.away = {};
      move(order, gap, copies, *home);
    }
    offloaded += buffers;
    decide(getOperation(), "activations", counted(buffers, "buffer") + " away until backward",
           "nothing touches them for " + counted(uint64_t(distance), "step") + " of lane compute or more" +
               (work > 0 ? ", or for as long as they take to leave and come back" : ""));
  }

  /// The buffers that wait longest, as many as `most-bytes` allows, in the order of the program.
  void keepLongest(SmallVectorImpl<Gap> &gaps) const {
    llvm::MapVector<Operation *, int64_t> longest;
    for (const Gap &gap : gaps) longest[gap.buffer] = std::max(longest[gap.buffer], gap.length);
    auto order = longest.takeVector();
    llvm::stable_sort(order, [](const auto &a, const auto &b) { return a.second > b.second; });
    int64_t room = mostBytes;
    llvm::SmallPtrSet<Operation *, 16> leave;
    for (const auto &[buffer, length] : order)
      if (auto bytes = int64_t(cast<BufferOp>(buffer).getBytes()); bytes <= room) {
        leave.insert(buffer);
        room -= bytes;
      }
    llvm::erase_if(gaps, [&](Gap &gap) { return !leave.contains(gap.buffer); });
  }

  /// Those that are worth the way, in order, of a buffer that can be copied.
  SmallVector<Gap> gapsOf(const Order &order, BufferOp buffer, state::Tier home) const {
    bool isSum = buffer.getKind() == BufferKind::fetched && buffer.getTensor() && buffer.getTensor()->getRole() == state::Role::gradient;
    bool waits = isSum || buffer.getKind() == BufferKind::activation || buffer.getKind() == BufferKind::gradient;
    int64_t bytes = int64_t(buffer.getBytes());
    bool leaves = buffer.getTier() == state::Tier::device || (buffer.getTier() == state::Tier::host && home == state::Tier::disk);
    int64_t padding = roomOn(home, bytes) - bytes;
    if (!waits || !leaves || bytes < minBytes || padding * kLeastOfPadding > bytes) return {};
    if (padding && buffer.getTier() != state::Tier::device) return {}; // lane compute fills it
    if (llvm::any_of(buffer.getResult().getUsers(), [](Operation *user) { return !isa<StepOp>(user); })) return {};
    SmallVector<Order::Touch> touches(order.touches(buffer.getResult()));
    SmallVector<Gap> gaps;
    for (size_t i = 1; i < touches.size(); ++i) {
      int64_t from = touches[i - 1].position, to = touches[i].position;
      if (from >= to || !isLong(from, to, bytes) || !reads(order[to], buffer.getResult())) continue;
      Gap gap{buffer, from, to, before[to].steps - before[from + 1].steps, {}};
      if (gaps.empty()) { // what has left once is whole
        gap.fills = fillsAfter(order, touches, from);
        if (!isWhole(order, touches, gap, bytes)) continue;
        llvm::erase_if(touches, [&](const Order::Touch &touch) { return llvm::is_contained(gap.fills, order[touch.position]); });
      }
      gaps.push_back(std::move(gap));
    }
    return gaps;
  }

  /// Whether so many bytes may be copied away and back between two steps: in any case if those are many, else where memory is full in
  /// between.
  bool isLong(int64_t from, int64_t to, int64_t bytes) const {
    const Done &begin = before[from + 1], &end = before[to];
    if (end.steps - begin.steps >= distance) return true;
    return work > 0 && (end.work - begin.work) / work >= bytes && bytes >= most / kSmall && end.full > begin.full;
  }

  /// Fills after `from` of bytes that nobody has touched before.
  static SmallVector<StepOp> fillsAfter(const Order &order, ArrayRef<Order::Touch> touches, int64_t from) {
    SmallVector<StepOp> fills;
    for (auto [i, touch] : llvm::enumerate(touches)) {
      auto overlaps = [&](const Order::Touch &other) { return other.begin < touch.end && touch.begin < other.end; };
      if (touch.position > from && isa<FillStep>(order[touch.position]) && llvm::none_of(touches.take_front(i), overlaps))
        fills.push_back(order[touch.position]);
    }
    return fills;
  }

  static bool reads(StepOp step, Value buffer) {
    return llvm::any_of(accessesOf(step), [&](const Access &access) { return access.ref.buffer == buffer && !access.writes; });
  }

  /// Every byte has been written when it leaves.
  static bool isWhole(const Order &order, ArrayRef<Order::Touch> touches, const Gap &gap, int64_t bytes) {
    SmallVector<std::pair<int64_t, int64_t>> written;
    for (const Order::Touch &touch : touches)
      if (touch.writes && (touch.position <= gap.from || llvm::is_contained(gap.fills, order[touch.position])))
        written.push_back({touch.begin, touch.end});
    llvm::sort(written);
    int64_t end = 0;
    for (auto [begin, stop] : written)
      if (begin <= end) end = std::max(end, stop);
    return end >= bytes;
  }

  static bool writesBetween(const Order &order, BufferOp buffer, int64_t from, int64_t to) {
    return llvm::any_of(order.touches(buffer.getResult()),
                        [&](const Order::Touch &touch) { return touch.writes && touch.position >= from && touch.position <= to; });
  }

  /// It leaves after the step at `from`, unless its copy elsewhere is good, and comes back to bytes of its own before the step at `to`.
  void move(const Order &order, const Gap &gap, Copies &copies, state::Tier home) {
    auto old = copies.here.getDefiningOp<BufferOp>();
    OpBuilder b(old);
    bool disk = home == state::Tier::disk;
    auto used = int64_t(old.getBytes()), bytes = roomOn(home, used);
    old.setBytes(bytes);
    b.setInsertionPointAfter(old);
    auto like = [&](StringRef suffix, state::Tier where) {
      auto op = cast<BufferOp>(b.clone(*old));
      op.setName((old.getName() + suffix).str());
      op.setTier(where);
      return op.getResult();
    };
    bool leaves = !copies.away;
    if (leaves) copies.away = like(".away", home);
    Value back = copies.here = like(".back", old.getTier());
    for (OpOperand &use : llvm::make_early_inc_range(old.getResult().getUses()))
      if (order.positionOf(use.getOwner()) >= gap.to && !llvm::is_contained(gap.fills, use.getOwner())) use.set(back);
    auto named = [&](StringRef what) { return NameLoc::get(b.getStringAttr(old.getName() + "." + what), old.getLoc()); };
    auto copy = [&](Value from, Value to, Lane lane, StringRef what) {
      Refs refs({{from, 0, 0, bytes}}, {{to, 0, 0, bytes}});
      Location loc = named(what);
      b.create<CopyStep>(loc, refs.buffers, refs.offsets, refs.strides, refs.bytes, refs.inputs, lane, DenseI64ArrayAttr());
    };
    b.setInsertionPointAfter(order[gap.from]);
    for (StepOp fill : gap.fills) {
      fill->moveBefore(b.getInsertionBlock(), b.getInsertionPoint());
      b.setInsertionPointAfter(fill);
    }
    if (used < bytes) { // up to a whole block of the disk
      Refs rest({}, {{old.getResult(), used, 0, bytes - used}});
      b.create<FillStep>(named("padding"), rest.buffers, rest.offsets, rest.strides, rest.bytes, rest.inputs, Lane::compute,
                         DenseI64ArrayAttr(), 0);
    }
    if (leaves) copy(old.getResult(), copies.away, disk ? Lane::disk_write : Lane::to_host, "evict");
    b.setInsertionPoint(order[gap.to]);
    copy(copies.away, back, disk ? Lane::disk_read : Lane::to_device, "fetch");
  }

  std::vector<Done> before; // each position
  int64_t most = 0;         // bytes that are live in a step
};

} // namespace
} // namespace zero::schedule
