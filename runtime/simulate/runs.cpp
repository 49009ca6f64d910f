#include "runtime/simulate/runs.h"
#include "runtime/inspect/inspect.h"
#include "runtime/plan/mesh.h"
#include "runtime/simulate/step_cost.h"
#include <algorithm>

namespace zero::simulate {
namespace {

/// Plans do not count the host's writing of the inputs, which is lane compute's first task.
template <typename Wait> LaneTick tickOf(const Wait &wait) { return {int(wait.lane()), wait.tick() + (wait.lane() == plan::COMPUTE)}; }
template <typename Waits> std::vector<LaneTick> ticksOf(const Waits &waits) {
  std::vector<LaneTick> ticks;
  for (const auto &wait : waits) ticks.push_back(tickOf(wait));
  return ticks;
}

} // namespace

ProgramTasks::ProgramTasks(const plan::Plan &plan, int index, const Machine &machine) {
  const plan::Program &program = plan.programs(index);
  tasks.push_back({plan::COMPUTE, 0});
  for (const plan::Step &step : program.steps()) {
    tasks.push_back({step.lane(), secondsOf(plan, step, machine), ticksOf(step.waits())});
    tasks.back().resource = resourceOf(plan, step);
    tasks.back().meets = step.has_collective() && plan::groupSize(plan, step.collective().axes()) > 1;
    busy[size_t(step.lane())] += tasks.back().seconds, used[tasks.back().resource] += tasks.back().seconds;
  }
  tasks.push_back({plan::COMPUTE, 0, ticksOf(program.result_waits())});
  for (const plan::Entry &entry : program.entries()) {
    std::vector<EntryWait> &waits = entries[int(entry.after())];
    for (const plan::Wait &wait : entry.input_waits()) waits.push_back({0, tickOf(wait)});
    for (const plan::EntryWait &wait : entry.waits()) waits.push_back({size_t(wait.step()) + 1, tickOf(wait)});
  }
}

StepRuns::StepRuns(const plan::Plan &plan, const Machine &machine, bool clips, size_t steps, uint64_t mostRepeated) {
  for (const inspect::Runs &program : inspect::programsOfStep(plan, clips))
    programs.push_back(
        {program.program, program.times, std::min(program.times, mostRepeated), ProgramTasks(plan, program.program, machine)});
  const Program *before = nullptr;
  for (size_t step = 0; step < steps; ++step)
    for (size_t i = 0; i < programs.size(); ++i)
      for (uint64_t run = 0; run < programs[i].ran; ++run) {
        const ProgramTasks &tasks = programs[i].tasks;
        auto entry = before ? tasks.entries.find(before->index) : tasks.entries.end();
        bool waits = plan.scales_loss() && i == 0 && run == 0; // for the scale, which the step before decides
        bool drained = entry == tasks.entries.end() || waits;
        runs.push_back({tasks.tasks, drained, drained ? std::span<const EntryWait>() : entry->second});
        programOf.push_back(i);
        before = &programs[i];
      }
}

std::vector<StepSpan> spansOf(const plan::Plan &plan, const StepRuns &steps) {
  std::vector<StepSpan> spans;
  std::vector<std::vector<Interval>> intervals = intervalsOf(steps.runs);
  for (size_t run = 0; run < intervals.size(); ++run) {
    const plan::Program &program = plan.programs(steps.programs[steps.programOf[run]].index);
    for (int i = 0; i < program.steps_size(); ++i) // the first task is the host's
      spans.push_back({run, program, program.steps(i), intervals[run][size_t(i) + 1]});
  }
  return spans;
}

} // namespace zero::simulate
