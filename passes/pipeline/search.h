//===- search.h - the plan that keeps the budgets and copies least ----------------------------------===//
// What is left to choose: the tier of each tensor of model state, how many activations wait elsewhere, how early buckets are gathered and
// how long they stay. A choice is tried on a copy of the module as far as live ranges, whose largest sum is the memory it needs; the one
// that is chosen is placed to be sure of it.
#pragma once
#include "passes/place/need.h"
#include "passes/schedule/Passes.h"
#include "passes/shard/Passes.h"
#include <string>

namespace zero::pipeline {

/// Bytes that one rank may use of each tier; none: any.
struct Budgets {
  std::optional<uint64_t> device, host, disk;
};

/// What is decided before programs are sharded and scheduled: by flags, or where they say auto by the search.
struct Settings {
  std::optional<uint64_t> keepBytes; // of activations for backward, as nn-rematerialize; none: all that it reads
  shard::Options shard;
  schedule::Options schedule;
};

using ByTier = std::array<uint64_t, 3>;

/// What buckets keep: parameters as programs read them, trained or frozen; what updates alone touch; and masters of frozen parameters that
/// have a compute copy, which nothing touches.
enum Kept { kTrained, kFrozen, kOptimizer, kUntouched, kKept };

/// A choice that was tried.
struct Trial {
  Settings settings;
  place::Need need;
  uint64_t copied = 0;               // bytes between tiers in one step with --clip
  std::array<ByTier, kKept> rests{}; // bytes

  uint64_t bytesOf(Kept kept) const { return rests[kept][0] + rests[kept][1] + rests[kept][2]; }
  bool offloadsParameters() const { return bytesOf(kTrained) + bytesOf(kFrozen) > rests[kTrained][0] + rests[kFrozen][0]; }
};

struct Found {
  Trial chosen;
  bool fits = false;             // else it is the choice that needs least of the device's memory
  uint64_t resident = 0;         // bytes of device memory if all that is left to choose rested there
  uint64_t leastCopied = 0;      // bytes between tiers in one step that no choice avoids; 0 if that is not known
  std::optional<Trial> runnerUp; // fits too, and copies as much or more
  unsigned tried = 0;            // choices
};

/// `fused` is a module behind the fuse passes, `asked` what the flags say. Budgets name the device's memory at least. Fails, with an error,
/// as passes do.
mlir::FailureOr<Found> search(mlir::ModuleOp fused, const Settings &asked, const Budgets &budgets);

/// The subject of the decision that says where everything rests.
inline constexpr const char *kMemoryDecision = "memory";

/// What was chosen, what it costs and what else would do, as decisions of the plan: (subject, choice, reason).
std::vector<std::array<std::string, 3>> explain(const Found &found, const Budgets &budgets);

} // namespace zero::pipeline
