#include "runtime/simulate/timeline.h"
#include "runtime/base/error.h"
#include "runtime/simulate/lanes.h"
#include <algorithm>
#include <limits>

namespace zero::simulate {
namespace {

/// From one moment at which a task ends to the next.
class Simulation {
public:
  explicit Simulation(std::span<const ProgramRun> runs) : sequence(runs), lanes(sequence) {
    for (const ProgramRun &run : runs) intervals.emplace_back(run.tasks.size());
  }

  std::vector<std::vector<Interval>> run() {
    do
      for (size_t lane = 0; lane < kLanes; ++lane) begin(lane);
    while (advance());
    if (lanes.complete() < sequence.size())
      throw Error("tasks of " + std::to_string(sequence.size() - lanes.complete()) +
                  " programs in a row wait for each other, so that none of them ends");
    return std::move(intervals);
  }

private:
  /// What a lane has under way.
  struct Work {
    TaskAt at;
    double left = 0; // seconds, alone
    Resource resource = kProcessors;
  };

  void begin(size_t lane) {
    std::optional<TaskAt> at = lanes.begin(lane);
    if (!at) return;
    const Task &task = sequence.task(*at);
    intervals[at->run][at->task].begin = now;
    work[lane] = {*at, task.seconds, task.resource};
    ++sharing[task.resource];
  }

  /// To the end of the next task; false if none is under way.
  bool advance() {
    size_t first = kLanes;
    double soonest = std::numeric_limits<double>::infinity();
    for (size_t lane = 0; lane < kLanes; ++lane)
      if (double needs = work[lane].left * sharing[work[lane].resource]; lanes.busy(lane) && needs < soonest) first = lane, soonest = needs;
    if (first == kLanes) return false;
    now += soonest;
    for (size_t lane = 0; lane < kLanes; ++lane)
      if (lanes.busy(lane)) work[lane].left = std::max(0.0, work[lane].left - soonest / sharing[work[lane].resource]);
    intervals[work[first].at.run][work[first].at.task].end = now;
    --sharing[work[first].resource];
    lanes.end(first);
    return true;
  }

  Sequence sequence;
  Lanes lanes;
  std::vector<std::vector<Interval>> intervals;
  std::array<Work, kLanes> work{};
  std::array<int, kResources> sharing{}; // lanes that use it now
  double now = 0;
};

} // namespace

std::vector<std::vector<Interval>> intervalsOf(std::span<const ProgramRun> runs) { return Simulation(runs).run(); }

} // namespace zero::simulate
