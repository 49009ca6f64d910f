//===- options.h - the command line of zeroc --------------------------------------------------------===//
#pragma once
#include "passes/pipeline/compile.h"
#include "tools/zeroc/limits.h"
#include <CLI/CLI.hpp>

namespace zero {

struct CommandLine {
  pipeline::CompileOptions compile;
  std::optional<pipeline::Phase> emit;
  std::string output, report; // of the plan; empty: none
  std::string machine;        // --machine as it was given
  Limits limits;
  bool timing = false, quiet = false, printPipeline = false;
  bool signOnly = false; // the model is a plan
};

/// Parse; throws CLI::ParseError (usage, --help) or zero::Error (a flag whose part is not built, a value that makes no sense).
CommandLine parseCommandLine(int argc, char **argv, CLI::App &app);

} // namespace zero
