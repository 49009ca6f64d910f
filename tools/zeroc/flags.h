//===- flags.h - the flags of zeroc ------------------------------------------------------------------===//
// Private to the command line: what a flag is called, what --help says of it and which words it takes.
#pragma once
#include "tools/zeroc/options.h"

namespace zero {

/// What flags say in text that options.cpp has still to understand.
struct Texts {
  std::vector<std::string> binds;
  std::vector<std::string> tie;
  std::string init = "weights", emit, prefetch = "auto", tile = "off", tileTokens = "off", target = "cpu", epilogues = "auto", stage = "0",
              machine, deviceMemory, hostMemory, diskMemory, compileMemory;
  std::optional<int64_t> compileSeconds;
};

/// Declares all flags, group by group, in the order of --help. Parsing then fills `line` and `texts`, which must outlive it.
void declare(CLI::App &app, CommandLine &line, Texts &texts);

} // namespace zero
