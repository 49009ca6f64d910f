//===- explain.cpp - what the search chose, for people ------------------------------------------------===//
#include "passes/pipeline/search.h"
#include "runtime/inspect/names.h"
#include "runtime/simulate/text.h"

namespace zero::pipeline {
namespace {

using inspect::grouped;

std::string placesOf(const ByTier &bytes) {
  static constexpr const char *places[] = {" on the device", " on the host", " on disk"};
  std::string text;
  for (size_t tier = 0; tier < 3; ++tier)
    if (bytes[tier]) text += (text.empty() ? "" : ", ") + grouped(bytes[tier]) + places[tier];
  return text.empty() ? "none" : text;
}

/// "parameters: 494 … on the device; optimizer: …; activations: …"; and where the host updates, its gradients, which lie where such
/// activations do.
std::string homesOf(const Trial &trial) {
  auto work = trial.need.work;
  work[0] = 0;
  const shard::AssignTiersPassOptions &tiers = trial.settings.shard.tiers;
  bool stay = trial.settings.schedule.activations == "none";
  bool updates = (tiers.hostUpdates && trial.rests[kOptimizer][1]) || (tiers.diskUpdates && trial.rests[kOptimizer][2]);
  std::string away = work[1] || work[2] ? placesOf(work) : "on the device";
  bool wait = trial.settings.shard.programs.clip != "never"; // gradients, for the norm: they leave as activations do
  std::string rest = updates && stay ? "activations: on the device; gradients of updates: " + away
                     : updates       ? "activations, and gradients of updates: " + away
                     : wait && !stay ? "activations, and gradients that wait for the norm: " + away
                                     : "activations: " + away;
  ByTier parameters = trial.rests[kTrained];
  for (size_t tier = 0; tier < 3; ++tier) parameters[tier] += trial.rests[kFrozen][tier];
  return "parameters: " + placesOf(parameters) + (tiers.fetchMasters ? ", as masters without compute copies" : "") +
         "; optimizer: " + placesOf(trial.rests[kOptimizer]) + (tiers.spread ? ", spread over backward" : "") + "; " + rest;
}

std::string travelOf(const schedule::Options &options) {
  std::string text = "buckets gathered ahead: " + std::to_string(options.ahead) +
                     ", gradients under way while the next is computed: " + std::to_string(options.delay);
  if (options.residentBytes)
    text += ", bytes of gathered buckets kept until they are needed again: at most " + grouped(uint64_t(options.residentBytes));
  if (options.earlyBytes) text += ", bytes of buckets gathered beside the step before: at most " + grouped(uint64_t(options.earlyBytes));
  return text;
}

/// "--tile 4, --stage 2, 1 024 bytes of what blocks leave for backward kept": of what is open.
std::string formOf(const Trial &trial, const Question &question) {
  std::string text;
  if (question.anyTiles) text += trial.settings.tiling.parts == 1 ? "--tile off" : "--tile " + std::to_string(trial.settings.tiling.parts);
  if (question.anyTokens)
    text += (text.empty() ? "" : ", ") +
            ("--tile-tokens " + (trial.settings.tiling.tokens ? std::to_string(trial.settings.tiling.tokens) : "off"));
  if (question.anyStage) text += (text.empty() ? "" : ", ") + ("--stage " + std::to_string(trial.settings.shard.partition.stage));
  if (question.anyOrder)
    text += (text.empty() ? "" : ", ") + std::string("--accumulate-order ") +
            (trial.settings.shard.partition.vertical ? "vertical" : "horizontal");
  if (question.anyRecomputation && trial.settings.keepBytes)
    text += (text.empty() ? "" : ", ") + ("blocks made again but for " + grouped(*trial.settings.keepBytes) + " bytes");
  return text;
}

} // namespace

std::vector<std::array<std::string, 3>> explain(const Found &found, const Question &question, const simulate::StepTime &time) {
  const Trial &chosen = found.chosen;
  std::string allowed = "--device-memory allows " + grouped(*question.budgets.device) + " bytes";
  std::vector<std::array<std::string, 3>> lines;
  bool away = chosen.copied > 0, clips = question.asked.shard.programs.clip != "never";
  std::string takes = simulate::estimateText(time, clips);
  std::string next;
  if (found.runnerUp) {
    next = "; next best: ";
    if (std::string form = formOf(*found.runnerUp, question); !form.empty()) next += form + ", ";
    next += homesOf(*found.runnerUp) + ", " + simulate::secondsText(found.runnerUp->time.seconds) + ", " + grouped(found.runnerUp->copied) +
            " copied";
  }
  if (std::string form = formOf(chosen, question); !form.empty())
    lines.push_back({kFormDecision, form, allowed + (away ? "" : "; estimated " + takes + next)});
  if (away) {
    std::string costs = grouped(chosen.copied) + " bytes are copied in a step" + (clips ? " with --clip" : "");
    if (found.leastCopied) costs += ", no choice copies less than " + grouped(found.leastCopied);
    lines.push_back({kMemoryDecision, homesOf(chosen),
                     allowed + ", all on the device would take " + grouped(found.resident) + "; " + costs + "; estimated " + takes + next +
                         "; " + inspect::counted(found.tried, "choice") + " tried"});
  }
  if (chosen.settings.shard.partition.world > 1 || away) lines.push_back({"schedule", travelOf(chosen.settings.schedule), allowed});
  return lines;
}

} // namespace zero::pipeline
