#include "runtime/device/cpu/queue.h"
#include "runtime/base/error.h"
#include "runtime/process/start_thread.h"
#include "runtime/process/wake_soon.h"
#include <algorithm>

namespace zero::runtime {
namespace {

// Until `word`, which rises and wraps, has reached `value`.
void awaitReached(const std::atomic<uint32_t> &word, uint32_t value) {
  for (uint32_t now = word.load(std::memory_order_acquire); static_cast<int32_t>(now - value) < 0;) now = awaitChange(word, now);
}

// An exchange: after a plain store the processor may read first, in notify_all, whether anybody sleeps, and then nobody is woken.
void announce(std::atomic<uint32_t> &word, uint32_t value) {
  word.exchange(value, std::memory_order_seq_cst);
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
  if (std::ranges::count_if(lanes, [](const auto &lane) { return lane != nullptr; }) == 1) return;
  try {
    for (int index = 0; index < kLanes; ++index)
      if (lanes[static_cast<size_t>(index)])
        threads.push_back(
            startThread("the thread of lane " + plan::Lane_Name(static_cast<plan::Lane>(index)), [this, index] { laneThread(index); }));
  } catch (...) {
    end();
    throw;
  }
}

void CpuQueue::end() {
  uint32_t next = given.load(std::memory_order_relaxed) + 1;
  ending.store(next, std::memory_order_relaxed);
  announce(given, next);
  for (std::thread &thread : threads) thread.join();
}

// How the next program follows the one submitted last; null if it must be complete. If that is finished nothing has to be waited for, which
// the waits of an entry say as well.
const CpuEntry *CpuQueue::entryOf(const CpuProgram &program) const {
  if (submitted == 0) return nullptr;
  uint32_t last = slots[submitted % kSubmissions].turn.submission.program;
  auto found = std::ranges::find(program.entries, last, &CpuEntry::after);
  return found == program.entries.end() ? nullptr : &*found;
}

void CpuQueue::submit(const Submission &submission) {
  if (submitted - finished == kSubmissions)
    throw Error("a program was submitted while too many were under way: this is an error in zerorun");
  const CpuProgram &program = programs[submission.program];
  Turn turn{submission, &program, entryOf(program), slotOf(submitted).turn.own, ends};
  ++turn.own[plan::COMPUTE]; // tick 0: the transfers from the host
  for (size_t lane = 0; lane < kLanes; ++lane) ends[lane] += program.steps[lane];
  ends[plan::COMPUTE] += 2;
  Slot &slot = slotOf(++submitted);
  slot.turn = turn;
  slot.submitted = Clock::now();
  if (submission.trace)
    for (size_t lane = 0; lane < kLanes; ++lane) slot.accounts[lane].events.reserve(program.lanes[lane].size());
  if (threads.empty()) return;
  slot.running.store(static_cast<uint32_t>(threads.size()), std::memory_order_relaxed);
  announce(given, submitted);
}

Completion CpuQueue::finish() {
  if (submitted == finished) throw Error("nothing was submitted: this is an error in zerorun");
  Slot &slot = slotOf(finished + 1);
  if (threads.empty()) runLane(plan::COMPUTE, slot);
  awaitLanes(slot);
  ++finished;
  if (failed) throw Error("no program can run after a step has failed");
  if (timeline.hasFailed()) { // in this program, or in the one that has begun after it
    for (const Slot &each : slots) awaitLanes(each);
    failed = true;
    std::rethrow_exception(timeline.reason());
  }
  Completion completion{slot.submitted, slot.accounts[plan::COMPUTE].begin, {}, {}, {}};
  for (size_t lane = 0; lane < kLanes; ++lane) {
    Lane::Account &account = slot.accounts[lane];
    completion.lanes[lane] = account.stats;
    completion.end = std::max(completion.end, account.end);
    completion.events.insert(completion.events.end(), account.events.begin(), account.events.end());
    account.events.clear();
  }
  return completion;
}

void CpuQueue::awaitLanes(const Slot &slot) const {
  for (uint32_t left; (left = slot.running.load(std::memory_order_acquire)) != 0;) awaitChange(slot.running, left);
}

void CpuQueue::laneThread(int index) {
  if (index != plan::COMPUTE) wakeSoon();
  for (uint32_t next = 1;; ++next) {
    awaitReached(given, next);
    if (ending.load(std::memory_order_relaxed) == next) return;
    Slot &slot = slotOf(next);
    runLane(index, slot);
    if (slot.running.fetch_sub(1, std::memory_order_acq_rel) == 1) slot.running.notify_one();
  }
}

void CpuQueue::runLane(int index, Slot &slot) {
  auto lane = static_cast<size_t>(index);
  lanes[lane]->run(slot.turn, pointer, slot.accounts[lane]);
}

} // namespace zero::runtime
