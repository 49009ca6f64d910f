//===- zeroc - an ahead-of-time compiler for ZeRO -----------------------------------------------------===//
#include "runtime/base/error.h"
#include "runtime/inspect/inspect.h"
#include "runtime/plan/container.h"
#include "runtime/process/processors.h"
#include "runtime/process/stacks.h"
#include "runtime/process/streams.h"
#include "tools/command_line.h"
#include "tools/zeroc/options.h"
#include "tools/zeroc/outputs.h"
#include "tools/zeroc/parameters.h"
#include <iostream>

/// What the command line asks for.
static int run(int argc, char **argv) {
  CLI::App app{"Compile an ONNX model into a training plan: zeroc model.onnx -o plan.bin", "zeroc"};
  try {
    zero::runtime::raiseStacks(); // before anything starts a thread
    zero::CommandLine line = zero::parseCommandLine(argc, argv, app);
    zero::checkOutputs(line);
    if (line.printPipeline) {
      std::cout << zero::pipeline::describePipeline(line.compile);
      return 0;
    }
    if (line.signOnly) {
      zero::plan::sign(line.compile.model, line.output, zero::plan::SigningKey(line.compile.signWith));
      if (!line.quiet) std::cout << "wrote " << line.output << ", signed\n";
      return 0;
    }
    zero::pipeline::CompileReport report;
    zero::plan::Plan plan;
    auto say = [&](llvm::StringRef severity, llvm::StringRef sentence) {
      if (severity == "remark" && !line.emit) return; // the table of parameters says it
      if (severity == "note" && line.quiet) return;
      zero::runtime::complain("zeroc: " + severity.str() + ": " + sentence.str());
    };
    zero::pipeline::Progress progress;
    line.compile.progress = &progress;
    line.compile.threads = zero::runtime::processors();
    zero::Watch watch(line.limits, progress);
    if (!zero::pipeline::compile(line.compile, line.emit, llvm::outs(), line.output, say, report, plan)) return 1;
    if (!line.report.empty()) zero::writeReport(line);
    if (!line.quiet && !line.emit) {
      std::cout << zero::parameterTable(report.import) << "\n" << zero::inspect::dataTable(plan) << "\n";
      std::cout << zero::inspect::headline(plan) << zero::inspect::memoryTable(plan) << "\n";
      for (const zero::plan::Decision &d : plan.decisions())
        if (d.subject() == zero::pipeline::kMemoryDecision || d.subject() == zero::pipeline::kFormDecision)
          std::cout << "chosen: " << d.choice() << "\n  " << d.reason() << "\n\n";
      std::string disk = zero::inspect::memoryOf(plan, zero::plan::DISK).total() ? " --disk-path DIR" : "";
      std::string clip = line.compile.clip == "always" ? " --clip NORM" : "";
      std::string run = plan.world() > 1 ? "mpirun -np " + std::to_string(plan.world()) + " zerorun " : "zerorun ";
      std::cout << "wrote " << line.output
                << (line.compile.target == zero::plan::Target::SIM
                        ? ", for no machine: to be read, judged and counted, with zero-inspect\n"
                        : "; to train: " + run + line.output + " --data FILE --steps N" + clip + disk + "\n");
    }
    if (line.timing) {
      for (const auto &[phase, seconds] : report.seconds) std::cerr << "zeroc: " << phase << " " << seconds << " s\n";
      if (report.searched)
        std::cerr << "zeroc: searched " << report.searched->first << " choices, " << report.searched->second << " steps scheduled\n";
    }
    return 0;
  } catch (const CLI::ParseError &error) {
    return zero::usageError(app, error, "zeroc: error");
  } catch (const std::exception &error) {
    zero::runtime::complain(std::string("zeroc: error: ") + error.what());
    return 1;
  }
}

int main(int argc, char **argv) {
  zero::runtime::openStandardStreams();
  int status = run(argc, argv);
  std::cout.flush(), llvm::outs().flush();
  if (std::cout && !llvm::outs().has_error()) return status;
  llvm::outs().clear_error(); // LLVM would end the program
  zero::runtime::complain("zeroc: error: what it prints could not be written: the standard output takes no more");
  return 1;
}
