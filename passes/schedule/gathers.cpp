//===- gathers.cpp - plan-elide-gathers, plan-hoist-gathers and plan-hoist-fetches ------------------===//
#include "passes/schedule/Passes.h"
#include "passes/schedule/arrivals.h"
#include "passes/schedule/load.h"
#include <numeric>

#define DEBUG_TYPE "plan-gathers"

using namespace mlir;
using namespace zero::planir;

namespace zero::schedule {
#define GEN_PASS_DEF_ELIDEGATHERSPASS
#define GEN_PASS_DEF_HOISTGATHERSPASS
#define GEN_PASS_DEF_HOISTFETCHESPASS
#include "passes/schedule/Passes.h.inc"

namespace {

//===----------------------------------------------------------------------===//
// plan-elide-gathers
//===----------------------------------------------------------------------===//

struct ElideGathers : impl::ElideGathersPassBase<ElideGathers> {
  using ElideGathersPassBase::ElideGathersPassBase;

  /// A gather that could be spared, because its bucket was whole until `from`; spared, it is whole in the steps [from, to).
  struct Chance {
    size_t gather, before; // indices
    int64_t from, to, bytes;
    bool free;
  };

  void runOnOperation() override {
    const Order &order = getAnalysis<Order>();
    std::vector<Arrival> gathers = gathersOf(getOperation(), order);
    std::vector<Chance> chances = find(order, gathers);
    llvm::stable_sort(chances, [](const Chance &a, const Chance &b) {
      return std::tuple(!a.free, a.to - a.from, a.gather) < std::tuple(!b.free, b.to - b.from, b.gather);
    });
    Load kept{int64_t(order.size())}; // by those that cost memory
    if (chances.empty()) markAllAnalysesPreserved();
    SmallVector<size_t> brings(gathers.size()); // the gather that now brings what gather i brought
    std::iota(brings.begin(), brings.end(), size_t(0));
    for (const Chance &chance : chances) {
      if (!chance.free) {
        if (kept.most(chance.from, chance.to) + chance.bytes > residentBytes) continue;
        kept.add(chance.from, chance.to, chance.bytes);
      }
      merge(gathers, chance, brings);
    }
  }

  static std::vector<Chance> find(const Order &order, ArrayRef<Arrival> gathers) {
    std::vector<Chance> chances;
    llvm::DenseMap<Value, size_t> last; // by source
    for (auto [i, gather] : llvm::enumerate(gathers)) {
      auto found = last.find(gather.sources[0]);
      if (found != last.end()) {
        const Arrival &before = gathers[found->second];
        bool unchanged = order.lastConflictBefore(gather.issued, readBy(gather)) < before.issued;
        if (unchanged) chances.push_back({i, found->second, before.lastUse, gather.issued, gather.bytes, found->second + 1 == i});
      }
      last[gather.sources[0]] = i;
    }
    return chances;
  }

  void merge(MutableArrayRef<Arrival> gathers, const Chance &chance, MutableArrayRef<size_t> brings) {
    size_t into = chance.before;
    while (brings[into] != into) into = brings[into]; // that one was spared too
    brings[chance.gather] = into;
    Arrival &spared = gathers[chance.gather];
    decide(getOperation(), spared.bucket, "kept until it is needed again",
           chance.free ? Twine("no other bucket is gathered in between") : Twine(chance.bytes) + " bytes fit into --resident-bytes");
    for (StepOp step : llvm::reverse(spared.steps)) step.erase();
    for (auto [buffer, kept] : llvm::zip(spared.buffers, gathers[into].buffers)) {
      buffer.replaceAllUsesWith(kept);
      buffer.getDefiningOp()->erase();
    }
    ++elided;
  }
};

//===----------------------------------------------------------------------===//
// plan-hoist-gathers
//===----------------------------------------------------------------------===//

struct HoistGathers : impl::HoistGathersPassBase<HoistGathers> {
  using HoistGathersPassBase::HoistGathersPassBase;

  void runOnOperation() override {
    const Order &order = getAnalysis<Order>();
    std::vector<Arrival> gathers = gathersOf(getOperation(), order);
    if (gathers.empty()) return markAllAnalysesPreserved();
    if (earlyBytes > 0) gatherFirst(order, gathers);
    hoisted += hoist(order, gathers, {ahead, gatherBytes, 0}, [&](const Arrival &gather, int64_t steps, StringRef from) {
      std::string limit = gatherBytes ? "there is room in --gather-bytes"
                                      : "at most " + counted(uint64_t(ahead), "other bucket") + (ahead == 1 ? " is whole" : " are whole");
      decide(getOperation(), gather.bucket, "gathered " + counted(uint64_t(steps), "step") + " early", limit + " from " + from + " on");
    });
  }

private:
  /// Moves to the front, in the order of their updates, and takes from `gathers` those whose updates come first.
  void gatherFirst(const Order &order, std::vector<Arrival> &gathers) {
    SmallVector<std::pair<int64_t, size_t>> updated; // position of the first write to what a gather reads, which comes after it
    for (auto [i, gather] : llvm::enumerate(gathers)) {
      SmallVector<Access, 6> read = readBy(gather);
      int64_t update = order.firstConflictAfter(gather.issued, read);
      bool isFirstUsed = i == 0, staysAsItWas = order.lastConflictBefore(gather.issued, read) < 0;
      if (!isFirstUsed && staysAsItWas && update < int64_t(order.size())) updated.push_back({update, i});
    }
    llvm::sort(updated);
    int64_t left = earlyBytes;
    llvm::DenseSet<Value> taken; // of several uses before the update the first: a second one in front would be all of it once more
    for (auto [update, i] : updated) {
      if (!taken.insert(gathers[i].sources[0]).second) continue;
      left -= gathers[i].bytes;
      if (left < 0) break;
      for (StepOp step : gathers[i].steps) step->moveBefore(order[0]);
      gathers[i].steps.clear();
      ++hoisted;
      decide(getOperation(), gathers[i].bucket, "gathered in front of all others",
             "its update is among the first: it can come beside the rest of the step before, for which --early-bytes has room");
    }
    llvm::erase_if(gathers, [](const Arrival &gather) { return gather.steps.empty(); });
  }
};

//===----------------------------------------------------------------------===//
// plan-hoist-fetches
//===----------------------------------------------------------------------===//

struct HoistFetches : impl::HoistFetchesPassBase<HoistFetches> {
  using HoistFetchesPassBase::HoistFetchesPassBase;

  void runOnOperation() override {
    const Order &order = getAnalysis<Order>();
    bool updatesOnHost = !fetchesOf(getOperation(), order, state::Tier::host).empty();
    bringTo(order, state::Tier::device, "on the device");
    if (updatesOnHost) bringTo(Order(getOperation()), state::Tier::host, "in the host's memory");
  }

  void bringTo(const Order &order, state::Tier memory, StringRef place) {
    auto fetches = fetchesOf(getOperation(), order, memory);
    int64_t all = 0;
    for (const Arrival &fetch : fetches) all += fetch.bytes;
    hoisted += hoist(order, fetches, {ahead, 0, reach, std::max<int64_t>(1, all / part)},
                     [&](const Arrival &fetch, int64_t steps, StringRef from) {
                       decide(getOperation(), fetch.bucket, "fetched " + counted(uint64_t(steps), "step") + " early",
                              "what at most " + counted(uint64_t(ahead), "other step") + (ahead == 1 ? " needs" : " need") + " is " +
                                  place + " from " + from + " on");
                     });
  }
};

} // namespace
} // namespace zero::schedule
