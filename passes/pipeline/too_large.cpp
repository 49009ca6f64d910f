//===- too_large.cpp - why a plan does not fit, for people ---------------------------------------------===//
#include "passes/pipeline/too_large.h"
#include "runtime/inspect/inspect.h"
#include "runtime/inspect/names.h"
#include <algorithm>

namespace zero::pipeline {
namespace {

/// The parameters of a bucket, as " (first to last)"; or nothing.
std::string contentOf(const plan::Plan &plan, int bucket) {
  const plan::Parameter *first = nullptr, *last = nullptr;
  for (const plan::Parameter &p : plan.parameters())
    for (const plan::Piece &piece : p.pieces())
      if (int(piece.bucket()) == bucket && &p != first) (first ? last : first) = &p;
  if (!first) return "";
  return " (" + first->name() + (last ? " to " + last->name() : "") + ")";
}

std::string named(const plan::Plan &plan, const plan::Buffer &buffer) {
  std::string content = buffer.has_bucket() ? contentOf(plan, int(buffer.bucket())) : "";
  return "'" + buffer.name() + "'" + content + " of " + inspect::grouped(buffer.bytes());
}

std::string listed(std::vector<std::string> words, const char *last) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) text += (i == 0 ? "" : i + 1 == words.size() ? last : ", ") + words[i];
  return text;
}

/// A tier with a budget, and what its flag calls it.
struct Limit {
  plan::Tier tier;
  const char *name;
  std::optional<uint64_t> budget;
};

/// Bytes of kinds, and what lets a rank keep less of them in a tier.
struct Way {
  uint64_t bytes;
  std::string words;
};

/// What lets bytes rest outside of a tier: another word for their flag; or, where the search has tried all of these, room in the tiers that
/// it fills before.
std::optional<std::string> elsewhere(const std::string &what, const std::string &flag, const std::string &home, plan::Tier tier) {
  if (tier == plan::DEVICE && (home == "host" || home == "disk")) return std::nullopt; // there it is
  if (home != "auto") return what + " elsewhere (" + flag + (tier == plan::DISK ? " host)" : " disk)");
  if (tier == plan::DEVICE) return std::nullopt;
  return tier == plan::HOST ? "more of --device-memory" : "more of --device-memory or --host-memory";
}

/// What lowers the kind that takes most of a tier, then the next; but for what the search has tried.
/// `clipping`: bytes that programs of runs that clip take more.
std::string advice(const plan::Plan &plan, const inspect::ByKind &bytes, uint64_t clipping, const Question &question, plan::Tier tier) {
  std::vector<Way> ways;
  auto of = [&](std::initializer_list<plan::BufferKind> kinds) {
    uint64_t sum = 0;
    for (plan::BufferKind kind : kinds) sum += bytes[kind];
    return sum;
  };
  auto addElsewhere = [&](uint64_t sum, const char *what, const char *flag, const std::string &home) {
    if (auto words = elsewhere(what, flag, home, tier)) ways.push_back({sum, *words});
  };
  bool highest = plan.stage() == 3 || (question.anyStage && plan.world() > 1);
  std::string shards = highest             ? "more ranks (--world)"
                       : plan.world() == 1 ? "more ranks (--world) with a higher --stage"
                                           : "a higher --stage or more ranks (--world)";
  ways.push_back({of({plan::PARAMETER, plan::OPTIMIZER}), shards});
  const shard::AssignTiersPassOptions &tiers = question.asked.shard.tiers;
  addElsewhere(of({plan::OPTIMIZER}), "the optimizer's state", "--offload-optimizer", tiers.offloadOptimizer);
  addElsewhere(of({plan::PARAMETER}), "parameters", "--offload-params", tiers.offloadParams);
  ways.push_back({of({plan::ACTIVATION, plan::INPUT}), "a smaller batch with more micro-steps (--accumulate)"});
  if (!question.anyTokens && question.asked.tiling.tokens == 0 && question.tokens > 1)
    ways.push_back({of({plan::ACTIVATION}), "what is wide for some tokens at a time (--tile-tokens)"});
  if (plan.vertical() && !question.anyOrder)
    ways.push_back({of({plan::ACTIVATION, plan::INPUT}), "micro-steps one after another (--accumulate-order horizontal)"});
  if (question.asked.shard.programs.clip == "any") ways.push_back({clipping, "runs that do not clip (--clip never)"});
  addElsewhere(of({plan::ACTIVATION}), "activations", "--offload-activations", question.asked.schedule.activations);
  ways.push_back({of({plan::GRADIENT, plan::GATHERED, plan::STAGING}),
                  question.anyTiles ? "smaller buckets (--bucket-elements)" : "smaller buckets (--bucket-elements) or tiles (--tile)"});
  std::stable_sort(ways.begin(), ways.end(), [](const Way &a, const Way &b) { return a.bytes > b.bytes; });
  std::vector<std::string> words;
  for (const Way &way : ways)
    if (way.bytes * 8 >= ways[0].bytes && std::find(words.begin(), words.end(), way.words) == words.end()) // no way that hardly matters
      words.push_back(way.words);
  return listed(words, " or ") + " would help";
}

/// The bucket that takes most of a tier, for state that no schedule makes smaller.
std::string largestBucket(const plan::Plan &plan, plan::Tier tier) {
  int largest = 0;
  uint64_t most = 0;
  for (int i = 0; i < plan.buckets_size(); ++i) {
    uint64_t sum = 0;
    for (const plan::StateTensor &tensor : plan.buckets(i).tensors())
      if (plan.arenas(int(plan.buffers(int(tensor.ref().buffer())).arena())).tier() == tier) sum += tensor.ref().bytes();
    if (sum > most) largest = i, most = sum;
  }
  if (!most) return "";
  return ", most for '" + plan.buckets(largest).name() + "'" + contentOf(plan, largest) + ": " + inspect::grouped(most);
}

/// The fewest buffers of a program's fullest moment that do not fit beside the state. Adds to `bytes` all that are live then.
std::string fewestTooMany(const plan::Plan &plan, const Limit &limit, const inspect::Memory &memory, inspect::ByKind &bytes) {
  auto fullest =
      std::max_element(memory.programs.begin(), memory.programs.end(), [](const auto &a, const auto &b) { return a.height < b.height; });
  int program = int(fullest - memory.programs.begin());
  std::vector<std::string> words;
  uint64_t sum = memory.state, rest = 0, count = 0;
  constexpr size_t kMost = 6;
  for (uint32_t index : inspect::liveBuffers(plan, program, fullest->peakStep, limit.tier)) {
    const plan::Buffer &b = plan.buffers(int(index));
    bytes[b.kind()] += b.bytes();
    if (sum > *limit.budget) continue;
    sum += b.bytes();
    if (words.size() < kMost) {
      words.push_back(named(plan, b));
    } else {
      rest += b.bytes();
      ++count;
    }
  }
  if (count) words.push_back(inspect::counted(count, "smaller one") + " of " + inspect::grouped(rest));
  const std::string &step = plan.programs(program).steps(int(fullest->peakStep)).name();
  return "at step " + std::to_string(fullest->peakStep) + " '" + step + "' of @" + fullest->program + " it cannot hold " +
         listed(words, " and ") + " at once";
}

/// Why one tier is too small; empty if it is not.
std::string tooLargeFor(const plan::Plan &plan, const Question &question, const Limit &limit) {
  inspect::Memory memory = inspect::memoryOf(plan, limit.tier);
  if (!limit.budget || memory.total() <= *limit.budget) return "";
  std::string tier = limit.tier == plan::DEVICE ? "" : std::string(" of tier ") + limit.name;
  std::string text = inspect::grouped(memory.total()) + " bytes" + tier + ", " + inspect::grouped(memory.total() - *limit.budget) +
                     " more than --" + limit.name + "-memory allows: " + inspect::grouped(memory.state) + " of model state";
  inspect::ByKind bytes = memory.persistent;
  uint64_t clipping = 0;
  if (memory.state > *limit.budget) { // no schedule helps
    std::vector<std::string> words;
    for (int kind = 0; kind < inspect::kKinds; ++kind)
      if (bytes[kind]) words.push_back(inspect::grouped(bytes[kind]) + " of kind " + inspect::kindName(kind));
    text += " alone (" + listed(words, " and ") + ")" + largestBucket(plan, limit.tier);
  } else {
    clipping = memory.total() - memory.unclipped();
    text += ", and " + fewestTooMany(plan, limit, memory, bytes);
  }
  return text + "; " + advice(plan, bytes, clipping, question, limit.tier);
}

} // namespace

std::string tooLarge(const plan::Plan &plan, const Question &question) {
  const Budgets &budgets = question.budgets;
  std::string text;
  for (const Limit &limit :
       {Limit{plan::DEVICE, "device", budgets.device}, {plan::HOST, "host", budgets.host}, {plan::DISK, "disk", budgets.disk}})
    if (std::string why = tooLargeFor(plan, question, limit); !why.empty())
      text += (text.empty() ? "one rank needs " : "; it also needs ") + why;
  return text;
}

} // namespace zero::pipeline
