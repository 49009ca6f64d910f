//===- timeline.h - the lanes of one rank in virtual time -------------------------------------------------===//
// Each lane does its tasks one after another; a task also waits for ticks of other lanes. Lanes may share a resource, as the two ways to
// and from a disk do: what they have under way together gets equal shares of it, and it never rests while one of them has something to do.
#pragma once
#include "runtime/simulate/tasks.h"

namespace zero::simulate {

/// When a task begins and ends.
struct Interval {
  double begin = 0, end = 0;
};

/// Of each task, by run. Throws zero::Error where one waits for what never comes.
std::vector<std::vector<Interval>> intervalsOf(std::span<const ProgramRun> runs);

} // namespace zero::simulate
