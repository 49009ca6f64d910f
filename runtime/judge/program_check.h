//===- program_check.h - what checks of one program have in common ----------------------------------------===//
#pragma once
#include "runtime/plan/plan.pb.h"
#include <string>
#include <vector>

namespace zero::judge {

/// "step 3 'bucket0.update'".
inline std::string nameOf(const plan::Program &program, int step) {
  return "step " + std::to_string(step) + " '" + program.steps(step).name() + "'";
}

/// A program of a plan, and a sentence for each promise that it breaks.
class ProgramCheck {
protected:
  ProgramCheck(const plan::Plan &plan, const plan::Program &program) : plan(plan), program(program) {}

  std::string name(int step) const { return nameOf(program, step); }
  void report(const std::string &sentence) { found.push_back("@" + program.name() + ": " + sentence); }

  const plan::Plan &plan;
  const plan::Program &program;
  std::vector<std::string> found;
};

} // namespace zero::judge
