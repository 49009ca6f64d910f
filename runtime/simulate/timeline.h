//===- timeline.h - lanes in virtual time -----------------------------------------------------------------===//
// Each lane does its tasks one after another; a task also waits for ticks of other lanes. Lanes may share a resource, as the two ways to
// and from a disk do: what they have under way together gets equal shares of it, and it never rests while one of them has something to do.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace zero::simulate {

inline constexpr int kLanes = 11; // plan.Lane

/// What lanes work with.
enum Resource { kProcessors, kLink, kToDevice, kToHost, kDisk, kHost, kResources };
/// As a rule.
Resource resourceOf(int lane);

/// Until `tick` tasks of the lane are complete; of all, if it has fewer.
struct LaneTick {
  int lane = 0;
  uint64_t tick = 0;
};

struct Task {
  Task(int lane, double seconds, std::vector<LaneTick> waits = {})
      : lane(lane), resource(resourceOf(lane)), seconds(seconds), waits(std::move(waits)) {}
  int lane;
  Resource resource;
  double seconds;              // with the resource to itself
  std::vector<LaneTick> waits; // for tasks of the same run
};

/// What a task waits for in the run before.
struct EntryWait {
  size_t task = 0;
  LaneTick wait;
};

/// Tasks of one program, each lane's in their order. Its lanes run on from those of the run before, while what came before that one is
/// complete; or, drained, begin when all that came before is.
struct ProgramRun {
  std::span<const Task> tasks;
  bool drained = true;
  std::span<const EntryWait> entry{}; // by task; none where it is drained
};

/// When a task begins and ends.
struct Interval {
  double begin = 0, end = 0;
};

/// Of each task, by run. Throws zero::Error where one waits for what never comes.
std::vector<std::vector<Interval>> intervalsOf(std::span<const ProgramRun> runs);

} // namespace zero::simulate
