#include "runtime/simulate/text.h"
#include "runtime/inspect/table.h"
#include "runtime/plan/lanes.h"
#include "runtime/plan/micro_steps.h"
#include <algorithm>

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
  std::vector<StepTime> times; // without clipping and with it, as far as the plan has programs for either
  std::vector<std::string> titles;
  for (bool clips : {false, true})
    if (plan::trains(plan, clips)) {
      times.push_back(timeOf(plan, machine, clips));
      titles.push_back(clips ? "with --clip" : "seconds");
    }
  inspect::Table table;
  table.row("a step, as estimated", titles);
  auto row = [&](const std::string &name, auto &&secondsIn, auto &&shows) {
    if (std::none_of(times.begin(), times.end(), shows)) return;
    std::vector<std::string> cells;
    for (const StepTime &time : times) cells.push_back(fmt::format("{:.6f}", secondsIn(time)));
    table.row(name, cells);
  };
  auto always = [](const StepTime &) { return true; };
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    auto busy = [&](const StepTime &time) { return time.busy[lane]; };
    row(std::string("  ") + plan::laneName(lane), busy, [&](const StepTime &time) { return busy(time) > 0; });
  }
  for (Resource shared : {kProcessors, kLink, kDisk}) { // one of its lanes after another
    auto used = [&](const StepTime &time) { return time.of(shared); };
    row(std::string("  ") + nameOf(shared), used,
        [&](const StepTime &time) { return used(time) > (shared == kProcessors ? time.busy[plan::COMPUTE] : 0); });
  }
  row(
      "  from step to step", [](const StepTime &time) { return time.seconds; }, always);
  row(
      "  no less than the busiest of them", [](const StepTime &time) { return time.least(); }, always);
  return table.text() + "on this machine: " + print(machine) + "\n";
}

} // namespace zero::simulate
