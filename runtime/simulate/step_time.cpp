#include "runtime/simulate/step_time.h"
#include "runtime/inspect/inspect.h"
#include "runtime/plan/mesh.h"
#include <algorithm>
#include <optional>

namespace zero::simulate {
namespace {

/// Bytes per second of a copy between tiers; none: it is computation's.
std::optional<double> rateOf(plan::Lane lane, const Machine &machine) {
  switch (lane) {
  case plan::TO_DEVICE:
    return machine.toDevice;
  case plan::TO_HOST:
    return machine.toHost;
  case plan::DISK_READ:
    return machine.diskRead;
  case plan::DISK_WRITE:
    return machine.diskWrite;
  default:
    return std::nullopt;
  }
}

/// A program of the plan, ready to be run again and again.
class Prepared {
public:
  Prepared(const plan::Plan &plan, int index, const Machine &machine) : program(plan.programs(index)) {
    seconds.reserve(size_t(program.steps_size()));
    for (const plan::Step &step : program.steps()) seconds.push_back(secondsOf(plan, step, machine));
  }

  /// Behind program `before`; -1: the first of all.
  void run(Timeline &timeline, int before) const {
    const plan::Entry *entry = nullptr;
    for (const plan::Entry &candidate : program.entries())
      if (int(candidate.after()) == before) entry = &candidate;
    timeline.begin(/*drained=*/!entry);
    std::vector<LaneTick> inputs, waits, joins;
    if (entry)
      for (const plan::Wait &wait : entry->input_waits()) inputs.push_back({wait.lane(), tickOf(wait)});
    timeline.run(plan::COMPUTE, 0, {}, inputs); // the inputs are written
    int next = 0;
    for (int i = 0; i < program.steps_size(); ++i) {
      const plan::Step &step = program.steps(i);
      waits.clear(), joins.clear();
      for (const plan::Wait &wait : step.waits()) waits.push_back({wait.lane(), tickOf(wait)});
      for (; entry && next < entry->waits_size() && int(entry->waits(next).step()) <= i; ++next)
        joins.push_back({entry->waits(next).lane(), tickOf(entry->waits(next))});
      timeline.run(step.lane(), seconds[size_t(i)], waits, joins);
    }
    waits.clear();
    for (const plan::Wait &wait : program.result_waits()) waits.push_back({wait.lane(), tickOf(wait)});
    timeline.run(plan::COMPUTE, 0, waits); // the results are read
  }

private:
  /// Plans do not count the host's writing of the inputs, which is lane compute's first task.
  template <typename Wait> static uint64_t tickOf(const Wait &wait) { return wait.tick() + (wait.lane() == plan::COMPUTE); }

  const plan::Program &program;
  std::vector<double> seconds; // by step
};

} // namespace

double StepTime::least() const { return *std::max_element(busy.begin(), busy.end()); }

double secondsOf(const plan::Plan &plan, const plan::Step &step, const Machine &machine) {
  inspect::Work work = inspect::workOf(plan, step);
  double touched = double(work.touched) / machine.memory;
  auto products = [&](plan::DType type) {
    return std::max(touched, double(work.flops) / 2 / (type == plan::F32 ? machine.productsF32 : machine.productsBf16));
  };
  double seconds = touched;
  if (step.has_matmul()) seconds = products(step.matmul().dtype());
  if (step.has_attention()) seconds = products(step.attention().dtype());
  if (step.has_attention_grad()) seconds = products(step.attention_grad().dtype());
  if (step.has_copy())
    if (auto rate = rateOf(step.lane(), machine)) seconds = double(work.touched) / 2 / *rate; // read on one side, written on the other
  if (step.has_collective() && plan::groupSize(plan, step.collective().axes()) > 1)
    seconds = double(work.sent) / machine.link + machine.linkLatency * double(std::max<uint64_t>(inspect::slicesOf(step.collective()), 1));
  return seconds + machine.step;
}

StepTime timeOf(const plan::Plan &plan, const Machine &machine, bool clips) {
  constexpr uint64_t kRepeated = 3; // runs of a program behind itself that settle how long one takes
  std::vector<inspect::Runs> runs = inspect::programsOfStep(plan, clips);
  std::vector<Prepared> programs;
  for (const inspect::Runs &run : runs) programs.emplace_back(plan, run.program, machine);
  Timeline timeline;
  int before = -1;
  StepTime time;
  for (int step = 0; step < 3; ++step) { // the first of them finds idle lanes
    double begin = timeline.end(), left = 0;
    std::array<double, kLanes> busy = timeline.busy(), more{};
    for (size_t i = 0; i < runs.size(); ++i) {
      double last = 0;
      std::array<double, kLanes> worked{};
      for (uint64_t run = 0; run < std::min(runs[i].times, kRepeated); ++run) {
        last = timeline.end(), worked = timeline.busy();
        programs[i].run(timeline, before);
        before = runs[i].program;
      }
      double rest = double(runs[i].times) - double(std::min(runs[i].times, kRepeated)); // that are as long as the last
      left += rest * (timeline.end() - last);
      for (size_t lane = 0; lane < kLanes; ++lane) more[lane] += rest * (timeline.busy()[lane] - worked[lane]);
    }
    time.seconds = timeline.end() - begin + left;
    for (size_t lane = 0; lane < kLanes; ++lane) time.busy[lane] = timeline.busy()[lane] - busy[lane] + more[lane];
  }
  return time;
}

} // namespace zero::simulate
