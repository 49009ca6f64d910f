#include "runtime/simulate/trace.h"
#include "runtime/report/trace.h"
#include "runtime/simulate/runs.h"
#include "runtime/simulate/timeline.h"

namespace zero::simulate {

std::string estimatedTrace(const plan::Plan &plan, const Machine &machine, bool clips) {
  StepRuns steps(plan, machine, clips);
  std::vector<std::vector<Interval>> intervals = intervalsOf(steps.runs);
  std::set<int> lanes;
  std::string events;
  for (size_t run = 0; run < intervals.size(); ++run) {
    const plan::Program &program = plan.programs(steps.programs[steps.programOf[run]].index);
    for (int i = 0; i < program.steps_size(); ++i) {
      Interval at = intervals[run][size_t(i) + 1]; // the first task is the host's
      lanes.insert(program.steps(i).lane());
      events += runtime::traceEvent(0, {program.steps(i).name(), program.name(), program.steps(i).lane(), at.begin, at.end});
    }
  }
  std::string text = "[";
  text.append(runtime::traceNames(0, lanes)).append(events).append("]\n");
  return text;
}

} // namespace zero::simulate
