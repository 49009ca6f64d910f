#include "runtime/simulate/step_time.h"
#include "runtime/inspect/inspect.h"
#include "runtime/plan/mesh.h"
#include <algorithm>
#include <map>
#include <optional>

namespace zero::simulate {
namespace {

plan::Tier tierOf(const plan::Plan &plan, const plan::Ref &ref) { return plan.arenas(int(plan.buffers(int(ref.buffer())).arena())).tier(); }

/// What a step works with.
Resource resourceOf(const plan::Plan &plan, const plan::Step &step) {
  if (!step.has_copy()) return simulate::resourceOf(step.lane());
  plan::Tier from = tierOf(plan, step.reads(0)), to = tierOf(plan, step.writes(0));
  if (from == to) return kProcessors;
  return from == plan::DISK || to == plan::DISK ? kDisk : to == plan::DEVICE ? kToDevice : kToHost;
}

/// Seconds for a byte of a copy between tiers; none: it is computation's. Between a disk and a GPU it goes through the host's memory, piece
/// by piece, and the lane does both one after the other.
std::optional<double> secondsOfByte(const plan::Plan &plan, const plan::Step &step, const Machine &machine) {
  plan::Tier from = tierOf(plan, step.reads(0)), to = tierOf(plan, step.writes(0));
  if (from == to) return std::nullopt;
  double seconds = 0;
  if (from == plan::DISK) seconds += 1 / machine.diskRead;
  if (to == plan::DISK) seconds += 1 / machine.diskWrite;
  if (bool direct = seconds > 0 && plan.target().kind() != plan::Target::CUDA; !direct) {
    if (from == plan::DEVICE) seconds += 1 / machine.toHost;
    if (to == plan::DEVICE) seconds += 1 / machine.toDevice;
  }
  return seconds;
}

/// A program of the plan as tasks, with what the host does: it writes the inputs first and reads the results last, on lane compute.
class Prepared {
public:
  Prepared(const plan::Plan &plan, int index, const Machine &machine) {
    const plan::Program &program = plan.programs(index);
    tasks.push_back({plan::COMPUTE, 0});
    for (const plan::Step &step : program.steps()) {
      tasks.push_back({step.lane(), secondsOf(plan, step, machine), ticksOf(step.waits())});
      tasks.back().resource = resourceOf(plan, step);
      busy[size_t(step.lane())] += tasks.back().seconds, used[tasks.back().resource] += tasks.back().seconds;
    }
    tasks.push_back({plan::COMPUTE, 0, ticksOf(program.result_waits())});
    for (const plan::Entry &entry : program.entries()) {
      std::vector<EntryWait> &waits = entries[int(entry.after())];
      for (const plan::Wait &wait : entry.input_waits()) waits.push_back({0, tickOf(wait)});
      for (const plan::EntryWait &wait : entry.waits()) waits.push_back({size_t(wait.step()) + 1, tickOf(wait)});
    }
  }

  /// After program `before`; -1: the first of all.
  ProgramRun after(int before) const {
    auto entry = entries.find(before);
    return entry == entries.end() ? ProgramRun{tasks} : ProgramRun{tasks, /*drained=*/false, entry->second};
  }

  std::array<double, kLanes> busy{};
  std::array<double, kResources> used{};

private:
  /// Plans do not count the host's writing of the inputs, which is lane compute's first task.
  template <typename Wait> static LaneTick tickOf(const Wait &wait) {
    return {int(wait.lane()), wait.tick() + (wait.lane() == plan::COMPUTE)};
  }
  template <typename Waits> static std::vector<LaneTick> ticksOf(const Waits &waits) {
    std::vector<LaneTick> ticks;
    for (const auto &wait : waits) ticks.push_back(tickOf(wait));
    return ticks;
  }

  std::vector<Task> tasks;
  std::map<int, std::vector<EntryWait>> entries; // by the program before
};

} // namespace

Resource StepTime::busiest() const {
  int busiest = 0;
  for (int resource = 1; resource < kResources; ++resource)
    if (of(Resource(resource)) > of(Resource(busiest))) busiest = resource;
  return Resource(busiest);
}

double secondsOf(const plan::Plan &plan, const plan::Step &step, const Machine &machine) {
  inspect::Work work = inspect::workOf(plan, step);
  double touched = double(work.touched) / (step.lane() == plan::UPDATE_HOST ? machine.hostMemory : machine.memory);
  auto products = [&](plan::DType type, bool tf32 = false) {
    double rate = tf32 ? machine.productsTf32 : type == plan::F32 ? machine.productsF32 : machine.productsBf16;
    return std::max(touched, double(work.flops) / 2 / rate);
  };
  double seconds = touched;
  if (step.has_matmul()) seconds = products(step.matmul().dtype(), step.matmul().tf32());
  if (step.has_attention()) seconds = products(step.attention().dtype());
  if (step.has_attention_grad()) seconds = products(step.attention_grad().dtype());
  if (step.has_copy())
    if (auto each = secondsOfByte(plan, step, machine))
      seconds = double(work.touched) / 2 * *each; // read on one side, written on the other
  if (step.has_collective() && plan::groupSize(plan, step.collective().axes()) > 1)
    seconds = double(work.sent) / machine.link + machine.linkLatency * double(std::max<uint64_t>(inspect::slicesOf(step.collective()), 1));
  return seconds + machine.step;
}

StepTime timeOf(const plan::Plan &plan, const Machine &machine, bool clips) {
  constexpr uint64_t kRepeated = 3;          // runs of a program after itself that settle how long one takes
  constexpr size_t kSteps = 4, kCounted = 2; // the first of them find idle lanes
  std::vector<inspect::Runs> programs = inspect::programsOfStep(plan, clips);
  std::vector<Prepared> prepared;
  for (const inspect::Runs &program : programs) prepared.emplace_back(plan, program.program, machine);
  std::vector<ProgramRun> runs;
  int before = -1;
  for (size_t step = 0; step < kSteps; ++step)
    for (size_t i = 0; i < programs.size(); ++i)
      for (uint64_t run = 0; run < std::min(programs[i].times, kRepeated); ++run) {
        runs.push_back(prepared[i].after(before));
        before = programs[i].program;
      }
  std::vector<double> complete{0}; // after each run, all up to it
  for (const std::vector<double> &ends : endsOf(runs))
    complete.push_back(std::max(complete.back(), *std::max_element(ends.begin(), ends.end())));
  size_t each = runs.size() / kSteps, at = runs.size() - each; // of the last step
  StepTime time;
  time.seconds = (complete.back() - complete[runs.size() - kCounted * each]) / kCounted;
  for (size_t i = 0; i < programs.size(); ++i) {
    uint64_t times = programs[i].times, ran = std::min(times, kRepeated);
    at += ran;
    time.seconds += double(times - ran) * (complete[at] - complete[at - 1]); // those left out are as long as the last
    for (size_t lane = 0; lane < kLanes; ++lane) time.busy[lane] += double(times) * prepared[i].busy[lane];
    for (size_t resource = 0; resource < kResources; ++resource) time.used[resource] += double(times) * prepared[i].used[resource];
  }
  time.seconds = std::max(time.seconds, time.least()); // a few steps may do what was begun before them
  return time;
}

} // namespace zero::simulate
