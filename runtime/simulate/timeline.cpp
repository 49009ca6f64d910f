#include "runtime/simulate/timeline.h"
#include "runtime/plan/error.h"
#include "runtime/plan/plan.pb.h"
#include <algorithm>
#include <limits>

namespace zero::simulate {
namespace {

using Ticks = std::array<uint64_t, kLanes>;

/// From one moment at which a task ends to the next.
class Simulation {
public:
  explicit Simulation(std::span<const ProgramRun> runs) : runs(runs), states(runs.size()) {
    for (size_t run = 0; run < runs.size(); ++run) {
      State &state = states[run];
      state.intervals.resize(runs[run].tasks.size());
      state.left = runs[run].tasks.size();
      for (size_t task = 0; task < runs[run].tasks.size(); ++task) state.order[size_t(runs[run].tasks[task].lane)].push_back(task);
    }
  }

  std::vector<std::vector<Interval>> run() {
    for (;;) {
      while (complete < runs.size() && !states[complete].left) ++complete;
      for (size_t lane = 0; lane < kLanes; ++lane) begin(lane);
      if (!advance()) break;
    }
    if (complete < runs.size())
      throw Error("tasks of " + std::to_string(runs.size() - complete) +
                  " programs in a row wait for each other, so that none of them ends");
    std::vector<std::vector<Interval>> intervals;
    for (State &state : states) intervals.push_back(std::move(state.intervals));
    return intervals;
  }

private:
  /// Of a run.
  struct State {
    std::array<std::vector<size_t>, kLanes> order; // tasks
    Ticks done{};
    size_t left = 0; // tasks that have not ended
    std::vector<Interval> intervals;
  };

  /// What a lane is at.
  struct Lane {
    size_t run = 0, next = 0; // of the run's tasks of this lane
    bool busy = false;
    double left = 0;                 // seconds of the task under way, alone
    Resource resource = kProcessors; // of that
  };

  void begin(size_t at) {
    Lane &lane = lanes[at];
    if (lane.busy) return;
    for (; lane.run < runs.size() && lane.next == states[lane.run].order[at].size(); ++lane.run) lane.next = 0;
    if (lane.run == runs.size() || !mayBegin(lane.run, states[lane.run].order[at][lane.next])) return;
    lane.busy = true;
    size_t index = states[lane.run].order[at][lane.next];
    const Task &task = runs[lane.run].tasks[index];
    states[lane.run].intervals[index].begin = now;
    lane.left = task.seconds, lane.resource = task.resource;
    ++sharing[lane.resource];
  }

  bool mayBegin(size_t run, size_t task) const {
    const ProgramRun &mine = runs[run];
    if (complete + (mine.drained ? 0 : 1) < run) return false;
    for (const LaneTick &wait : mine.tasks[task].waits)
      if (!reached(run, wait)) return false;
    if (run == 0) return true;
    auto entry =
        std::lower_bound(mine.entry.begin(), mine.entry.end(), task, [](const EntryWait &wait, size_t at) { return wait.task < at; });
    for (; entry != mine.entry.end() && entry->task == task; ++entry)
      if (!reached(run - 1, entry->wait)) return false;
    return true;
  }

  bool reached(size_t run, const LaneTick &wait) const {
    auto lane = size_t(wait.lane);
    return states[run].done[lane] >= std::min<uint64_t>(wait.tick, states[run].order[lane].size());
  }

  /// To the end of the next task; false if none is under way.
  bool advance() {
    size_t first = kLanes;
    double soonest = std::numeric_limits<double>::infinity();
    for (size_t lane = 0; lane < kLanes; ++lane)
      if (double needs = lanes[lane].left * sharing[lanes[lane].resource]; lanes[lane].busy && needs < soonest)
        first = lane, soonest = needs;
    if (first == kLanes) return false;
    now += soonest;
    for (size_t lane = 0; lane < kLanes; ++lane)
      if (lanes[lane].busy) lanes[lane].left = std::max(0.0, lanes[lane].left - soonest / sharing[lanes[lane].resource]);
    Lane &lane = lanes[first];
    State &state = states[lane.run];
    state.intervals[state.order[first][lane.next++]].end = now;
    ++state.done[first], --state.left;
    lane.busy = false;
    --sharing[lane.resource];
    return true;
  }

  std::span<const ProgramRun> runs;
  std::vector<State> states;
  std::array<Lane, kLanes> lanes{};
  std::array<int, kResources> sharing{}; // lanes that use it now
  size_t complete = 0;                   // runs, all that came before them with them
  double now = 0;
};

} // namespace

static_assert(kLanes == plan::Lane_ARRAYSIZE);
Resource resourceOf(int lane) {
  switch (lane) {
  case plan::GATHER:
  case plan::REDUCE:
    return kLink;
  case plan::TO_DEVICE:
    return kToDevice;
  case plan::TO_HOST:
    return kToHost;
  case plan::DISK_READ:
  case plan::DISK_WRITE:
  case plan::UPDATE_READ:
  case plan::UPDATE_WRITE:
    return kDisk;
  case plan::UPDATE_HOST:
    return kHost;
  default:
    return kProcessors;
  }
}

std::vector<std::vector<Interval>> intervalsOf(std::span<const ProgramRun> runs) { return Simulation(runs).run(); }

} // namespace zero::simulate
