#include "tools/zeroc/outputs.h"
#include "runtime/base/error.h"
#include "runtime/checkpoint/export_onnx.h"
#include "runtime/files/distinct.h"
#include "runtime/files/partial_file.h"
#include "runtime/inspect/inspect.h"
#include "runtime/page/page.h"
#include "runtime/plan/container.h"
#include "runtime/plan/paths.h"

namespace zero {
namespace {

void tryWriting(const std::string &flag, const std::string &path) {
  try {
    runtime::PartialFile(plan::replaceable(path));
  } catch (const Error &error) {
    throw Error(flag + " '" + path + "' could not be written: " + error.what());
  }
}

} // namespace

void checkOutputs(const CommandLine &line) {
  bool writes = !line.emit && !line.printPipeline;
  if (!line.report.empty() && (!writes || line.signOnly)) throw Error("--report is of a plan that is compiled and written, with -o");
  if (!line.report.empty() && !line.report.ends_with(".html") && !line.report.ends_with(".json"))
    throw Error("--report '" + line.report + "' must end in .html, a page, or in .json, numbers");
  if (!writes || line.signOnly) return;
  std::vector<runtime::NamedFile> files{{"the model", line.compile.model, false}};
  for (const std::string &file : runtime::dataFilesOf(line.compile.model)) files.push_back({"data of the model", file, false});
  if (!line.machine.empty()) files.push_back({"--machine", line.machine, false});
  files.push_back({"-o", line.output, true});
  if (!line.report.empty()) files.push_back({"--report", line.report, true});
  runtime::requireDistinct(files);
  tryWriting("-o", line.output);
  if (!line.report.empty()) tryWriting("--report", line.report);
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
