//===- arrivals.cpp - finds what comes to a memory for a while --------------------------------------===//
#include "passes/schedule/arrivals.h"
#include <set>

using namespace mlir;
using namespace zero::planir;

namespace zero::schedule {
namespace {

/// Persistent buffers of buckets that lie in another tier, by name: what copies fetch from.
struct Homes {
  llvm::DenseMap<StringAttr, StateOp> states;

  explicit Homes(ProgramOp program) {
    for (auto state : program->getParentOfType<ModuleOp>().getOps<StateOp>())
      if (state.getBucket()) states[state.getSymNameAttr()] = state;
  }
  StateOp of(Value buffer) const {
    auto use = buffer.getDefiningOp<UseOp>();
    return use ? states.lookup(use.getStateAttr().getAttr()) : nullptr;
  }
};

bool isKind(Value buffer, BufferKind kind) {
  auto op = buffer.getDefiningOp<BufferOp>();
  return op && op.getKind() == kind;
}

/// Brings something of a bucket, or what waits away from the device, into a buffer of the memory: whose it is, or "".
StringRef broughtBy(StepOp step, const Homes &homes, state::Tier memory = state::Tier::device) {
  bool brings = isa<CopyStep>(*step);
  if (auto collective = dyn_cast<CollectiveStep>(*step)) brings = collective.getKind() == CollectiveKind::all_gather;
  auto to = brings ? step.getBuffers()[1].getDefiningOp<BufferOp>() : nullptr;
  if (!to || to.getTier() != memory) return "";
  if (StateOp home = homes.of(step.getBuffers()[0])) return *home.getBucket();
  auto from = step.getBuffers()[0].getDefiningOp<BufferOp>();
  return from && from.getTier() != state::Tier::device ? to.getName() : "";
}

/// The next step, if that makes parameters that are whole of what this one brings; null if it does not.
Operation *gatheredByNext(const Order &order, int64_t position) {
  if (position + 1 >= int64_t(order.size())) return nullptr;
  StepOp next = order[position + 1];
  bool gathers = next.getBuffers().size() == 2 && isKind(next.getBuffers()[1], BufferKind::gathered) &&
                 next.getBuffers()[0] == order[position].getBuffers()[1];
  return gathers ? next.getOperation() : nullptr;
}

/// The step is the copy into a buffer that the next one gathers.
bool isFetchOfGather(const Order &order, int64_t position) {
  auto next = dyn_cast_or_null<CollectiveStep>(gatheredByNext(order, position));
  return next && next.getKind() == CollectiveKind::all_gather;
}

/// The step is the copy of a master that the next one rounds where it is used. Only the copy is early: to round waits for it on lane
/// compute.
bool isFetchToRound(const Order &order, int64_t position) { return isa_and_nonnull<LaunchStep>(gatheredByNext(order, position)); }

/// The step brings parameters that are whole while they are used.
bool isOfGather(const Order &order, int64_t position) {
  return isKind(order[position].getBuffers()[1], BufferKind::gathered) || isFetchOfGather(order, position) ||
         isFetchToRound(order, position);
}

void add(Arrival &arrival, const Order &order, int64_t position) {
  StepOp step = order[position];
  Value filled = step.getBuffers()[1];
  if (arrival.steps.empty()) arrival.issued = position, arrival.lastUse = position, arrival.bytes = 0;
  arrival.steps.push_back(step);
  if (step.getBuffers()[0].getDefiningOp<UseOp>()) arrival.sources.push_back(step.getBuffers()[0]);
  arrival.buffers.push_back(filled);
  arrival.lastUse = std::max(arrival.lastUse, order.lastTouch(filled));
  arrival.bytes += int64_t(filled.getDefiningOp<BufferOp>().getBytes());
}

} // namespace

std::vector<Arrival> gathersOf(ProgramOp program, const Order &order) {
  Homes homes(program);
  std::vector<Arrival> gathers;
  for (int64_t position = 0; position < int64_t(order.size()); ++position) {
    StringRef whose = broughtBy(order[position], homes);
    if (whose.empty()) continue;
    if (!isOfGather(order, position)) continue;
    bool fetch = isFetchOfGather(order, position);
    Arrival &gather = gathers.emplace_back();
    gather.bucket = whose.str();
    add(gather, order, position);
    if (fetch) add(gather, order, ++position);
    gather.lastUse = order.lastTouch(gather.buffers.back()); // a shard may stay for its update
  }
  return gathers;
}

std::vector<Arrival> fetchesOf(ProgramOp program, const Order &order, state::Tier memory) {
  Homes homes(program);
  std::vector<Arrival> fetches;
  int64_t end = -1; // after the step that needs what the last arrival brings
  for (int64_t position = 0; position < int64_t(order.size()); ++position) {
    StringRef whose = broughtBy(order[position], homes, memory);
    if (whose.empty() || isOfGather(order, position)) continue;
    if (position >= end) {
      fetches.emplace_back().bucket = whose.str();
      for (end = position + 1; end < int64_t(order.size()) && !broughtBy(order[end], homes, memory).empty();) ++end;
    }
    add(fetches.back(), order, position);
  }
  return fetches;
}

SmallVector<Access, 6> readBy(const Arrival &arrival) {
  SmallVector<Access, 6> read;
  for (StepOp step : arrival.steps)
    for (const Access &access : accessesOf(step))
      if (!access.writes && !llvm::is_contained(arrival.buffers, access.ref.buffer)) read.push_back(access);
  return read;
}

int64_t hoist(const Order &order, ArrayRef<Arrival> arrivals, HoistLimit limit,
              function_ref<void(const Arrival &, int64_t steps, StringRef from)> moved) {
  int64_t alive = 0, floor = -1, hoisted = 0;    // bytes of those issued and not yet dead; the place of the one before
  std::set<std::pair<int64_t, size_t>> ends;     // (last use, index) of those alive
  llvm::DenseMap<Operation *, Operation *> tail; // after this step, the last one moved there
  SmallVector<int64_t> computing;                // positions of steps of lane compute
  for (int64_t position = 0; position < int64_t(order.size()); ++position)
    if (order[position].getLane() == Lane::compute) computing.push_back(position);
  for (auto [i, arrival] : llvm::enumerate(arrivals)) {
    floor = std::max(floor, order.lastConflictBefore(arrival.issued, readBy(arrival)));
    int64_t before = llvm::lower_bound(computing, arrival.issued) - computing.begin();
    if (limit.steps && before > limit.steps) floor = std::max(floor, computing[before - limit.steps - 1]);
    auto fits = [&] {
      if (limit.bytes) return alive + arrival.bytes <= limit.bytes;
      auto others = int64_t(ends.size());
      return others <= limit.ahead && (others <= 1 || !limit.severalBytes || alive + arrival.bytes <= limit.severalBytes);
    };
    // The earliest moment: after the last uses of as many as must be dead for this one to fit.
    while (!ends.empty() && (ends.begin()->first <= floor || (!fits() && ends.begin()->first < arrival.issued))) {
      floor = std::max(floor, ends.begin()->first);
      alive -= arrivals[ends.begin()->second].bytes;
      ends.erase(ends.begin());
    }
    if (floor + 1 < arrival.issued) {
      Operation *anchor = floor < 0 ? nullptr : order[floor].getOperation();
      Operation *&last = tail[anchor];
      for (StepOp step : arrival.steps) {
        if (last || anchor)
          step->moveAfter(last ? last : anchor);
        else
          step->moveBefore(order[0]);
        last = step;
      }
      ++hoisted;
      std::string from = floor < 0 ? "the start" : "step " + std::to_string(floor), node = floor < 0 ? "" : nameOf(anchor->getLoc());
      moved(arrival, arrival.issued - floor - 1, node.empty() ? from : from + " (" + node + ")");
    } else {
      floor = arrival.issued;
    }
    alive += arrival.bytes;
    ends.insert({arrival.lastUse, i});
  }
  return hoisted;
}

} // namespace zero::schedule
