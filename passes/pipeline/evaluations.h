//===- evaluations.h - what choices need and take, found out once -------------------------------------===//
#pragma once
#include "passes/pipeline/try_out.h"
#include <map>
#include <mutex>
#include <tuple>

namespace zero::pipeline {

/// What distinguishes choices.
inline auto keyOf(const Settings &settings, bool places) {
  const shard::AssignTiersPassOptions &tiers = settings.shard.tiers;
  const schedule::Options &schedule = settings.schedule;
  return std::make_tuple(settings.keepBytes, settings.tiling, settings.shard.partition.stage, settings.shard.partition.vertical,
                         tiers.deviceBytes, tiers.hostBytes, tiers.fetchMasters, tiers.spread, tiers.diskUpdates,
                         settings.shard.movement.lateBytes, settings.shard.merges.distance, schedule.activations, schedule.activationBytes,
                         schedule.activationWork, schedule.ahead, schedule.fetchAhead, schedule.residentBytes, schedule.earlyBytes,
                         schedule.deferredBytes, schedule.delay, places);
}
using Key = decltype(keyOf(Settings(), false));

/// A memo of tryOut for all threads: who asks for what another is finding out waits for it.
class Evaluations {
public:
  Evaluations(const Modules &modules, const Question &question) : modules(modules), question(question) {}

  /// As tryOut; the module is null if the choice is known. That of one that was placed on a speculative thread is kept for the search
  /// itself. Failures are not: who asks again is told the errors again.
  mlir::FailureOr<TriedOut> of(const Settings &settings, bool places);
  /// As tryOut, whatever is known.
  mlir::FailureOr<TriedOut> again(const Settings &settings, bool places) {
    return tryOut(modules(settings.tiling), settings, question, places);
  }
  /// Nobody will ask again: who is finding something out may stop.
  void end() { ended = true; }
  /// The search will not ask for the modules that are kept.
  void dropModules();
  /// As estimateApart of one that was not placed, which is made again if it has no module.
  mlir::LogicalResult estimate(TriedOut &tried);

private:
  struct Entry {
    std::mutex making;
    bool isMade = false, isTimed = false;
    Trial trial;               // its time is that of one that was placed
    simulate::StepTime time{}; // of one that was not, with every buffer apart
    uint64_t steps = 0;
    mlir::OwningOpRef<mlir::ModuleOp> kept;
  };
  Entry &at(const Key &key);

  const Modules &modules;
  const Question &question;
  std::atomic<bool> ended = false;
  std::mutex mutex; // of entries
  std::map<Key, Entry> entries;
};

} // namespace zero::pipeline
