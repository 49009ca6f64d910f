//===- runs.h - optimizer steps as tasks of the timeline ------------------------------------------------===//
#pragma once
#include "runtime/plan/plan.pb.h"
#include "runtime/simulate/machine.h"
#include "runtime/simulate/timeline.h"
#include <map>

namespace zero::simulate {

/// A program of the plan as tasks, one a step, between two more of lane compute, in which the host writes the inputs and reads the results.
struct ProgramTasks {
  ProgramTasks(const plan::Plan &plan, int index, const Machine &machine);

  std::vector<Task> tasks;
  std::map<int, std::vector<EntryWait>> entries; // by the program before
  std::array<double, kLanes> busy{};             // seconds of each lane, alone
  std::array<double, kResources> used{};
};

/// Optimizer steps in a row, all micro-steps as a run submits them, clipped if `clips`, or as the plan has them alone.
struct StepRuns {
  static constexpr size_t kSteps = 4;      // the first of them find idle lanes
  static constexpr uint64_t kRepeated = 3; // runs of a program after itself that settle how long one takes: more may be left out

  StepRuns(const plan::Plan &plan, const Machine &machine, bool clips, size_t steps = kSteps, uint64_t mostRepeated = kRepeated);
  StepRuns(const StepRuns &) = delete; // runs are views
  StepRuns &operator=(const StepRuns &) = delete;

  struct Program {
    int index;      // of the plan's
    uint64_t times; // it runs in a step
    uint64_t ran;   // of these, all or as many as are not left out
    ProgramTasks tasks;
  };
  std::vector<Program> programs; // of a step, in their order
  std::vector<ProgramRun> runs;
  std::vector<size_t> programOf; // each run
};

/// A step of the plan's in one of these runs.
struct StepSpan {
  size_t run;
  const plan::Program &program;
  const plan::Step &step;
  Interval at;
};
/// All of them, run by run, in the order of their programs.
std::vector<StepSpan> spansOf(const plan::Plan &plan, const StepRuns &steps);

} // namespace zero::simulate
