//===- refine.h - what is decided of a choice that fits ---------------------------------------------------===//
// The search chooses forms and tiers by live bytes and times with every buffer apart. Here a choice gets its bytes, and what is left of the
// budget is spent: on buckets that stay or come early before, on lanes that run apart after that.
#pragma once
#include "passes/pipeline/trials.h"

namespace zero::pipeline {

class Refine {
public:
  Refine(Trials &trials, const Budgets &budgets) : trials(trials), budgets(budgets) {}

  /// How long buckets stay gathered, how early they are, and how long gradients travel: nothing is placed.
  Trial gather(const Trial &usual) { return gatherEarlier(keepGathered(usual)); }

  /// Where sharing bytes takes more than the budget, by less than the state that rests on the device, some of that leaves: at least so much
  /// that a bucket may. Not if `enough` of `others` are as fast without that: what leaves is copied.
  Trial place(Settings settings, llvm::ArrayRef<Trial> others = {}, int enough = 2);

  /// Whether copies hide behind computation but for a percent, with offsets as well, and with room for lanes to run apart if need be: what
  /// computes more is not faster then.
  bool hides(const Trial &usual);

  /// Where sharing bytes makes waits, less state may rest on the device: then the arena of programs has room for lanes to run apart.
  Trial leaveRoom(const Trial &placed);
  /// The same with what leaves of the optimizer's state spread over backward (zero-assign-tiers), which decides when a disk is busy; none
  /// where that is no faster, or all of it rests in one tier.
  std::optional<Trial> spread(const Trial &placed);
  /// Of one that is placed and keeps the budget: room between buffers, late updates, and writes after all updates, where they make it
  /// faster.
  Trial overlap(const Trial &placed) { return deferWrites(updateLater(leaveRoom(placed))); }

private:
  /// With offsets. State that has left the device may be more than the host has room for, as it may have been offered more than that
  /// before, since what moves is buckets: then it is offered less.
  Trial withOffsets(Settings &settings);
  /// Room that is left keeps gathered buckets whole between forward and backward. How much more that takes shows only when it is tried:
  /// buckets are kept where others have their peak, or where they have not.
  Trial keepGathered(const Trial &usual);
  /// Room that is left lets gradients travel longer, where lane compute waits for them: a table's travels as long as those of several
  /// layers.
  Trial reduceLonger(const Trial &usual);
  /// reduceLonger; and where lane compute still waits, buckets that are updated early in backward may be gathered for the next step beside
  /// the rest of it. The more of them, the more travels in backward in place of forward, and how long gradients do is found anew.
  Trial gatherEarlier(const Trial &usual);
  /// Where lane compute waits, some updates may run beside the next step's forward (zero-insert-movement), in which a disk has less to do
  /// than in backward. Their gradients take memory until then, which shows only when it is placed.
  Trial updateLater(const Trial &placed);
  /// What updates beside the next step's forward have changed on disk may be written after all of them (plan-defer-writes), in room that
  /// their gradients leave. How much of it gets bytes beside the next step shows only when it is placed.
  Trial deferWrites(const Trial &placed);

  Trials &trials;
  const Budgets &budgets;
};

} // namespace zero::pipeline
