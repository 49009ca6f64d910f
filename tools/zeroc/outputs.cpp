#include "tools/zeroc/report.h"
#include "runtime/files/distinct.h"
#include "runtime/files/partial_file.h"
#include "runtime/inspect/inspect.h"
#include "runtime/page/page.h"
#include "runtime/plan/container.h"
#include "runtime/plan/error.h"
#include "runtime/plan/paths.h"
#include <nlohmann/json.hpp>

namespace zero {

void checkReport(const CommandLine &line) {
  if (line.report.empty()) return;
  if (!line.report.ends_with(".html") && !line.report.ends_with(".json"))
    throw Error("--report '" + line.report + "' must end in .html, a page, or in .json, numbers");
  if (line.emit || line.signOnly || line.printPipeline) throw Error("--report is of a plan that is written, with -o");
  runtime::requireDistinct({{"the model", line.compile.model, false}, {"-o", line.output, true}, {"--report", line.report, true}});
  try {
    runtime::PartialFile(plan::replaceable(line.report)); // before the model is compiled
  } catch (const Error &error) {
    throw Error("--report '" + line.report + "' could not be written: " + error.what());
  }
}

void writeReport(const CommandLine &line) {
  plan::PlanFile file = plan::load(line.output);
  int threads = line.compile.threads;
  std::string text = line.report.ends_with(".html") ? page::html(file, line.compile.machine, threads)
                                                    : inspect::fileJson(file, threads, /*schedule=*/true) + "\n";
  runtime::PartialFile written(plan::replaceable(line.report));
  written.file().write(0, text.data(), text.size());
  written.publish();
}

} // namespace zero
