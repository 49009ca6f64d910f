//===- outputs.h - the files that zeroc writes --------------------------------------------------------===//
#pragma once
#include "tools/zeroc/options.h"

namespace zero {

/// Before anything takes time: throws zero::Error where the plan or its report could not be written, or would replace what is read.
void checkOutputs(const CommandLine &line);
/// zeroc --report, of the plan that was written: a page for a browser, or what zero-inspect --json says, with the schedule.
void writeReport(const CommandLine &line);

} // namespace zero
