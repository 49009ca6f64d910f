#include "runtime/simulate/simulated_run.h"
#include "runtime/base/error.h"
#include "runtime/checkpoint/export_onnx.h"
#include "runtime/data/dataset.h"
#include "runtime/files/distinct.h"
#include "runtime/files/partial_file.h"
#include "runtime/inspect/inspect.h"
#include "runtime/inspect/table.h"
#include "runtime/plan/lanes.h"
#include "runtime/plan/micro_steps.h"
#include "runtime/plan/model_files.h"
#include "runtime/plan/paths.h"
#include "runtime/report/progress.h"
#include "runtime/report/record.h"
#include "runtime/report/trace.h"
#include "runtime/simulate/cluster_timeline.h"
#include "runtime/simulate/machines.h"
#include "runtime/simulate/text.h"
#include <algorithm>
#include <memory>

namespace zero::simulate {
namespace {

constexpr uint64_t kSteps = 10, kMostSteps = 1000000; // without --steps; and that can be asked for
constexpr double kWorthSaying = 0.01;                 // of a step, that ranks wait for another

/// A file of results, which is there whole or not at all; none if nobody asked for it.
class Results {
public:
  void begin(const char *flag, const std::optional<std::string> &path) {
    if (path) try {
        file = std::make_unique<runtime::PartialFile>(plan::replaceable(*path));
      } catch (const Error &error) {
        throw Error(fmt::format("{} '{}' could not be written: {}", flag, *path, error.what()));
      }
  }
  void add(const std::string &text) {
    if (!file) return;
    file->file().write(at, text.data(), text.size());
    at += text.size();
  }
  void publish() {
    if (file) file->publish();
  }

private:
  std::unique_ptr<runtime::PartialFile> file;
  uint64_t at = 0;
};

void requireOwnFiles(const SimulatedRun &run, const plan::Plan &plan) {
  std::vector<runtime::NamedFile> files{{"the plan", run.plan, false}, {"--simulate", run.machine, false}};
  for (const std::string &file : plan::ModelFiles(plan).names()) files.push_back({"the model", file, false});
  for (const std::string &file : runtime::dataFilesOf(plan.model())) files.push_back({"the model's data", file, false});
  if (run.metrics) files.push_back({"--metrics", *run.metrics, true});
  if (run.trace) files.push_back({"--trace", *run.trace, true});
  runtime::requireDistinct(files);
}

/// What a rank takes in each tier, held against what its machine has.
std::string memoryText(const plan::Plan &plan, const Cluster &cluster, bool clips) {
  std::string text;
  for (plan::Tier tier : {plan::DEVICE, plan::HOST, plan::DISK}) {
    inspect::Memory memory = inspect::memoryOf(plan, tier);
    uint64_t takes = clips ? memory.total() : memory.unclipped();
    const std::optional<double> &has = cluster.bytes[size_t(tier)];
    std::string where = tier == plan::DISK ? "disk" : fmt::format("{} memory", inspect::tierName(tier));
    if (has && double(takes) > *has)
      throw Error(fmt::format("a rank takes {} bytes of {}, where the machine's description has {}: compile the plan with --{}-memory {}",
                              inspect::grouped(takes), where, inspect::grouped(uint64_t(*has)), inspect::tierName(tier), uint64_t(*has)));
    if (!takes) continue;
    text += fmt::format("{}{} of {}", text.empty() ? "" : ", ", inspect::human(takes), where);
    if (has) text += fmt::format(" ({:.0f} %)", 100 * double(takes) / *has);
  }
  return text;
}

/// Seconds of a step, of the rank with the least of them, all together, and that with the most.
std::string lanesText(const ClusterRun &run) {
  inspect::Table table;
  table.row("seconds of a step, of all ranks", {"least", "mean", "most"});
  auto row = [&](const std::string &name, auto &&secondsOf) {
    double least = secondsOf(run.ranks[0]), most = least, sum = 0, ranks = 0;
    for (const RankTime &rank : run.ranks) {
      double seconds = secondsOf(rank);
      least = std::min(least, seconds), most = std::max(most, seconds);
      sum += double(rank.ranks) * seconds, ranks += double(rank.ranks);
    }
    if (most > 1e-9)
      table.row("  " + name, {fmt::format("{:.6f}", least), fmt::format("{:.6f}", sum / ranks), fmt::format("{:.6f}", most)});
  };
  for (size_t lane = 0; lane < kLanes; ++lane) {
    row(plan::laneName(lane), [&](const RankTime &rank) { return rank.busy[lane]; });
    row(std::string(plan::laneName(lane)) + ", waiting for ranks", [&](const RankTime &rank) { return rank.waited[lane]; });
  }
  return table.text();
}

/// Whom the others wait for, where that is worth a sentence.
std::string slowestText(const ClusterRun &run, double step) {
  auto [least, most] = std::minmax_element(run.ranks.begin(), run.ranks.end(),
                                           [](const RankTime &a, const RankTime &b) { return a.longestWait() < b.longestWait(); });
  double own = least->longestWait();
  if (most->longestWait() - own < kWorthSaying * step) return "";
  std::string who = least->ranks == 1 ? fmt::format("rank {}", least->rank)
                                      : fmt::format("{} like rank {}", inspect::counted(least->ranks, "rank"), least->rank);
  return fmt::format("the others wait for {}, which itself waits {}; a lane of rank {} waits {} of a step\n", who,
                     own < kWorthSaying * step ? "for nobody" : secondsText(own), most->rank, secondsText(most->longestWait()));
}

/// One run, and what is said and written of it.
class Simulated {
public:
  explicit Simulated(const SimulatedRun &run)
      : run(run), file(plan::load(run.plan)), cluster(namedOrRead(run.machine)), steps(run.steps.value_or(kSteps)) {
    if (!plan::trains(plan, run.clips))
      throw Error(fmt::format("'{}' has steps {} --clip alone", run.plan, run.clips ? "without" : "with"));
    if (steps == 0 || steps > kMostSteps) throw Error(fmt::format("--simulate wants --steps from 1 to {}", kMostSteps));
    requireOwnFiles(run, plan);
    metrics.begin("--metrics", run.metrics), trace.begin("--trace", run.trace);
  }

  void walk() {
    uint64_t nodes = (uint64_t(plan.world()) + cluster.ranksPerNode - 1) / cluster.ranksPerNode;
    fmt::print("simulated, nothing is trained: {} on {}, a rank takes {}\n", inspect::counted(plan.world(), "rank"),
               inspect::counted(nodes, "node"), memoryText(plan, cluster, run.clips));
    ClusterOptions options{.steps = steps, .clips = run.clips, .seed = run.seed};
    options.ended = [this](uint64_t step, double seconds) { ended(step, seconds); };
    if (run.trace)
      options.show = [this](uint64_t rank, int program, size_t task, double begin, double end) { show(rank, program, task, begin, end); };
    summarize(runOn(cluster, plan, options));
    metrics.publish();
    writeTrace();
  }

private:
  /// "1234 tokens/s", of all ranks.
  std::string speedText(double seconds) const { return fmt::format("{:.0f} {}/s", each / seconds, unit); }

  void ended(uint64_t step, double seconds) {
    complete = step;
    if (step == 1 || step % stride == 0 || step == steps) {
      fmt::print("step {:>{}}/{}  {}  {}\n", step, std::to_string(steps).size(), steps, secondsText(seconds), speedText(seconds));
      std::fflush(stdout);
    }
    metrics.add(fmt::format("{{\"step\": {}, \"simulated\": true, \"{}_per_s\": {:.1f}, \"seconds\": {:.6f}}}\n", step, unit,
                            each / seconds, seconds));
  }

  void show(uint64_t rank, int index, size_t task, double begin, double end) {
    const plan::Program &program = plan.programs(index);
    if (complete >= runtime::kTracedSteps || task == 0 || task > size_t(program.steps_size()))
      return; // the first and the last are the host's
    const plan::Step &step = program.steps(int(task) - 1);
    auto &[lanes, text] = events[rank];
    lanes.insert(step.lane());
    text += runtime::traceEvent(int(rank), {step.name(), program.name(), step.lane(), begin, end});
  }

  void summarize(const ClusterRun &result) const {
    double seconds = steps > 1 ? (result.stepEnds.back() - result.stepEnds.front()) / double(steps - 1) : result.stepEnds.back();
    uint64_t flops = 0;
    for (const inspect::Work &lane : inspect::workByLane(plan, run.clips)) flops += lane.flops;
    fmt::print("\na step takes {}{}: {} of all ranks, {:.4g} TFLOP/s of each; 1000 steps take {}\n", secondsText(seconds),
               steps > 1 ? ", all but the first" : "", speedText(seconds), double(flops) / seconds / 1e12,
               runtime::durationText(1000 * seconds));
    fmt::print("{}{}", lanesText(result), slowestText(result, seconds));
  }

  void writeTrace() {
    std::string before = "[\n";
    for (const auto &[rank, lanesAndText] : events) {
      trace.add(before + runtime::traceNames(int(rank), lanesAndText.first) + lanesAndText.second);
      before = ",\n";
    }
    trace.add("\n]\n");
    trace.publish();
  }

  const SimulatedRun &run;
  plan::PlanFile file;
  const plan::Plan &plan = file.plan;
  Cluster cluster;
  uint64_t steps, stride = runtime::logStride(steps, 0), complete = 0;
  uint64_t tokens = runtime::sampleTokens(plan); // of a sample; 0: it has none
  const char *unit = tokens ? "tokens" : "samples";
  double each = double(std::max<uint64_t>(tokens, 1)) * double(plan.samples()) * double(plan.world()) *
                double(std::max<uint64_t>(plan.accumulate(), 1)); // of these in a step
  Results metrics, trace;
  std::map<uint64_t, std::pair<std::set<int>, std::string>> events; // lanes and what they do, by rank
};

} // namespace

void simulateRun(const SimulatedRun &run) { Simulated(run).walk(); }

} // namespace zero::simulate
