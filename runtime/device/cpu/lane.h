// One lane of the cpu: walks its operations of a program in order, waits where they say so, and advances its tick.
#pragma once
#include "runtime/device/cpu/cpu_program.h"
#include "runtime/device/cpu/executor.h"
#include "runtime/device/cpu/timeline.h"
#include "runtime/device/device.h"

namespace zero::runtime {

// What all lanes share.
struct LaneContext {
  Executor &executor;
  Timeline &timeline;
  std::function<void()> onFailure; // after the timeline has failed: wakes lanes that wait inside a collective
  Clock::time_point start;         // of all traces
};

class Lane {
public:
  Lane(int index, LaneContext &context, std::unique_ptr<Communicator> communicator)
      : index(index), context(context), communicator(std::move(communicator)) {}

  // Never throws: failures go to the timeline. What it did is in `stats` and `events`, which has room for it if `submission.trace`.
  void run(const CpuProgram &program, const Submission &submission, LaneStats &stats, std::vector<TraceEvent> &events);

  void interrupt() {
    if (communicator) communicator->interrupt();
  }

private:
  int index;
  LaneContext &context;
  std::unique_ptr<Communicator> communicator; // null if the lane has no collectives
};

} // namespace zero::runtime
