//===- report.h - zeroc --report ----------------------------------------------------------------------===//
#pragma once
#include "tools/zeroc/options.h"

namespace zero {

/// Throws zero::Error where no report can be written to this file beside the plan.
void checkReport(const CommandLine &line);
/// Of the plan that was written: a page for a browser, or what zero-inspect --json says, with the schedule.
void writeReport(const CommandLine &line);

} // namespace zero
