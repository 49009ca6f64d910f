#include "runtime/device/cpu/queue.h"
#include "runtime/plan/error.h"
#include "runtime/plan/start_thread.h"
#include <cstring>

namespace zero::runtime {
namespace {

// Until `word` is no longer `old`.
uint32_t awaitNext(const std::atomic<uint32_t> &word, uint32_t old) {
  uint32_t value;
  while ((value = awaitChange(word, old)) == old) {
  }
  return value;
}

void announce(std::atomic<uint32_t> &word, uint32_t value) {
  word.store(value, std::memory_order_release);
  word.notify_all();
}

} // namespace

CpuQueue::CpuQueue(std::vector<CpuProgram> given, Executor &executor, Pointer pointer, CommunicatorFactory &factory)
    : programs(std::move(given)), pointer(std::move(pointer)), context{executor, timeline, {}, Clock::now()} {
  context.onFailure = [this] {
    for (auto &lane : lanes)
      if (lane) lane->interrupt();
  };
  makeLanes(factory);
  startThreads();
}

CpuQueue::~CpuQueue() {
  while (finished != submitted) try {
      finish();
    } catch (...) { // said to nobody: who ends the queue has a failure of its own
    }
  end();
}

// Every rank goes through the same lanes of the same plan.
void CpuQueue::makeLanes(CommunicatorFactory &factory) {
  for (int index = 0; index < kLanes; ++index) {
    bool used = index == plan::COMPUTE, communicates = false;
    for (const CpuProgram &program : programs) {
      used = used || !program.lanes[static_cast<size_t>(index)].empty();
      communicates = communicates || program.communicates(index);
    }
    if (used) lanes[static_cast<size_t>(index)] = std::make_unique<Lane>(index, context, communicates ? factory.create() : nullptr);
  }
}

void CpuQueue::startThreads() {
  try {
    for (int index = 0; index < kLanes; ++index)
      if (index != plan::COMPUTE && lanes[static_cast<size_t>(index)])
        threads.push_back(
            startThread("the thread of lane " + plan::Lane_Name(static_cast<plan::Lane>(index)), [this, index] { laneThread(index); }));
  } catch (...) {
    end();
    throw;
  }
}

void CpuQueue::end() {
  uint32_t next = begun.load(std::memory_order_relaxed) + 1;
  ending.store(next, std::memory_order_relaxed);
  announce(begun, next);
  for (std::thread &thread : threads) thread.join();
}

void CpuQueue::submit(const Submission &submission) {
  if (submitted - finished == kSubmissions)
    throw Error("a program was submitted while too many were under way: this is an error in zerorun");
  Slot &slot = slotOf(++submitted);
  slot.submission = submission;
  slot.completion.submitted = Clock::now();
  if (submission.trace)
    for (size_t i = 0; i < kLanes; ++i) slot.events[i].reserve(programs[submission.program].lanes[i].size());
  if (submitted - finished == 1) begin();
}

// The oldest that is not finished: its inputs are taken, and all lanes but COMPUTE set off.
void CpuQueue::begin() {
  if (timeline.hasFailed()) return;
  Slot &slot = slotOf(finished + 1);
  slot.completion.begin = Clock::now();
  for (const HostTransfer &write : slot.submission.writes) std::memcpy(pointer(write.at), write.host.data(), write.host.size());
  timeline.reset();
  if (threads.empty()) return;
  running.store(static_cast<uint32_t>(threads.size()), std::memory_order_relaxed);
  announce(begun, finished + 1);
}

Completion CpuQueue::finish() {
  if (submitted == finished) throw Error("nothing was submitted: this is an error in zerorun");
  Slot &slot = slotOf(finished + 1);
  if (timeline.hasFailed() && failed) {
    ++finished;
    throw Error("no program can run after a step has failed");
  }
  runLane(plan::COMPUTE, slot);
  for (uint32_t left; (left = running.load(std::memory_order_acquire)) != 0;) awaitChange(running, left);
  for (const HostTransfer &read : slot.submission.reads) std::memcpy(read.host.data(), pointer(read.at), read.host.size());
  slot.completion.end = Clock::now();
  ++finished;
  if (timeline.hasFailed()) {
    failed = true;
    std::rethrow_exception(timeline.reason());
  }
  if (submitted != finished) begin();
  Completion completion = slot.completion;
  for (std::vector<TraceEvent> &events : slot.events) {
    completion.events.insert(completion.events.end(), events.begin(), events.end());
    events.clear();
  }
  return completion;
}

void CpuQueue::laneThread(int index) {
  for (uint32_t seen = 0;;) {
    seen = awaitNext(begun, seen);
    if (ending.load(std::memory_order_relaxed) == seen) return;
    runLane(index, slotOf(seen));
    if (running.fetch_sub(1, std::memory_order_acq_rel) == 1) running.notify_one();
  }
}

void CpuQueue::runLane(int index, Slot &slot) {
  auto i = static_cast<size_t>(index);
  lanes[i]->run(programs[slot.submission.program], slot.submission, slot.completion.lanes[i], slot.events[i]);
}

} // namespace zero::runtime
