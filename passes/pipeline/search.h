//===- search.h - the fastest plan that keeps the budgets -------------------------------------------===//
// What is left to choose: the parts that parameters are cut into, the tokens that are done at a time, the stage, the order of micro-steps,
// the tier of each tensor of model state, how many activations wait elsewhere, how early buckets are gathered and how long they stay, which
// updates are late. A choice is tried on a copy of the module as far as live ranges, whose largest sum is the memory it needs. How long a
// step of it takes is estimated with every buffer at bytes of its own (runtime/simulate). Of the two that look best with every number of
// tiles those are placed that may become the fastest: then what they need is certain, and the estimate is that of the plan. Where sharing
// bytes makes the best slower, it is tried with less state on the device, so that its programs have room, with late updates, and with what
// leaves of the optimizer's state spread over backward.
#pragma once
#include "passes/place/need.h"
#include "passes/schedule/Passes.h"
#include "passes/shard/Passes.h"
#include "passes/shard/tier_knapsack.h"
#include "runtime/simulate/step_time.h"
#include <functional>
#include <string>

namespace zero::pipeline {

/// Bytes that one rank may use of each tier; none: any.
struct Budgets {
  std::optional<uint64_t> device, host, disk;
};

/// What a module is trained with.
struct Tiling {
  int64_t parts = 1;       // as nn-tile's `parts`
  int64_t tokens = 0;      // as nn-tile-tokens' `tokens`
  bool keepLogits = false; // as nn-tile's `keep-logits`
  auto operator<=>(const Tiling &) const = default;

  /// Of `all` tokens of a micro-step and of the largest parameter together.
  uint64_t tiles(int64_t all) const { return uint64_t(parts) * uint64_t(tokens ? (all + tokens - 1) / tokens : 1); }
};

/// Buckets that are used between two uses of another that stays gathered meanwhile, where there is room for that.
inline int64_t mergeDistance(Tiling tiling) { return tiling.tokens ? shard::kTilesMergeDistance : shard::kMergeDistance; }

/// What is decided before programs are sharded and scheduled: by flags, or where they say auto by the search.
struct Settings {
  Tiling tiling;
  std::optional<uint64_t> keepBytes; // of activations for backward, as nn-rematerialize; none: all that it reads
  shard::Options shard;
  bool attentionKernels = false; // attention by kernels of the plan's own: a target without steps for it
  bool warpgroups = false;       // that has products of four warps
  schedule::Options schedule;
  int64_t writeWork = 0;      // multiply-adds while a byte is written to disk, as plan-assign-offsets
  uint64_t usuallyCopied = 0; // with late updates, or much room: bytes that the choice copies without them
};

/// Micro-steps that one program may hold.
inline constexpr int64_t kMostVertical = 256;

using ByTier = std::array<uint64_t, 3>;

/// What buckets keep: parameters as programs read them, trained or frozen, and what updates alone touch.
enum Kept { kTrained, kFrozen, kOptimizer, kKept };

/// A choice that was tried.
struct Trial {
  Settings settings;
  place::Need need;
  uint64_t copied = 0;                    // bytes between tiers in one step with --clip
  simulate::StepTime time{};              // of such a step, as estimated; 0 for one of which nobody has asked
  std::array<ByTier, kKept> rests{};      // bytes
  std::vector<shard::Removal> removals{}; // of what may rest in any tier
  uint64_t keptActivations = 0;           // bytes for backward, where blocks are made again
  uint64_t leastGathered = 0;             // bytes of the smallest bucket that is gathered; UINT64_MAX if none is

  uint64_t bytesOf(Kept kept) const { return rests[kept][0] + rests[kept][1] + rests[kept][2]; }
  bool offloadsParameters() const { return bytesOf(kTrained) + bytesOf(kFrozen) > rests[kTrained][0] + rests[kFrozen][0]; }
};

/// What is asked, and of what machine.
struct Question {
  Settings asked; // what the flags say
  // Which of it they leave open, beside tiers.
  bool anyStage = false, anyTiles = false, anyTokens = false, anyRecomputation = false, anyOrder = false, anyMasters = false;
  int64_t tokens = 0; // of a micro-step
  Budgets budgets;    // name the device's memory at least
  simulate::Machine machine;
};

struct Found {
  Trial chosen;
  mlir::OwningOpRef<mlir::ModuleOp> placed; // as the chosen one is with offsets and waits; null if it does not fit
  bool fits = false;                        // else it is what a refusal speaks of: with as many bytes as that needs it would fit
  uint64_t resident = 0;                    // bytes of device memory if all that is left to choose rested there
  uint64_t leastCopied = 0;                 // bytes between tiers in one step that no choice avoids; 0 if that is not known
  std::optional<Trial> runnerUp;            // fits too
  unsigned tried = 0;                       // choices
  uint64_t steps = 0;                       // of programs that were scheduled for them
};

/// What settings decide of the shard phase, after the kernels.
void addSharding(mlir::OpPassManager &pm, const Settings &settings);

/// The module after the fuse passes, trained with tiles of so many parts and tokens; it is asked for as often as it is needed, by any
/// thread. Null, with an error, if a pass fails.
using Modules = std::function<mlir::ModuleOp(Tiling)>;

/// `fewLayers`: the same of a model with a few of its layers, which needs no more (few_layers.h); null, without an error, where there is
/// none. Tiles with which it does not fit by far are not tried.
/// Where only the host or the disk is too small, the choice that a refusal speaks of is the one that would be found if they had any room.
/// Of the choices that fit, the fastest, and of those that are within a percent of each other the one with fewest parts, most tokens, the
/// lowest stage, the least to copy, micro-steps one after another. Fails, with an error, as passes do.
/// Of so many `threads` all but this one find out ahead what will be asked (speculation.h): their number changes nothing but the time. With
/// more than one the context must be one for several threads, and who handles its diagnostics must ask quiet.h.
mlir::FailureOr<Found> search(const Modules &modules, const Modules &fewLayers, const Question &question, unsigned threads);

/// The subject of the decision that says where everything rests.
inline constexpr const char *kMemoryDecision = "memory";
/// And of the one that says what stage, tiles and recomputation are, where they were to be chosen.
inline constexpr const char *kFormDecision = "form";

/// What was chosen, what it costs and what else would do, as decisions of the plan: (subject, choice, reason).
/// `time`: of the plan as it is.
std::vector<std::array<std::string, 3>> explain(const Found &found, const Question &question, const simulate::StepTime &time);

} // namespace zero::pipeline
