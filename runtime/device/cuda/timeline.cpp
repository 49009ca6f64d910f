#include "runtime/device/cuda/timeline.h"
#include <algorithm>

namespace zero::runtime::cuda {
namespace {

Clock::duration clockTime(double seconds) { return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds)); }

} // namespace

Timeline::Timeline(const std::array<bool, kLanes> &lanes) : driver(Driver::get()) {
  for (Times &each : times) {
    each.begin = makeEvent(kTimed);
    for (size_t lane = 0; lane < kLanes; ++lane)
      if (lanes[lane]) each.ends[lane] = makeEvent(kTimed);
  }
}

void Timeline::start() { began = lastBegin = Clock::now(); }

size_t Timeline::record(Traces &traces, StreamHandle stream) {
  if (traces.used == traces.events.size()) traces.events.push_back(makeEvent(kTimed));
  driver.require(driver.eventRecord(traces.events[traces.used].get(), stream), "cannot record an event");
  return traces.used++;
}

void Timeline::stepBegins(uint64_t submission, uint32_t step, int lane, StreamHandle stream) {
  Traces &traces = tracesOf(submission);
  size_t begin = record(traces, stream);
  traces.steps.push_back({step, lane, begin, begin});
}

void Timeline::stepEnds(uint64_t submission, int lane, StreamHandle stream) {
  Traces &traces = tracesOf(submission);
  auto of = std::find_if(traces.steps.rbegin(), traces.steps.rend(), [&](const Step &each) { return each.lane == lane; });
  of->end = record(traces, stream);
}

Completion Timeline::completionOf(uint64_t submission, uint32_t program, Clock::time_point submitted) {
  const Times &own = timesOf(submission);
  lastBegin += clockTime(secondsBetween(beginOf(submission - 1), own.begin));
  Completion completion{submitted, lastBegin, lastBegin, {}, {}};
  for (const OwnedEvent &end : own.ends)
    if (end) completion.end = std::max(completion.end, lastBegin + clockTime(secondsBetween(own.begin, end)));
  const Traces &traces = tracesOf(submission);
  double first = std::chrono::duration<double>(lastBegin - began).count();
  for (const Step &each : traces.steps) {
    double begin = first + secondsBetween(own.begin, traces.events[each.begin]);
    double end = first + secondsBetween(own.begin, traces.events[each.end]);
    completion.events.push_back({program, each.step, each.lane, begin, end});
    completion.lanes[static_cast<size_t>(each.lane)].busySeconds += end - begin;
  }
  std::ranges::stable_sort(completion.events, {}, &TraceEvent::lane);
  return completion;
}

double Timeline::secondsBetween(const OwnedEvent &from, const OwnedEvent &to) const {
  float milliseconds = 0;
  driver.require(driver.eventElapsedTime(&milliseconds, from.get(), to.get()), "cannot ask when a step ran");
  return static_cast<double>(milliseconds) / 1000;
}

} // namespace zero::runtime::cuda
