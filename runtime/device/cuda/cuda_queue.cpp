#include "runtime/device/cuda/cuda_queue.h"
#include "runtime/base/error.h"
#include "runtime/device/step_name.h"
#include <algorithm>
#include <thread>

namespace zero::runtime::cuda {
namespace {

constexpr auto kLook = std::chrono::microseconds(50); // between two looks at what is waited for

} // namespace

CudaQueue::CudaQueue(std::vector<CudaProgram> given, std::function<Pointer(Address)> pointer, const Issuer &issuer, Failure &failure,
                     bool useGraphs)
    : driver(Driver::get()), programs(std::move(given)), graphs(programs.size()), useGraphs(useGraphs), pointer(std::move(pointer)),
      issuer(issuer), failure(failure) {
  for (size_t lane = 0; lane < kLanes; ++lane)
    if (lane == plan::COMPUTE || std::ranges::any_of(programs, [&](const CudaProgram &program) { return program.uses[lane]; }))
      streams[lane] = makeStream();
  makeEvents();
  record(timeline->beginOf(0), plan::COMPUTE);
  await(timeline->beginOf(0));
  shown = makeEvent(kUntimed);
  timeline->start();
}

CudaQueue::~CudaQueue() {
  while (finished != submitted) try {
      finish();
    } catch (...) { // said to nobody: who ends the queue has a failure of its own
    }
  drain();
}

void CudaQueue::makeEvents() {
  std::array<bool, kLanes> lanes;
  std::ranges::transform(streams, lanes.begin(), [](const OwnedStream &each) { return bool(each); });
  timeline.emplace(lanes);
  for (Slot &slot : slots) {
    auto needs = [&](const LaneWait &wait) {
      auto &events = slot.ticks[static_cast<size_t>(wait.lane)];
      if (events.size() <= wait.tick) events.resize(wait.tick + 1);
      if (!events[wait.tick]) events[wait.tick] = makeEvent(kUntimed);
    };
    needs({plan::COMPUTE, 0}); // what all lanes wait for after a program that must be complete
    for (const CudaProgram &program : programs) {
      std::ranges::for_each(program.resultWaits, needs);
      for (const CudaOperation &operation : program.operations) std::ranges::for_each(operation.waits, needs);
      for (const CudaEntry &entry : program.entries) {
        std::ranges::for_each(entry.inputWaits, needs);
        for (const CudaEntry::Joins &joins : entry.waits) needs(joins.wait);
      }
    }
  }
}

// ------------------------------------------------------------------------------------------------ into the streams

void CudaQueue::wait(int lane, EventHandle event) {
  driver.require(driver.streamWaitEvent(stream(lane), event, 0), "cannot let a lane wait for another");
}

void CudaQueue::wait(int lane, const Slot &slot, const LaneWait &wait) {
  this->wait(lane, slot.ticks[static_cast<size_t>(wait.lane)][wait.tick].get());
}

void CudaQueue::record(const OwnedEvent &event, int lane) {
  driver.require(driver.eventRecord(event.get(), stream(lane)), "cannot record an event");
}

// How the next program follows the one submitted last; null if that must be complete.
const CudaEntry *CudaQueue::entryOf(const CudaProgram &program) const {
  if (submitted == 0) return nullptr;
  uint32_t last = slots[submitted % kSubmissions].submission.program;
  auto found = std::ranges::find(program.entries, last, &CudaEntry::after);
  return found == program.entries.end() ? nullptr : &*found;
}

void CudaQueue::submit(const Submission &submission) {
  if (submitted - finished == kSubmissions)
    throw Error("a program was submitted while too many were under way: this is an error in zerorun");
  const CudaProgram &program = programs[submission.program];
  const CudaEntry *entry = entryOf(program);
  const Slot &before = slotOf(submitted);
  Slot &slot = slotOf(++submitted);
  slot.submission = submission, slot.program = &program, slot.submitted = Clock::now();
  timeline->clearSteps(submitted);
  if (failure.has()) return;
  const CudaOperation *current = nullptr;
  try {
    putInputs(slot, before, entry);
    const Graphs *asGraphs = graphsFor(submission);
    std::span<const CudaEntry::Joins> joins;
    if (entry) joins = entry->waits;
    for (uint32_t i = 0; i < program.operations.size(); ++i) {
      current = &program.operations[i];
      for (; !joins.empty() && joins.front().operation == i; joins = joins.subspan(1)) wait(current->lane, before, joins.front().wait);
      if (!asGraphs)
        putOperation(slot, *current);
      else if (const Graphs::Graph *graph = asGraphs->beginningWith(i))
        putGraph(slot, *graph);
      else if (!asGraphs->holds(i))
        putOperation(slot, *current);
    }
    current = nullptr;
    putResults(slot);
  } catch (const std::exception &error) {
    std::string where = current ? stepName(*program.source, current->step) : "program '" + program.source->name() + "'";
    failure.set(withPlace(where, error));
  }
}

// Null: as streams, as the first time, or because its steps are looked at one by one.
const Graphs *CudaQueue::graphsFor(const Submission &submission) {
  if (!useGraphs || submission.trace || submission.beforeUpdate) return nullptr;
  const CudaProgram &program = programs[submission.program];
  std::optional<Graphs> &made = graphs[submission.program];
  if (!made) {
    made.emplace(program, [this](int lane, uint32_t tick) {
      const auto &events = slots[0].ticks[static_cast<size_t>(lane)];
      return tick < events.size() && events[tick];
    });
    return nullptr;
  }
  if (!made->captured()) made->capture(program, issuer, [this](int lane) { return stream(lane); });
  return &*made;
}

// Without an entry, COMPUTE waits until all lanes have ended the program before, and the others for what it brings.
void CudaQueue::putInputs(Slot &slot, const Slot &before, const CudaEntry *entry) {
  if (entry)
    for (const LaneWait &each : entry->inputWaits) wait(plan::COMPUTE, before, each);
  else if (submitted > 1)
    for (const OwnedEvent &end : timeline->endsOf(submitted - 1))
      if (end) wait(plan::COMPUTE, end.get());
  record(timeline->beginOf(submitted), plan::COMPUTE);
  for (const HostTransfer &write : slot.submission.writes) copy(pointer(write.at), pointerTo(write.host.data()), write.host.size());
  const OwnedEvent &brought = slot.ticks[plan::COMPUTE][0];
  record(brought, plan::COMPUTE);
  for (int lane = 0; !entry && lane < kLanes; ++lane)
    if (lane != plan::COMPUTE && streams[static_cast<size_t>(lane)]) wait(lane, brought.get());
}

void CudaQueue::putOperation(Slot &slot, const CudaOperation &operation) {
  for (const LaneWait &each : operation.waits) wait(operation.lane, slot, each);
  if (operation.update && slot.submission.beforeUpdate) showUpdate(slot, operation);
  if (slot.submission.trace && operation.begins) timeline->stepBegins(submitted, operation.step, operation.lane, stream(operation.lane));
  issuer.put(operation.call, operation.lane, stream(operation.lane));
  if (slot.submission.trace && operation.signals) timeline->stepEnds(submitted, operation.lane, stream(operation.lane));
  recordTick(slot, operation);
}

void CudaQueue::putGraph(Slot &slot, const Graphs::Graph &graph) {
  const CudaOperation &first = slot.program->operations[graph.segment.front()];
  for (const LaneWait &each : first.waits) wait(first.lane, slot, each);
  driver.require(driver.graphLaunch(graph.exec.get(), stream(first.lane)), "cannot launch its graph");
  recordTick(slot, slot.program->operations[graph.segment.back()]);
}

void CudaQueue::recordTick(const Slot &slot, const CudaOperation &operation) {
  const auto &events = slot.ticks[static_cast<size_t>(operation.lane)];
  if (operation.signals && operation.tick < events.size() && events[operation.tick]) record(events[operation.tick], operation.lane);
}

void CudaQueue::putResults(Slot &slot) {
  for (const LaneWait &each : slot.program->resultWaits) wait(plan::COMPUTE, slot, each);
  for (const HostTransfer &read : slot.submission.reads) copy(pointerTo(read.host.data()), pointer(read.at), read.host.size());
  const auto &events = slot.ticks[plan::COMPUTE];
  uint32_t last = slot.program->ticks[plan::COMPUTE];
  if (last < events.size() && events[last]) record(events[last], plan::COMPUTE);
  for (int lane = 0; lane < kLanes; ++lane)
    if (const OwnedEvent &end = timeline->endsOf(submitted)[static_cast<size_t>(lane)]) record(end, lane);
}

void CudaQueue::copy(Pointer to, Pointer from, uint64_t bytes) {
  issuer.put(CopyCall{to, from, bytes}, plan::COMPUTE, stream(plan::COMPUTE));
}

// The gradient is complete as soon as all is that the update waits for: the host waits for it, which only the step that shows gradients
// does.
void CudaQueue::showUpdate(const Slot &slot, const CudaOperation &operation) {
  record(shown, operation.lane);
  await(shown);
  if (failure.has()) failure.rethrow();
  (*slot.submission.beforeUpdate)(*operation.update);
}

// ------------------------------------------------------------------------------------------------ and out of them

Completion CudaQueue::finish() {
  if (submitted == finished) throw Error("nothing was submitted: this is an error in zerorun");
  Slot &slot = slotOf(++finished);
  if (failed) throw Error("no program can run after a step has failed");
  Completion completion;
  try {
    if (failure.has()) failure.rethrow();
    for (const OwnedEvent &end : timeline->endsOf(finished))
      if (end) await(end);
    completion = completionOf(slot);
  } catch (const std::exception &error) {
    if (!failure.has()) failure.set(withPlace("program '" + slot.program->source->name() + "'", error));
  }
  if (!failure.has()) return completion;
  failed = true;
  if (issuer.collectives) issuer.collectives->abort();
  drain();
  failure.rethrow();
}

Completion CudaQueue::completionOf(Slot &slot) {
  Completion completion = timeline->completionOf(finished, slot.submission.program, slot.submitted);
  for (size_t lane = 0; lane < kLanes; ++lane) {
    completion.lanes[lane].steps = slot.program->ticks[lane] - (lane == plan::COMPUTE);
    completion.lanes[lane].bytes = slot.program->moved[lane];
  }
  return completion;
}

// A collective may wait for a rank that is no more: who has some looks at them while it waits.
void CudaQueue::await(const OwnedEvent &event) const {
  const char *what = "the GPU failed";
  if (!issuer.collectives) return driver.require(driver.eventSynchronize(event.get()), what);
  auto since = Clock::now();
  for (Status status; (status = driver.eventQuery(event.get())) != kSuccess;) {
    if (status != kNotReady) driver.require(status, what);
    issuer.collectives->check(since);
    std::this_thread::sleep_for(kLook);
  }
}

// Until nothing is under way any more, whatever became of it: memory may go then.
void CudaQueue::drain() noexcept {
  for (const OwnedStream &each : streams)
    if (each) driver.streamSynchronize(each.get());
}

} // namespace zero::runtime::cuda
