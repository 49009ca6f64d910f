#include "runtime/simulate/lanes.h"
#include "runtime/plan/plan.pb.h"
#include <algorithm>

namespace zero::simulate {

Resource resourceOf(int lane) {
  switch (lane) {
  case plan::GATHER:
  case plan::REDUCE:
    return kLink;
  case plan::TO_DEVICE:
    return kToDevice;
  case plan::TO_HOST:
    return kToHost;
  case plan::DISK_READ:
  case plan::DISK_WRITE:
  case plan::UPDATE_READ:
  case plan::UPDATE_WRITE:
    return kDisk;
  case plan::UPDATE_HOST:
    return kHost;
  default:
    return kProcessors;
  }
}

Sequence::Sequence(std::span<const ProgramRun> runs, size_t period, size_t count) : runs(runs), period(period), count(count) {
  for (const ProgramRun &run : runs) {
    auto [program, isNew] = programs.try_emplace(run.tasks.data());
    for (size_t task = 0; isNew && task < run.tasks.size(); ++task) program->second[size_t(run.tasks[task].lane)].push_back(task);
    orders.push_back(&program->second);
  }
}

Lanes::Lanes(const Sequence &sequence) : sequence(sequence) {
  for (size_t run = 0; run < std::min(states.size(), sequence.size()); ++run) states[run].left = sequence.run(run).tasks.size();
  passComplete();
}

void Lanes::passComplete() {
  for (; completed < sequence.size() && !stateOf(completed).left; ++completed) {
    size_t coming = completed + states.size();
    stateOf(completed) = {{}, coming < sequence.size() ? sequence.run(coming).tasks.size() : 0};
  }
}

std::optional<TaskAt> Lanes::begin(size_t at) {
  Lane &lane = lanes[at];
  if (lane.busy) return std::nullopt;
  for (; lane.run < sequence.size() && lane.next == sequence.lane(lane.run, at).size(); ++lane.run) lane.next = 0;
  if (lane.run == sequence.size()) return std::nullopt;
  TaskAt task{lane.run, sequence.lane(lane.run, at)[lane.next]};
  if (!mayBegin(task)) return std::nullopt;
  lane.busy = true;
  return task;
}

void Lanes::end(size_t at) {
  Lane &lane = lanes[at];
  Run &state = stateOf(lane.run);
  ++lane.next, ++state.done[at], --state.left;
  lane.busy = false;
  passComplete();
}

bool Lanes::mayBegin(TaskAt at) const {
  const ProgramRun &mine = sequence.run(at.run);
  if (completed + (mine.drained ? 0 : 1) < at.run) return false;
  for (const LaneTick &wait : mine.tasks[at.task].waits)
    if (!reached(at.run, wait)) return false;
  if (at.run == completed) return true; // all of the run before is done
  auto entry =
      std::lower_bound(mine.entry.begin(), mine.entry.end(), at.task, [](const EntryWait &wait, size_t task) { return wait.task < task; });
  for (; entry != mine.entry.end() && entry->task == at.task; ++entry)
    if (!reached(at.run - 1, entry->wait)) return false;
  return true;
}

bool Lanes::reached(size_t run, const LaneTick &wait) const {
  return stateOf(run).done[size_t(wait.lane)] >= std::min<uint64_t>(wait.tick, sequence.lane(run, size_t(wait.lane)).size());
}

} // namespace zero::simulate
