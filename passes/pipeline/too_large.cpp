//===- too_large.cpp - why a plan does not fit, for people ---------------------------------------------===//
#include "passes/pipeline/too_large.h"
#include "runtime/inspect/inspect.h"
#include "runtime/inspect/names.h"
#include <algorithm>

namespace zero::pipeline {
namespace {

/// The parameters of the bucket a transient buffer works for, as " (first … last)"; or nothing.
std::string contentOf(const plan::Plan &plan, const plan::Buffer &buffer) {
  const plan::Parameter *first = nullptr, *last = nullptr;
  for (const plan::Parameter &p : plan.parameters())
    for (const plan::Piece &piece : p.pieces())
      if (buffer.has_bucket() && piece.bucket() == buffer.bucket() && &p != first) (first ? last : first) = &p;
  if (!first) return "";
  return " (" + first->name() + (last ? " to " + last->name() : "") + ")";
}

std::string named(const plan::Plan &plan, const plan::Buffer &buffer) {
  return "'" + buffer.name() + "'" + contentOf(plan, buffer) + " of " + inspect::grouped(buffer.bytes());
}

std::string listed(std::vector<std::string> words, const char *last) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) text += (i == 0 ? "" : i + 1 == words.size() ? last : ", ") + words[i];
  return text;
}

/// What lowers the kind that takes most, then the next; but for what the search has tried.
std::string advice(const plan::Plan &plan, const inspect::ByKind &bytes, const Question &question) {
  std::vector<std::pair<uint64_t, std::string>> ways;
  auto of = [&](std::initializer_list<plan::BufferKind> kinds) {
    uint64_t sum = 0;
    for (plan::BufferKind kind : kinds) sum += bytes[kind];
    return sum;
  };
  bool highest = plan.stage() == 3 || (question.anyStage && plan.world() > 1);
  std::string shards = highest             ? "more ranks (--world)"
                       : plan.world() == 1 ? "more ranks (--world) with a higher --stage"
                                           : "a higher --stage or more ranks (--world)";
  ways.push_back({of({plan::PARAMETER, plan::OPTIMIZER}), shards});
  const shard::AssignTiersPassOptions &tiers = question.asked.shard.tiers;
  if (tiers.offloadOptimizer != "auto")
    ways.push_back({of({plan::OPTIMIZER}), "the optimizer's state elsewhere (--offload-optimizer disk)"});
  if (tiers.offloadParams != "auto") ways.push_back({of({plan::PARAMETER}), "parameters elsewhere (--offload-params disk)"});
  ways.push_back({of({plan::ACTIVATION, plan::INPUT}), "a smaller batch with more micro-steps (--accumulate)"});
  if (!question.anyTokens && question.asked.tileTokens == 0 && question.tokens > 1)
    ways.push_back({of({plan::ACTIVATION}), "what is wide for some tokens at a time (--tile-tokens)"});
  if (plan.vertical() && !question.anyOrder)
    ways.push_back({of({plan::ACTIVATION, plan::INPUT}), "micro-steps one after another (--accumulate-order horizontal)"});
  if (question.asked.schedule.activations != "auto")
    ways.push_back({of({plan::ACTIVATION}), "activations elsewhere (--offload-activations disk)"});
  ways.push_back({of({plan::GRADIENT, plan::GATHERED, plan::STAGING}),
                  question.anyTiles ? "smaller buckets (--bucket-elements)" : "smaller buckets (--bucket-elements) or tiles (--tile)"});
  std::stable_sort(ways.begin(), ways.end(), [](const auto &a, const auto &b) { return a.first > b.first; });
  std::vector<std::string> words;
  for (auto &[size, way] : ways)
    if (size * 8 >= ways[0].first) words.push_back(way); // no way that hardly matters
  return listed(words, " or ");
}

std::string deviceTooLarge(const plan::Plan &plan, const Question &question) {
  uint64_t budget = *question.budgets.device;
  inspect::Memory memory = inspect::memoryOf(plan);
  std::string text = "one rank needs " + inspect::grouped(memory.total()) + " bytes, " + inspect::grouped(memory.total() - budget) +
                     " more than --device-memory allows: " + inspect::grouped(memory.state) + " of model state";
  inspect::ByKind bytes = memory.persistent;
  if (memory.state > budget) { // no schedule helps
    std::vector<std::string> words;
    for (int kind = 0; kind < inspect::kKinds; ++kind)
      if (bytes[kind]) words.push_back(inspect::grouped(bytes[kind]) + " of kind " + inspect::kindName(kind));
    text += " alone (" + listed(words, " and ") + ")";
    return text + "; " + advice(plan, bytes, question) + " would help";
  }
  // The fewest buffers of the fullest moment that do not fit beside the state.
  auto fullest =
      std::max_element(memory.programs.begin(), memory.programs.end(), [](const auto &a, const auto &b) { return a.height < b.height; });
  int program = int(fullest - memory.programs.begin());
  std::vector<std::string> words;
  uint64_t sum = memory.state, rest = 0, count = 0;
  constexpr size_t kMost = 6;
  for (uint32_t index : inspect::liveBuffers(plan, program, fullest->peakStep)) {
    const plan::Buffer &b = plan.buffers(int(index));
    bytes[b.kind()] += b.bytes();
    if (sum > budget) continue;
    sum += b.bytes();
    if (words.size() < kMost) {
      words.push_back(named(plan, b));
    } else {
      rest += b.bytes();
      ++count;
    }
  }
  if (count) words.push_back(std::to_string(count) + " smaller ones of " + inspect::grouped(rest));
  const std::string &step = plan.programs(program).steps(int(fullest->peakStep)).name();
  text += ", and at step " + std::to_string(fullest->peakStep) + " '" + step + "' of @" + fullest->program + " it cannot hold " +
          listed(words, " and ") + " at once; " + advice(plan, bytes, question) + " would help";
  return text;
}

} // namespace

std::string tooLarge(const plan::Plan &plan, const Question &question) {
  const Budgets &budgets = question.budgets;
  if (budgets.device && inspect::memoryOf(plan).total() > *budgets.device) return deviceTooLarge(plan, question);
  for (auto [tier, name, budget] : {std::tuple(plan::HOST, "host", budgets.host), {plan::DISK, "disk", budgets.disk}}) {
    inspect::Memory memory = inspect::memoryOf(plan, tier);
    if (!budget || memory.total() <= *budget) continue;
    return "one rank needs " + inspect::grouped(memory.total()) + " bytes of tier " + name + ", " +
           inspect::grouped(memory.total() - *budget) + " more than --" + name + "-memory allows: " + inspect::grouped(memory.state) +
           " of model state and " + inspect::grouped(memory.work) +
           " of activations; more ranks (--world) with a higher --stage, or more of --device-memory, would help";
  }
  return "";
}

} // namespace zero::pipeline
