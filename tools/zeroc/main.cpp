//===- zeroc - an ahead-of-time compiler for ZeRO -----------------------------------------------------===//
#include "runtime/inspect/inspect.h"
#include "runtime/plan/error.h"
#include "tools/command_line.h"
#include "tools/zeroc/options.h"
#include <iostream>

namespace {

using zero::pipeline::CompileReport;

std::string shapeText(const std::vector<int64_t> &shape) {
  std::string text;
  for (int64_t d : shape) text += (text.empty() ? "" : " x ") + std::to_string(d);
  return text.empty() ? "scalar" : text;
}

/// What is trained, what is not and why: names do not tell, so the user must see it.
void printRoles(const CompileReport &report) {
  std::cout << "trained:\n";
  for (const auto &p : report.import.parameters) std::cout << "  " << p.name << "  " << shapeText(p.shape) << "  " << p.role << "\n";
  for (const auto &t : report.import.ties)
    std::cout << "tied: " << t.alias << (t.transposed ? " (transposed)" : "") << " is " << t.name << "\n";
  if (!report.import.constants.empty()) std::cout << "constant:\n";
  for (const auto &c : report.import.constants) std::cout << "  " << c.name << "  " << shapeText(c.shape) << "  " << c.why << "\n";
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app{"Compile an ONNX model into a training plan"};
  try {
    zero::CommandLine line = zero::parseCommandLine(argc, argv, app);
    if (line.printPipeline) {
      std::cout << zero::pipeline::describePipeline(line.compile);
      return 0;
    }
    CompileReport report;
    zero::plan::Plan plan;
    auto say = [&](llvm::StringRef severity, llvm::StringRef sentence) {
      if (severity == "remark" && !line.emit) return; // the table of parameters says it
      std::cerr << "zeroc: " << severity.str() << ": " << sentence.str() << "\n";
    };
    if (!zero::pipeline::compile(line.compile, line.emit, llvm::outs(), line.output, say, report, plan)) return 1;
    if (!line.quiet && !line.emit) {
      printRoles(report);
      std::cout << zero::inspect::headline(plan) << zero::inspect::memoryTable(plan);
    }
    if (line.timing)
      for (const auto &[phase, seconds] : report.seconds) std::cerr << "zeroc: " << phase << " " << seconds << " s\n";
    return 0;
  } catch (const CLI::ParseError &error) {
    return zero::usageError(app, error, "zeroc: error");
  } catch (const std::exception &error) {
    std::cerr << "zeroc: error: " << error.what() << "\n";
    return 1;
  }
}
