// The submissions to the cpu, one after another. COMPUTE's operations run on the host's thread, inside finish(): handing them to a thread
// of their own costs two wake-ups a program, which is a third of a step that takes microseconds. All other lanes have threads, which set
// off as soon as the submission before is complete. Nothing is allocated and nothing locked once the queue is made.
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
    Submission submission;
    Completion completion;
    std::array<std::vector<TraceEvent>, kLanes> events;
  };

  void makeLanes(CommunicatorFactory &factory);
  void startThreads();
  void end();
  void begin();
  void laneThread(int index);
  void runLane(int index, Slot &slot);
  Slot &slotOf(uint32_t number) { return slots[number % kSubmissions]; }

  std::vector<CpuProgram> programs;
  Pointer pointer;
  Timeline timeline;
  LaneContext context;
  std::array<std::unique_ptr<Lane>, kLanes> lanes; // null: not in use
  std::array<Slot, kSubmissions> slots;

  // Numbers of submissions, which count from 1 and wrap.
  uint32_t submitted = 0, finished = 0;
  bool failed = false;                      // and said so
  std::atomic<uint32_t> begun{0};           // what lanes wait for
  std::atomic<uint64_t> ending{UINT64_MAX}; // the number that is no submission: all threads end
  std::atomic<uint32_t> running{0};         // lane threads inside the program
  std::vector<std::thread> threads;
};

} // namespace zero::runtime
