#include "runtime/simulate/cluster_timeline.h"
#include "runtime/base/error.h"
#include "runtime/simulate/lanes.h"
#include "runtime/simulate/rank_classes.h"
#include "runtime/simulate/runs.h"
#include "runtime/simulate/shared.h"
#include <algorithm>
#include <cmath>
#include <numbers>

namespace zero::simulate {
namespace {

constexpr uint64_t kSettled = 5; // steps, after which nothing changes any more until the last

/// Of ranks on one kind of machine: a step, and the same that comes after another, again and again.
struct Program {
  Program(const plan::Plan &plan, const Machine &machine, bool clips, uint64_t steps)
      : machine(machine), runs(plan, machine, clips, 2, std::numeric_limits<uint64_t>::max()), each(runs.runs.size() / 2),
        sequence(runs.runs, each, each * steps) {}
  Machine machine;
  StepRuns runs;
  size_t each; // runs in a step
  Sequence sequence;
};

/// Uniform in (0, 1], of a rank, a step and a number (SplitMix64; Steele, Lea and Flood 2014).
double drawn(uint64_t seed, uint64_t rank, uint64_t step, uint64_t number) {
  uint64_t mixed = seed;
  for (uint64_t each : {rank, step, number}) {
    mixed += each + 0x9e3779b97f4a7c15;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    mixed ^= mixed >> 31;
  }
  return double((mixed >> 11) + 1) * 0x1p-53;
}

/// The magnitude of a number of a standard normal distribution (Box and Muller 1958).
double magnitude(uint64_t seed, uint64_t rank, uint64_t step) {
  return std::abs(std::sqrt(-2 * std::log(drawn(seed, rank, step, 0))) * std::cos(2 * std::numbers::pi * drawn(seed, rank, step, 1)));
}

/// From one moment at which a task ends, somewhere, to the next.
class Simulation {
public:
  Simulation(const Cluster &cluster, const plan::Plan &plan, const ClusterOptions &options)
      : cluster(cluster), options(options), world(plan.world()),
        steps(cluster.variation > 0 ? options.steps : std::min(options.steps, kSettled + 1)), classes(classesOf(cluster, world)) {
    for (const RankClass &each : classes.ranks) {
      Machine machine = amongRanks(cluster, each.machine, world);
      auto program = std::find_if(programs.begin(), programs.end(), [&](const auto &known) { return known->machine == machine; });
      if (program == programs.end()) program = programs.insert(program, std::make_unique<Program>(plan, machine, options.clips, steps));
      ranks.emplace_back(**program);
    }
    resources.resize(ranks.size() * kResources);
    for (const NodeClass &node : classes.nodes) resources.emplace_back(double(node.ranks));
    resources.emplace_back(); // the link between all
    versions.resize(resources.size());
    if (options.show)
      for (size_t rank = 0; rank < ranks.size(); ++rank)
        ranks[rank].shown = rank == 0 || cluster.others.contains(classes.ranks[rank].first);
  }

  ClusterRun run() {
    for (size_t rank = 0; rank < ranks.size(); ++rank) begin(rank);
    while (!events.empty()) {
      Event event = events.top();
      events.pop();
      if (event.version != versions[event.resource]) continue; // something has begun or ended there since
      now = event.time;
      uint64_t work = resources[event.resource].end(now);
      plan(event.resource);
      if (event.resource == link())
        part(work);
      else
        end(work / kLanes, work % kLanes, ranks[work / kLanes].began[work % kLanes]), begin(work / kLanes);
    }
    if (ended < steps) throw Error("ranks wait for each other in step " + std::to_string(ended + 1) + ", so that none of them goes on");
    return finished();
  }

private:
  /// One for its class.
  struct Rank {
    explicit Rank(const Program &program) : program(&program), lanes(program.sequence) {}
    const Program *program;
    Lanes lanes;
    std::array<TaskAt, kLanes> at{};    // under way
    std::array<double, kLanes> began{}; // it, when
    std::array<double, kLanes> busy{}, waited{};
    uint64_t steps = 0; // complete
    bool shown = false;
  };
  /// Ranks that have come to the next collective of a lane.
  struct Meeting {
    uint64_t ranks = 0;
    double seconds = 0, began = 0; // of the slowest; when the last one came
  };
  struct Event {
    double time;
    size_t resource, version;
    bool operator>(const Event &other) const { return std::pair(time, resource) > std::pair(other.time, other.resource); }
  };

  size_t link() const { return resources.size() - 1; }

  /// When something ends there next.
  void plan(size_t resource) {
    ++versions[resource];
    if (!resources[resource].idle()) events.push({resources[resource].nextEnd(now), resource, versions[resource]});
  }

  void begin(size_t index) {
    Rank &rank = ranks[index];
    const RankClass &group = classes.ranks[index];
    for (size_t lane = 0; lane < kLanes; ++lane) {
      std::optional<TaskAt> at = rank.lanes.begin(lane);
      if (!at) continue;
      rank.at[lane] = *at, rank.began[lane] = now;
      const Task &task = rank.program->sequence.task(*at);
      if (task.meets) {
        meet(lane, task.seconds, group.all);
        continue;
      }
      double seconds = task.seconds;
      if (cluster.variation > 0) seconds *= 1 + cluster.variation * magnitude(options.seed, group.first, at->run / rank.program->each);
      bool ofNode = task.resource == kDisk;
      size_t resource = ofNode ? ranks.size() * kResources + group.node : index * kResources + task.resource;
      resources[resource].begin(now, seconds, ofNode ? double(group.onNode) : 1, index * kLanes + lane);
      plan(resource);
    }
  }

  void meet(size_t lane, double seconds, uint64_t count) {
    Meeting &meeting = meetings[lane];
    meeting.ranks += count, meeting.seconds = std::max(meeting.seconds, seconds);
    if (meeting.ranks < world) return;
    meeting.began = now;
    resources[link()].begin(now, meeting.seconds, 1, lane);
    plan(link());
  }

  /// The end of a collective.
  void part(size_t lane) {
    double began = meetings[lane].began;
    meetings[lane] = {};
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      if (isCounted(ranks[rank], lane)) ranks[rank].waited[lane] += began - ranks[rank].began[lane];
      end(rank, lane, began);
    }
    for (size_t rank = 0; rank < ranks.size(); ++rank) begin(rank);
  }

  bool isCounted(const Rank &rank, size_t lane) const { return steps == 1 || rank.at[lane].run >= rank.program->each; }

  void end(size_t index, size_t lane, double began) {
    Rank &rank = ranks[index];
    TaskAt at = rank.at[lane];
    if (isCounted(rank, lane)) rank.busy[lane] += now - began;
    if (rank.shown) {
      const StepRuns &runs = rank.program->runs;
      options.show(classes.ranks[index].first, runs.programs[runs.programOf[at.run % rank.program->each]].index, at.task, began, now);
    }
    rank.lanes.end(lane);
    for (; rank.steps < steps && rank.lanes.complete() >= (rank.steps + 1) * rank.program->each; ++rank.steps) {
      uint64_t step = rank.steps;
      if (complete.size() == step) complete.push_back(0);
      if ((complete[step] += classes.ranks[index].all) == world) stepEnds(now);
    }
  }

  /// The next of them.
  void stepEnds(double at) {
    double took = at - lastEnd;
    lastEnd = at;
    if (++ended == steps)
      while (result.stepEnds.size() + 1 < options.steps) add(settled);
    add(settled = took);
  }
  void add(double took) {
    result.stepEnds.push_back((result.stepEnds.empty() ? 0 : result.stepEnds.back()) + took);
    if (options.ended) options.ended(result.stepEnds.size(), took);
  }

  ClusterRun finished() {
    double counted = double(std::max<uint64_t>(steps - 1, 1));
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      RankTime time{classes.ranks[rank].first, classes.ranks[rank].all, ranks[rank].busy, ranks[rank].waited};
      for (auto *lanes : {&time.busy, &time.waited})
        for (double &seconds : *lanes) seconds /= counted;
      result.ranks.push_back(time);
    }
    return std::move(result);
  }

  const Cluster &cluster;
  const ClusterOptions &options;
  uint64_t world, steps; // that are walked
  Classes classes;
  std::vector<std::unique_ptr<Program>> programs; // by machine
  std::vector<Rank> ranks;                        // by class
  std::vector<Shared> resources;                  // of each rank, of each node the disks, and the link
  std::vector<size_t> versions;                   // of the time at which something ends on each
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
  std::array<Meeting, kLanes> meetings{};
  std::vector<uint64_t> complete; // ranks, by step
  ClusterRun result;
  uint64_t ended = 0;              // steps that were walked
  double lastEnd = 0, settled = 0; // of the last of them, and how long it took
  double now = 0;
};

} // namespace

ClusterRun runOn(const Cluster &cluster, const plan::Plan &plan, const ClusterOptions &options) {
  for (const auto &[rank, machine] : cluster.others)
    if (rank >= plan.world())
      throw Error("the machine's description has something of rank " + std::to_string(rank) + ", where the plan is for ranks 0 to " +
                  std::to_string(plan.world() - 1));
  return Simulation(cluster, plan, options).run();
}

} // namespace zero::simulate
