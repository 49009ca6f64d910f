#include "runtime/simulate/trace.h"
#include "runtime/report/trace.h"
#include "runtime/simulate/runs.h"

namespace zero::simulate {

std::string estimatedTrace(const plan::Plan &plan, const Machine &machine, bool clips) {
  std::set<int> lanes;
  std::string events;
  for (const StepSpan &span : spansOf(plan, StepRuns(plan, machine, clips))) {
    lanes.insert(span.step.lane());
    events += runtime::traceEvent(0, {span.step.name(), span.program.name(), span.step.lane(), span.at.begin, span.at.end});
  }
  std::string text = "[";
  text.append(runtime::traceNames(0, lanes)).append(events).append("]\n");
  return text;
}

} // namespace zero::simulate
