// One lane: walks its operations of a program in order, waits where they say so, and advances its tick. COMPUTE runs on
// the caller's thread; every other lane in use has a thread of its own.
#pragma once
#include "runtime/engine/engine.h"
#include "runtime/engine/resolve.h"
#include "runtime/engine/timeline.h"
#include <chrono>

namespace zero::runtime {

using Clock = std::chrono::steady_clock;

// What all lanes share and none of them changes while a program runs.
struct LaneContext {
  const plan::Plan *plan = nullptr;
  Device *device = nullptr;
  Timeline *timeline = nullptr;
  Engine::UpdateHook hook;
  std::function<void()> onFailure; // after the timeline has failed: wakes lanes that wait inside a collective
  Clock::time_point start;
  bool trace = false;
};

class Lane {
public:
  Lane(int index, LaneContext &context, std::unique_ptr<Communicator> communicator)
      : index(index), context(context), communicator(std::move(communicator)) {}

  // Never throws: failures go to the timeline.
  void run(uint32_t programIndex, const ResolvedProgram &program);

  void interrupt() {
    if (communicator) communicator->interrupt();
  }
  LaneStats stats() const;
  void resetStats();

  std::vector<TraceEvent> events; // room is made before a program starts

private:
  void execute(const Operation &operation);

  int index;
  LaneContext &context;
  std::unique_ptr<Communicator> communicator; // null if the lane has no collectives
  double busySeconds = 0;
  uint64_t steps = 0, copied = 0, sentBefore = 0;
};

} // namespace zero::runtime
