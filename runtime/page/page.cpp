#include "runtime/page/page.h"
#include "runtime/inspect/inspect.h"
#include "runtime/inspect/names.h"
#include "runtime/page/chart.h"
#include "runtime/plan/lanes.h"
#include "runtime/plan/micro_steps.h"
#include "runtime/simulate/runs.h"
#include "runtime/simulate/text.h"
#include <algorithm>
#include <fmt/format.h>

namespace zero::page {
namespace {

constexpr const char *kStyle = R"(
body { font: 15px/1.45 system-ui, sans-serif; max-width: 1240px; margin: 2em auto; padding: 0 1em; color: #222; background: #fff }
pre { font: 13px/1.35 ui-monospace, monospace; overflow-x: auto; background: #f5f5f2; padding: .8em }
svg { width: 100%; font: 12px system-ui, sans-serif; fill: #444; margin: .4em 0 }
.area { fill: #8fb3d9 } .limit { stroke: #c0392b; stroke-dasharray: 5 3 }
.lane0 { fill: #4878a8 } .lane1 { fill: #d98e3f } .lane2 { fill: #6a9f58 } .lane3 { fill: #b55d60 } .lane4 { fill: #857aab } .lane5 { fill: #8c6d4f }
)";

std::string pre(const std::string &text) { return "<pre>" + escaped(text) + "</pre>\n"; }
std::string section(const std::string &title, const std::string &inside) { return "<h2>" + escaped(title) + "</h2>\n" + inside; }
std::string folded(const std::string &title, const std::string &text) {
  return "<details><summary>" + escaped(title) + "</summary>" + pre(text) + "</details>\n";
}

/// Bytes that live in each step of what an optimizer step runs, in each tier that holds any of them.
std::string memoryCharts(const plan::Plan &plan, bool clips) {
  std::string charts;
  for (plan::Tier tier : {plan::DEVICE, plan::HOST, plan::DISK}) {
    inspect::Memory memory = inspect::memoryOf(plan, tier);
    for (const inspect::Runs &run : inspect::programsOfStep(plan, clips)) {
      const inspect::ProgramMemory &program = memory.programs[size_t(run.program)];
      if (!program.live) continue;
      charts += draw(Area{.title = fmt::format("@{}, {}, beside the {} bytes that are kept", program.program, inspect::tierName(tier),
                                               inspect::grouped(memory.state)),
                          .values = {program.inStep.begin(), program.inStep.end()},
                          .limit = double(std::max(program.height, program.live)),
                          .limitName = "arena"});
    }
  }
  return charts;
}

/// The last of the estimated steps, from when its first task begins.
std::string laneChart(const plan::Plan &plan, const simulate::Machine &machine, bool clips) {
  simulate::StepRuns steps(plan, machine, clips);
  size_t each = steps.runs.size() / simulate::StepRuns::kSteps, first = steps.runs.size() - each;
  double begin = std::numeric_limits<double>::infinity(), end = 0;
  std::array<std::vector<Bars::Span>, simulate::kLanes> lanes;
  for (const simulate::StepSpan &span : spansOf(plan, steps)) {
    if (span.run < first) continue;
    begin = std::min(begin, span.at.begin), end = std::max(end, span.at.end);
    lanes[size_t(span.step.lane())].push_back({0, span.at.begin, span.at.end, span.step.name()});
  }
  Bars bars{.end = end - begin};
  for (size_t lane = 0; lane < lanes.size(); ++lane) {
    if (lanes[lane].empty()) continue;
    for (Bars::Span &span : lanes[lane])
      bars.spans.push_back({bars.rows.size(), span.begin - begin, span.end - begin, std::move(span.name)});
    bars.rows.push_back(plan::laneName(size_t(lane)));
  }
  return draw(bars);
}

} // namespace

std::string html(const plan::PlanFile &file, const simulate::Machine &machine, int threads) {
  const plan::Plan &plan = file.plan;
  bool clips = !plan::trains(plan, false), trains = clips ? plan::trains(plan, true) : true;
  std::string body = "<h1>" + escaped(inspect::headline(plan)) + "</h1>\n";
  body += section("Data", pre(inspect::dataTable(plan)));
  body += section("Memory", pre(inspect::memoryTable(plan) + "\n" + inspect::processTable(file, threads)) +
                                (trains ? memoryCharts(plan, clips) : "") + folded("the fullest moments", inspect::peakText(plan)));
  if (trains)
    body += section("Time",
                    fmt::format("<p>One step{}, as estimated; what a bar is shows under the pointer.</p>\n", clips ? " with --clip" : "") +
                        laneChart(plan, machine, clips) + pre(simulate::timeText(plan, machine)));
  body += section("Work and communication", pre(inspect::laneTable(plan) + "\n" + inspect::trafficTable(plan)));
  body += section("Why", folded("each decision and its reason", inspect::decisionText(plan)));
  return "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>" + escaped(plan.model()) + "</title><style>" + kStyle +
         "</style></head>\n<body>\n" + body + "</body></html>\n";
}

} // namespace zero::page
