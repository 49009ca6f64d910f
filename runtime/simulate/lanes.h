//===- lanes.h - which tasks of a rank may go on ----------------------------------------------------------===//
// The rules by which lanes follow each other, without time: who walks them says when a task ends.
#pragma once
#include "runtime/simulate/tasks.h"
#include <map>
#include <optional>

namespace zero::simulate {

/// Runs of programs in a row.
class Sequence {
public:
  /// Those of `runs`, which the caller keeps, one after another.
  explicit Sequence(std::span<const ProgramRun> runs) : Sequence(runs, 0, runs.size()) {}
  Sequence(const Sequence &) = delete; // it has pointers into itself
  Sequence &operator=(const Sequence &) = delete;
  /// `count` of them: after the last of `runs` the last `period` come again and again.
  Sequence(std::span<const ProgramRun> runs, size_t period, size_t count);

  size_t size() const { return count; }
  const ProgramRun &run(size_t at) const { return runs[placeOf(at)]; }
  const Task &task(TaskAt at) const { return run(at.run).tasks[at.task]; }
  /// Tasks of a lane, in its order.
  const std::vector<size_t> &lane(size_t at, size_t lane) const { return (*orders[placeOf(at)])[lane]; }

private:
  size_t placeOf(size_t at) const { return at < runs.size() ? at : runs.size() - period + (at - runs.size()) % period; }

  using Order = std::array<std::vector<size_t>, kLanes>;
  std::span<const ProgramRun> runs;
  size_t period, count;
  std::map<const Task *, Order> programs; // by their tasks
  std::vector<const Order *> orders;      // of each of `runs`
};

/// How far the lanes of one rank have come in a sequence, which the caller keeps.
class Lanes {
public:
  explicit Lanes(const Sequence &sequence);

  /// The task that a lane begins now; none if it has one under way, if that waits for something, and after the last.
  std::optional<TaskAt> begin(size_t lane);
  /// The task that a lane has under way is done.
  void end(size_t lane);
  bool busy(size_t lane) const { return lanes[lane].busy; }
  /// Runs that are complete, all that came before them with them.
  size_t complete() const { return completed; }

private:
  struct Run {
    std::array<uint64_t, kLanes> done{}; // tasks of each lane
    size_t left = 0;
  };
  struct Lane {
    size_t run = 0, next = 0; // of the run's tasks of this lane
    bool busy = false;
  };

  void passComplete();
  bool mayBegin(TaskAt at) const;
  bool reached(size_t run, const LaneTick &wait) const;
  Run &stateOf(size_t run) { return states[run % states.size()]; }
  const Run &stateOf(size_t run) const { return states[run % states.size()]; }

  const Sequence &sequence;
  std::array<Run, 2> states; // of the first run that is not complete, and of the next: no lane goes further
  std::array<Lane, kLanes> lanes{};
  size_t completed = 0;
};

} // namespace zero::simulate
