//===- tasks.h - what lanes do, as tasks that take time ---------------------------------------------------===//
#pragma once
#include "runtime/plan/plan.pb.h"
#include <cstdint>
#include <span>
#include <vector>

namespace zero::simulate {

inline constexpr int kLanes = plan::Lane_ARRAYSIZE;

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
  bool meets = false;          // all ranks do it together, from when the last of them comes to it
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

/// A task of a run.
struct TaskAt {
  size_t run = 0, task = 0;
};

} // namespace zero::simulate
