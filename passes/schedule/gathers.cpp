//===- gathers.cpp - plan-elide-gathers and plan-hoist-gathers --------------------------------------===//
#include "passes/schedule/gathers.h"
#include "passes/schedule/Passes.h"
#include <numeric>
#include <set>

#define DEBUG_TYPE "plan-gathers"

using namespace mlir;
using namespace zero::planir;

namespace zero::schedule {
#define GEN_PASS_DEF_ELIDEGATHERSPASS
#define GEN_PASS_DEF_HOISTGATHERSPASS
#include "passes/schedule/Passes.h.inc"

std::vector<Gather> gathersOf(ProgramOp program, const Order &order) {
  llvm::DenseMap<StringAttr, StringRef> buckets; // by state that holds one's parameters
  for (auto state : program->getParentOfType<ModuleOp>().getOps<StateOp>())
    if (state.getBucket() && state.getKind() == BufferKind::parameter) buckets[state.getSymNameAttr()] = *state.getBucket();
  std::vector<Gather> gathers;
  for (int64_t position = 0; position < int64_t(order.size()); ++position) {
    auto step = dyn_cast<CollectiveStep>(*order[position]);
    if (!step || step.getKind() != CollectiveKind::all_gather) continue;
    Value shard = step.getBuffers()[0], whole = step.getBuffers()[1];
    auto buffer = whole.getDefiningOp<BufferOp>();
    auto use = shard.getDefiningOp<UseOp>();
    if (buffer && buffer.getKind() == BufferKind::gathered && use)
      gathers.push_back({step, shard, whole, position, order.lastTouch(whole), int64_t(buffer.getBytes()),
                         buckets.lookup(use.getStateAttr().getAttr()).str()});
  }
  return gathers;
}

namespace {

//===----------------------------------------------------------------------===//
// plan-elide-gathers
//===----------------------------------------------------------------------===//

struct ElideGathers : impl::ElideGathersPassBase<ElideGathers> {
  using ElideGathersPassBase::ElideGathersPassBase;

  /// A gather that could be spared, because its bucket was whole until `from`.
  struct Chance {
    size_t gather, before; // indices
    int64_t from, to, bytes;
    bool free;
  };

  void runOnOperation() override {
    Order order(getOperation());
    std::vector<Gather> gathers = gathersOf(getOperation(), order);
    std::vector<Chance> chances = find(order, gathers);
    llvm::stable_sort(chances, [](const Chance &a, const Chance &b) {
      return std::tuple(!a.free, a.to - a.from, a.gather) < std::tuple(!b.free, b.to - b.from, b.gather);
    });
    std::vector<Chance> kept;                   // those that cost memory
    SmallVector<size_t> brings(gathers.size()); // the gather that now brings what gather i brought
    std::iota(brings.begin(), brings.end(), size_t(0));
    for (const Chance &chance : chances) {
      if (!chance.free) {
        if (mostKept(kept, chance) + chance.bytes > residentBytes) continue;
        kept.push_back(chance);
      }
      merge(gathers, chance, brings);
    }
  }

  static std::vector<Chance> find(const Order &order, ArrayRef<Gather> gathers) {
    std::vector<Chance> chances;
    llvm::DenseMap<Value, size_t> last; // by shard
    for (auto [i, gather] : llvm::enumerate(gathers)) {
      auto found = last.find(gather.shard);
      if (found != last.end()) {
        const Gather &before = gathers[found->second];
        bool unchanged = order.lastConflictBefore(gather.issued, accessesOf(gather.step)) < before.issued;
        if (unchanged) chances.push_back({i, found->second, before.lastUse, gather.issued, gather.bytes, found->second + 1 == i});
      }
      last[gather.shard] = i;
    }
    return chances;
  }

  /// Largest sum of bytes kept at any moment between the chance's two uses.
  static int64_t mostKept(ArrayRef<Chance> kept, const Chance &chance) {
    int64_t most = 0;
    auto at = [&](int64_t position) {
      int64_t sum = 0;
      for (const Chance &other : kept)
        if (other.from <= position && position < other.to) sum += other.bytes;
      most = std::max(most, sum);
    };
    at(chance.from);
    for (const Chance &other : kept)
      if (chance.from < other.from && other.from < chance.to) at(other.from);
    return most;
  }

  void merge(MutableArrayRef<Gather> gathers, const Chance &chance, MutableArrayRef<size_t> brings) {
    size_t into = chance.before;
    while (brings[into] != into) into = brings[into]; // that one was spared too
    brings[chance.gather] = into;
    Gather &spared = gathers[chance.gather];
    decide(getOperation(), spared.bucket, "kept until it is needed again",
           chance.free ? Twine("no other bucket is gathered in between") : Twine(chance.bytes) + " bytes fit into --resident-bytes");
    spared.step.erase();
    auto buffer = spared.whole.getDefiningOp<BufferOp>();
    spared.whole.replaceAllUsesWith(gathers[into].whole);
    buffer.erase();
    ++elided;
  }
};

//===----------------------------------------------------------------------===//
// plan-hoist-gathers
//===----------------------------------------------------------------------===//

struct HoistGathers : impl::HoistGathersPassBase<HoistGathers> {
  using HoistGathersPassBase::HoistGathersPassBase;

  void runOnOperation() override {
    Order order(getOperation());
    std::vector<Gather> gathers = gathersOf(getOperation(), order);
    int64_t alive = 0, floor = -1;                 // bytes of gathers issued and not yet dead; the previous gather's place
    std::set<std::pair<int64_t, size_t>> ends;     // (last use, gather) of those alive
    llvm::DenseMap<Operation *, Operation *> tail; // behind this step, the last gather moved there
    for (auto [i, gather] : llvm::enumerate(gathers)) {
      floor = std::max(floor, order.lastConflictBefore(gather.issued, shardOnly(gather)));
      auto fits = [&] { return gatherBytes ? alive + gather.bytes <= gatherBytes : int64_t(ends.size()) <= ahead; };
      // The earliest moment: behind the last uses of as many buckets as must be dead for this one to fit.
      while (!ends.empty() && (ends.begin()->first <= floor || (!fits() && ends.begin()->first < gather.issued))) {
        floor = std::max(floor, ends.begin()->first);
        alive -= gathers[ends.begin()->second].bytes;
        ends.erase(ends.begin());
      }
      if (floor + 1 < gather.issued)
        move(order, gather, floor, tail);
      else
        floor = gather.issued;
      alive += gather.bytes;
      ends.insert({gather.lastUse, i});
    }
  }

  /// What the gather reads; nobody has touched its own buffer before it.
  static SmallVector<Access, 6> shardOnly(const Gather &gather) {
    auto accesses = accessesOf(gather.step);
    accesses.truncate(1);
    return accesses;
  }

  void move(const Order &order, Gather &gather, int64_t behind, llvm::DenseMap<Operation *, Operation *> &tail) {
    Operation *anchor = behind < 0 ? nullptr : order[behind].getOperation();
    Operation *&last = tail[anchor];
    if (last)
      gather.step->moveAfter(last);
    else if (anchor)
      gather.step->moveAfter(anchor);
    else
      gather.step->moveBefore(order[0]);
    last = gather.step;
    ++hoisted;
    std::string from = behind < 0 ? "the start" : "step " + std::to_string(behind),
                node = behind < 0 ? "" : nameOf(order[behind]->getLoc());
    if (!node.empty()) from += " (" + node + ")";
    std::string limit = gatherBytes ? "there is room in --gather-bytes"
                                    : "at most " + counted(uint64_t(ahead), "other bucket") + (ahead == 1 ? " is whole" : " are whole");
    decide(getOperation(), gather.bucket, "gathered " + counted(uint64_t(gather.issued - behind - 1), "step") + " early",
           limit + " from " + from + " on");
  }
};

} // namespace
} // namespace zero::schedule
