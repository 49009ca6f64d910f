// gpu-check room, tiers: whether a machine has room for a plan whose state does not lie on the GPU alone, and what a run of it reached.
#include "runtime/device/cpu/available_memory.h"
#include "runtime/inspect/inspect.h"
#include "runtime/plan/lanes.h"
#include "runtime/process/processors.h"
#include "runtime/report/record.h"
#include "test/gpu/check/trace.h"
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>

namespace zero::check {
namespace {

constexpr double kGiB = double(1 << 30);
constexpr uint64_t kBeside = uint64_t(2) << 30; // of the GPU and of the host, what a run takes beside its arenas: code, contexts, libraries

uint64_t needOf(const plan::Plan &plan, plan::Tier tier) { return inspect::memoryOf(plan, tier).unclipped(); }

void require(const std::string &what, uint64_t wanted, uint64_t there) {
  if (there < wanted)
    throw NotRun(fmt::format("{} has {:.1f} GiB free, and {:.1f} are wanted", what, double(there) / kGiB, double(wanted) / kGiB));
  fmt::print("| {} | {:.1f} GiB | {:.1f} GiB |\n", what, double(wanted) / kGiB, double(there) / kGiB);
}

/// By lane, the seconds of an optimizer step in which it has a step under way, without the first, which loads code.
std::array<double, plan::kLaneNames.size()> busyIn(const Trace &trace, size_t steps) {
  std::array<double, plan::kLaneNames.size()> busy{};
  for (const Traced &each : trace.steps) busy[size_t(each.step->lane())] += each.mean() * double(each.seconds.size()) / double(steps);
  return busy;
}

} // namespace

void room(const Arguments &arguments) {
  auto gpus = int(arguments.number("--gpus", 1));
  auto wanted = unsigned(arguments.number("--processors", 1)), there = runtime::processors();
  const cuda::Driver &driver = cuda::Driver::get();
  int count = 0;
  driver.require(driver.deviceGetCount(&count), "cannot count this machine's GPUs");
  if (count < gpus) throw NotRun(fmt::format("this machine has {} GPU{}, and {} are wanted", count, count == 1 ? "" : "s", gpus));
  if (there < wanted) throw NotRun(fmt::format("this machine has {} processors for us, and {} are wanted", there, wanted));
  fmt::print("| | wanted | free |\n|---|---|---|\n");
  if (!arguments.names.empty()) {
    plan::PlanFile file = plan::load(arguments.names[0]);
    require("the GPU", needOf(file.plan, plan::DEVICE) + kBeside, cuda::Gpu(0).freeBytes());
    if (uint64_t host = needOf(file.plan, plan::HOST)) require("the host's memory", host + kBeside, runtime::availableMemory().bytes);
    std::string folder = arguments.text("--disk", ".");
    if (uint64_t disk = needOf(file.plan, plan::DISK))
      require("the disk of '" + folder + "'", disk, std::filesystem::space(folder).available);
  }
  fmt::print("\n{} GPU{} and {} processors\n", count, count == 1 ? "" : "s", there);
}

void tiers(const Arguments &arguments) {
  if (arguments.names.size() != 2) throw BadUsage("tiers wants PLAN RUN");
  plan::PlanFile file = plan::load(arguments.names[0]);
  const std::string &run = arguments.names[1];
  Metrics metrics = readMetrics(run + ".jsonl", /*least=*/2);
  Trace trace = readTrace(file.plan, run + ".trace.json");
  double each = median({metrics.seconds.begin() + 1, metrics.seconds.end()}),
         rate = median({metrics.rates.begin() + 1, metrics.rates.end()});
  double parameters = 0;
  for (const plan::Bucket &bucket : file.plan.buckets()) parameters += double(bucket.elements());
  fmt::print("{:.2f} billion parameters. A step takes {:.3f} s, the first {:.3f} s.\n\n", parameters / 1e9, each, metrics.seconds[0]);

  fmt::print("| lane | busy in a step, s | of the step |\n|---|---|---|\n");
  auto busy = busyIn(trace, std::min<size_t>(metrics.seconds.size(), 10)); // as many are traced
  for (size_t lane = 0; lane < busy.size(); ++lane)
    if (busy[lane] > 0) fmt::print("| {} | {:.4f} | {:.1f} % |\n", plan::kLaneNames[lane], busy[lane], 100 * busy[lane] / each);
  size_t busiest = size_t(std::ranges::max_element(busy) - busy.begin());

  std::array<double, 3> taken{}; // by tier, as `watch` saw it
  std::ifstream memory(run + ".memory");
  for (double &tier : taken) memory >> tier;
  fmt::print("\n| memory | the plan proves, GiB | the machine gave, GiB |\n|---|---|---|\n");
  for (auto [name, tier] : {std::pair("GPU", plan::DEVICE), {"host", plan::HOST}, {"disk", plan::DISK}}) {
    double proven = double(needOf(file.plan, tier)), given = taken[size_t(tier)];
    fmt::print("| {} | {:.2f} | {} |\n", name, proven / kGiB, given > 0 ? fmt::format("{:.2f}", given / kGiB) : "not seen");
    if (tier == plan::DEVICE && given > proven + double(kBeside))
      throw Error(fmt::format("the run took {:.0f} bytes of the GPU, where the plan says {:.0f}", given, proven));
  }
  fmt::print("\n{:.3f} s a step, {:.0f} tokens/s; lane {}, the busiest, works {:.0f} % of that\n", each, rate, plan::kLaneNames[busiest],
             100 * busy[busiest] / each);
}

} // namespace zero::check
