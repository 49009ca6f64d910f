#include "runtime/simulate/text.h"
#include "runtime/inspect/table.h"
#include "runtime/judge/problem.h"

namespace zero::simulate {

std::string secondsText(double seconds) { return seconds >= 1000 ? fmt::format("{:.0f} s", seconds) : fmt::format("{:#.3g} s", seconds); }

static const char *nameOf(Resource resource) {
  static constexpr const char *names[] = {"the processors", "the link", "lane to_device",
                                          "lane to_host",   "the disk", "the host's processors"};
  static_assert(std::size(names) == kResources);
  return names[resource];
}

std::string estimateText(const StepTime &time, bool clips) {
  return fmt::format("{} for a step{}, no less than {} of {}", secondsText(time.seconds), clips ? " with --clip" : "",
                     secondsText(time.least()), nameOf(time.busiest()));
}

std::string timeText(const plan::Plan &plan, const Machine &machine) {
  StepTime plain = timeOf(plan, machine, false), clipped = timeOf(plan, machine, true);
  inspect::Table table;
  table.row("a step, as estimated", {"seconds", "with --clip"});
  auto row = [&](const std::string &name, double a, double b) { table.row(name, {fmt::format("{:.6f}", a), fmt::format("{:.6f}", b)}); };
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    if (plain.busy[lane] > 0 || clipped.busy[lane] > 0)
      row(std::string("  ") + judge::laneName(lane), plain.busy[lane], clipped.busy[lane]);
  for (Resource shared : {kProcessors, kLink, kDisk}) // one of its lanes after another
    if ((shared != kProcessors && plain.of(shared) > 0) || clipped.of(shared) > clipped.busy[plan::COMPUTE])
      row(std::string("  ") + nameOf(shared), plain.of(shared), clipped.of(shared));
  row("  from step to step", plain.seconds, clipped.seconds);
  row("  no less than the busiest of them", plain.least(), clipped.least());
  return table.text() + "on this machine: " + print(machine) + "\n";
}

} // namespace zero::simulate
