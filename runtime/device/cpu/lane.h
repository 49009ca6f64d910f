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

using Ticks = std::array<uint32_t, kLanes>; // of the timeline, by lane

// A submission as lanes see it.
struct Turn {
  Submission submission;
  const CpuProgram *program = nullptr;
  const CpuEntry *entry = nullptr; // how it follows the one before it; null: when that is complete
  Ticks before{}, own{};           // where the ticks of the one before it begin to count, and its own
};

class Lane {
public:
  Lane(int index, LaneContext &context, std::unique_ptr<Communicator> communicator)
      : index(index), context(context), communicator(std::move(communicator)) {}

  // What a lane has to say of a submission.
  struct Account {
    LaneStats stats;
    std::vector<TraceEvent> events; // has room for all, if it is traced
    Clock::time_point begin, end;   // of the program, COMPUTE; of what it did itself, if it did anything
  };
  // Never throws: failures go to the timeline. COMPUTE transfers from the host before and to it after, by `pointer`.
  void run(const Turn &turn, const Pointer &pointer, Account &account);

  void interrupt() {
    if (communicator) communicator->interrupt();
  }

private:
  void enter(const Turn &turn, const Pointer &pointer, Account &account);
  void leave(const Turn &turn, const Pointer &pointer, Account &account);
  void await(const Turn &turn, const Ticks &origin, WaitRange range);

  int index;
  LaneContext &context;
  std::unique_ptr<Communicator> communicator; // null if the lane has no collectives
};

} // namespace zero::runtime
