#include "runtime/device/cpu/lane.h"
#include "runtime/plan/error.h"

namespace zero::runtime {
namespace {

// A time-out stays one: who catches it leaves the other ranks time to speak.
std::exception_ptr withPlace(const std::string &place, const std::exception &error) {
  if (dynamic_cast<const TimedOut *>(&error)) return std::make_exception_ptr(TimedOut(place + error.what()));
  return std::make_exception_ptr(Error(place + error.what()));
}

double seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

} // namespace

void Lane::run(const CpuProgram &program, const Submission &submission, LaneStats &stats, std::vector<TraceEvent> &events) {
  Timeline &timeline = context.timeline;
  const CpuOperation *current = nullptr;
  uint64_t sentBefore = communicator ? communicator->bytesSent() : 0;
  stats = {};
  try {
    Clock::time_point begin;
    bool first = true; // of its step
    for (const CpuOperation &operation : program.lanes[static_cast<size_t>(index)]) {
      current = &operation;
      for (uint32_t i = operation.waitBegin; i < operation.waitEnd; ++i) timeline.wait(program.waits[i].lane, program.waits[i].tick);
      if (timeline.hasFailed()) return;
      if (first) begin = Clock::now();
      if (operation.update && submission.beforeUpdate) (*submission.beforeUpdate)(*operation.update);
      context.executor.run(operation.call, communicator.get());
      first = operation.signals;
      if (!operation.signals) continue;
      Clock::time_point end = Clock::now();
      stats.busySeconds += seconds(end - begin);
      ++stats.steps;
      if (submission.trace)
        events.push_back({submission.program, operation.step, index, seconds(begin - context.start), seconds(end - context.start)});
      timeline.advance(index);
    }
    stats.bytes = program.copied[static_cast<size_t>(index)] + (communicator ? communicator->bytesSent() - sentBefore : 0);
  } catch (const std::exception &error) {
    const plan::Program &source = *program.source;
    timeline.fail(withPlace("step " + std::to_string(current->step) + " '" + source.steps(static_cast<int>(current->step)).name() +
                                "' of program '" + source.name() + "': ",
                            error));
    context.onFailure();
  }
}

} // namespace zero::runtime
