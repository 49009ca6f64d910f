#include "runtime/engine/lane.h"
#include "runtime/plan/error.h"

namespace zero::runtime {
namespace {

template <class... Cases> struct Overloaded : Cases... { using Cases::operator()...; };
template <class... Cases> Overloaded(Cases...) -> Overloaded<Cases...>;

// A time-out stays one: who catches it leaves the other ranks time to speak.
std::exception_ptr withPlace(const std::string &place, const std::exception &error) {
  if (dynamic_cast<const TimedOut *>(&error)) return std::make_exception_ptr(TimedOut(place + error.what()));
  return std::make_exception_ptr(Error(place + error.what()));
}

double seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

} // namespace

void Lane::execute(const Operation &operation) {
  Device &device = *context.device;
  std::visit(Overloaded{
                 [&](const LaunchCall &call) { device.launch(call); },
                 [&](const MatMulCall &call) { device.matmul(call); },
                 [&](const AttentionCall &call) { device.attention(call); },
                 [&](const AttentionGradCall &call) { device.attentionGrad(call); },
                 [&](const AllGatherCall &call) { communicator->allGather(call.src, call.dst, call.bytes); },
                 [&](const ReduceScatterCall &call) { communicator->reduceScatter(call.src, call.dst, call.count, {call.staging, call.count}); },
                 [&](const AllReduceCall &call) { communicator->allReduce(call.data, call.count, {call.staging, call.count}); },
                 [&](const CopyCall &call) {
                   device.copy(call.dst, call.src, call.bytes);
                   copied += call.bytes;
                 },
                 [&](const FillCall &call) { device.fill(call.dst, call.pattern, call.bytes); },
                 [&](const UpdateCall &call) {
                   if (context.hook) context.hook(*call.step);
                   if (call.parts.empty()) device.launch(call.launch);
                   for (const UpdatePart &part : call.parts) {
                     for (const CopyCall &copy : part.before) device.copy(copy.dst, copy.src, copy.bytes);
                     device.launch(part.launch);
                     for (const CopyCall &copy : part.after) device.copy(copy.dst, copy.src, copy.bytes);
                   }
                 },
             },
             operation.call);
}

void Lane::run(uint32_t programIndex, const ResolvedProgram &program) {
  Timeline &timeline = *context.timeline;
  const Operation *current = nullptr;
  try {
    for (const Operation &operation : program.lanes[static_cast<size_t>(index)]) {
      current = &operation;
      for (uint32_t i = operation.waitBegin; i < operation.waitEnd; ++i) timeline.wait(program.waits[i].lane, program.waits[i].tick);
      if (timeline.hasFailed()) return;
      Clock::time_point begin = Clock::now();
      execute(operation);
      Clock::time_point end = Clock::now();
      busySeconds += seconds(end - begin);
      ++steps;
      if (context.trace)
        events.push_back({programIndex, operation.step, index, seconds(begin - context.start), seconds(end - context.start)});
      timeline.advance(index);
    }
  } catch (const std::exception &error) {
    const plan::Program &source = context.plan->programs(static_cast<int>(programIndex));
    timeline.fail(withPlace("step " + std::to_string(current->step) + " '" + source.steps(static_cast<int>(current->step)).name() +
                                "' of program '" + source.name() + "': ",
                            error));
    context.onFailure();
  }
}

LaneStats Lane::stats() const {
  uint64_t sent = communicator ? communicator->bytesSent() - sentBefore : 0;
  return {busySeconds, steps, sent + copied};
}

void Lane::resetStats() {
  busySeconds = 0;
  steps = copied = 0;
  sentBefore = communicator ? communicator->bytesSent() : 0;
}

} // namespace zero::runtime
