#include "runtime/simulate/text.h"
#include "runtime/inspect/table.h"
#include "runtime/judge/problem.h"

namespace zero::simulate {

std::string secondsText(double seconds) { return seconds >= 1000 ? fmt::format("{:.0f} s", seconds) : fmt::format("{:#.3g} s", seconds); }

std::string estimateText(const StepTime &time, bool clips) {
  auto busiest = std::max_element(time.busy.begin(), time.busy.end()) - time.busy.begin();
  return fmt::format("{} for a step{}, no less than {} of lane {}", secondsText(time.seconds), clips ? " with --clip" : "",
                     secondsText(time.least()), judge::laneName(static_cast<uint32_t>(busiest)));
}

std::string timeText(const plan::Plan &plan, const Machine &machine) {
  StepTime plain = timeOf(plan, machine, false), clipped = timeOf(plan, machine, true);
  inspect::Table table;
  table.row("a step, as estimated", {"seconds", "with --clip"});
  auto row = [&](const std::string &name, double a, double b) { table.row(name, {fmt::format("{:.6f}", a), fmt::format("{:.6f}", b)}); };
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    if (plain.busy[lane] > 0 || clipped.busy[lane] > 0)
      row(std::string("  ") + judge::laneName(lane), plain.busy[lane], clipped.busy[lane]);
  row("  from step to step", plain.seconds, clipped.seconds);
  row("  no less than the busiest lane", plain.least(), clipped.least());
  return table.text() + "on this machine: " + print(machine) + "\n";
}

} // namespace zero::simulate
