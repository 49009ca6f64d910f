#include "runtime/simulate/step_time.h"
#include "runtime/simulate/runs.h"
#include <algorithm>

namespace zero::simulate {
Resource StepTime::busiest() const {
  int busiest = 0;
  for (int resource = 1; resource < kResources; ++resource)
    if (of(Resource(resource)) > of(Resource(busiest))) busiest = resource;
  return Resource(busiest);
}

StepTime timeOf(const plan::Plan &plan, const Machine &machine, bool clips) {
  constexpr size_t kCounted = 2; // steps, the last ones but one, beside whose end none begins
  StepRuns steps(plan, machine, clips);
  std::vector<double> complete{0}; // after each run, all up to it
  for (const std::vector<Interval> &run : intervalsOf(steps.runs)) {
    double end = complete.back();
    for (const Interval &task : run) end = std::max(end, task.end);
    complete.push_back(end);
  }
  size_t each = steps.runs.size() / StepRuns::kSteps, end = steps.runs.size() - each, at = end - each; // of the last that counts
  StepTime time;
  time.seconds = (complete[end] - complete[end - kCounted * each]) / kCounted;
  for (const StepRuns::Program &program : steps.programs) {
    at += program.ran;
    time.seconds += double(program.times - program.ran) * (complete[at] - complete[at - 1]); // those left out are as long as the last
    for (size_t lane = 0; lane < kLanes; ++lane) time.busy[lane] += double(program.times) * program.tasks.busy[lane];
    for (size_t resource = 0; resource < kResources; ++resource)
      time.used[resource] += double(program.times) * program.tasks.used[resource];
  }
  time.seconds = std::max(time.seconds, time.least()); // a few steps may do what was begun before them
  return time;
}

} // namespace zero::simulate
