#include "runtime/device/cpu/lane.h"
#include "runtime/device/step_name.h"
#include <cstring>

namespace zero::runtime {
namespace {

double seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

} // namespace

void Lane::await(const Turn &turn, const Ticks &origin, WaitRange range) {
  for (uint32_t i = range.begin; i < range.end; ++i) {
    const LaneWait &wait = turn.program->waits[i];
    context.timeline.wait(index, wait.lane, origin[static_cast<size_t>(wait.lane)] + wait.tick);
  }
}

// Without an entry, COMPUTE waits until all lanes have ended the program before, and the others for what it brings.
void Lane::enter(const Turn &turn, const Pointer &pointer, Account &account) {
  Timeline &timeline = context.timeline;
  if (index != plan::COMPUTE) {
    if (!turn.entry) timeline.wait(index, plan::COMPUTE, turn.own[plan::COMPUTE]);
    return;
  }
  if (turn.entry)
    await(turn, turn.before, turn.entry->inputWaits);
  else
    for (int lane = 0; lane < kLanes; ++lane)
      if (lane != index) timeline.wait(index, lane, turn.own[static_cast<size_t>(lane)]);
  account.begin = Clock::now();
  if (timeline.hasFailed()) return;
  for (const HostTransfer &write : turn.submission.writes) std::memcpy(pointer(write.at), write.host.data(), write.host.size());
  timeline.advance(index);
}

void Lane::leave(const Turn &turn, const Pointer &pointer, Account &account) {
  if (index != plan::COMPUTE) return;
  await(turn, turn.own, turn.program->resultWaits);
  if (context.timeline.hasFailed()) return;
  for (const HostTransfer &read : turn.submission.reads) std::memcpy(read.host.data(), pointer(read.at), read.host.size());
  account.end = Clock::now();
  context.timeline.advance(index);
}

void Lane::run(const Turn &turn, const Pointer &pointer, Account &account) {
  Timeline &timeline = context.timeline;
  const CpuProgram &program = *turn.program;
  const auto lane = static_cast<size_t>(index);
  LaneStats &stats = account.stats;
  const CpuOperation *current = nullptr;
  uint64_t sentBefore = communicator ? communicator->bytesSent() : 0;
  stats = {};
  account.end = {};
  enter(turn, pointer, account);
  std::span<const Entry::Joins> joins;
  if (turn.entry) joins = turn.entry->waits[lane];
  try {
    Clock::time_point begin;
    bool first = true; // of its step
    for (const CpuOperation &operation : program.lanes[lane]) {
      current = &operation;
      await(turn, turn.own, {operation.waitBegin, operation.waitEnd});
      for (; !joins.empty() && &program.lanes[lane][joins.front().operation] == current; joins = joins.subspan(1)) {
        const LaneWait &wait = joins.front().wait;
        timeline.wait(index, wait.lane, turn.before[static_cast<size_t>(wait.lane)] + wait.tick);
      }
      if (timeline.hasFailed()) return;
      if (first) begin = Clock::now();
      if (operation.update && turn.submission.beforeUpdate) (*turn.submission.beforeUpdate)(*operation.update);
      context.executor.run(operation.call, communicator.get());
      first = operation.signals;
      if (!operation.signals) continue;
      account.end = Clock::now();
      stats.busySeconds += seconds(account.end - begin);
      ++stats.steps;
      if (turn.submission.trace)
        account.events.push_back(
            {turn.submission.program, operation.step, index, seconds(begin - context.start), seconds(account.end - context.start)});
      timeline.advance(index);
    }
    stats.bytes = program.copied[lane] + (communicator ? communicator->bytesSent() - sentBefore : 0);
    leave(turn, pointer, account);
  } catch (const std::exception &error) {
    timeline.fail(withPlace(stepName(*program.source, current->step), error));
    context.onFailure();
  }
}

} // namespace zero::runtime
