// When submissions and their steps ran: events with times in the streams, and the host's clock that they are fitted to.
#pragma once
#include "runtime/device/cuda/handles.h"
#include "runtime/device/device.h"
#include <array>
#include <vector>

namespace zero::runtime::cuda {

// Submissions count from 1, and two of them are under way at most. What stands before the first is number 0.
class Timeline {
public:
  explicit Timeline(const std::array<bool, kLanes> &lanes); // that are in use

  // For who waits for them: when its lane COMPUTE has begun; when each lane has ended, null where it is not in use.
  const OwnedEvent &beginOf(uint64_t submission) const { return timesOf(submission).begin; }
  const std::array<OwnedEvent, kLanes> &endsOf(uint64_t submission) const { return timesOf(submission).ends; }

  void start(); // number 0 has begun, just now

  // Of one whose steps are recorded, which goes into the streams now.
  void clearSteps(uint64_t submission) { tracesOf(submission).steps.clear(), tracesOf(submission).used = 0; }
  void stepBegins(uint64_t submission, uint32_t step, int lane, StreamHandle stream);
  void stepEnds(uint64_t submission, int lane, StreamHandle stream); // the one that began last on the lane

  // When a submission began and ended, and its steps ran; the others before it have been asked for. It is complete.
  Completion completionOf(uint64_t submission, uint32_t program, Clock::time_point submitted);

private:
  struct Times {
    OwnedEvent begin;
    std::array<OwnedEvent, kLanes> ends;
  };
  struct Step {
    uint32_t step;
    int lane;
    size_t begin, end; // in Traces::events
  };
  struct Traces {
    std::vector<OwnedEvent> events; // as many as were needed so far
    std::vector<Step> steps;
    size_t used = 0; // events
  };

  size_t record(Traces &traces, StreamHandle stream);
  double secondsBetween(const OwnedEvent &from, const OwnedEvent &to) const;
  const Times &timesOf(uint64_t submission) const { return times[submission % times.size()]; }
  Traces &tracesOf(uint64_t submission) { return traces[submission % traces.size()]; }

  const Driver &driver;
  std::array<Times, kSubmissions + 1> times; // the next time is counted from the last one
  std::array<Traces, kSubmissions> traces;
  Clock::time_point began, lastBegin; // of number 0, of the submission finished last
};

} // namespace zero::runtime::cuda
