// The submissions to the cpu: a thread for each lane walks its operations of one program after another, as far as what they wait for
// allows. Where COMPUTE is the only lane its operations run on the host's thread, inside finish(): handing them over costs two wake-ups a
// program, which is a third of a step that takes microseconds, and there is nothing to run beside them. Nothing is allocated and nothing
// locked once the queue is made.
#pragma once
#include "runtime/device/cpu/lane.h"
#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace zero::runtime {

class CpuQueue {
public:
  // Collective: lanes that communicate get a communicator each. `pointer` must stay valid.
  CpuQueue(std::vector<CpuProgram> programs, Executor &executor, Pointer pointer, CommunicatorFactory &factory);
  ~CpuQueue(); // after what was submitted
  CpuQueue(const CpuQueue &) = delete;
  CpuQueue &operator=(const CpuQueue &) = delete;

  void submit(const Submission &submission);
  Completion finish();

private:
  struct Slot {
    Turn turn;
    Clock::time_point submitted;
    std::array<Lane::Account, kLanes> accounts;
    std::atomic<uint32_t> running{0}; // lane threads that have not left it
  };

  void makeLanes(CommunicatorFactory &factory);
  void startThreads();
  void end();
  void laneThread(int index);
  void runLane(int index, Slot &slot);
  void awaitLanes(const Slot &slot) const;
  const CpuEntry *entryOf(const CpuProgram &program) const;
  Slot &slotOf(uint32_t number) { return slots[number % kSubmissions]; }

  std::vector<CpuProgram> programs;
  Pointer pointer;
  Timeline timeline;
  LaneContext context;
  std::array<std::unique_ptr<Lane>, kLanes> lanes; // null: not in use
  std::array<Slot, kSubmissions> slots;

  // Numbers of submissions, which count from 1 and wrap.
  uint32_t submitted = 0, finished = 0;
  Ticks ends{};                             // the timeline's, when all that was submitted is complete
  bool failed = false;                      // and said so
  std::atomic<uint32_t> given{0};           // the last submission: what lanes wait for
  std::atomic<uint64_t> ending{UINT64_MAX}; // the number that is no submission: all threads end
  std::vector<std::thread> threads;
};

} // namespace zero::runtime
