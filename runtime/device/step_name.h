// How sentences call a step of a program, whatever device runs it.
#pragma once
#include "runtime/plan/plan.pb.h"
#include <string>

namespace zero::runtime {

inline std::string stepName(const plan::Program &program, uint32_t step) {
  return "step " + std::to_string(step) + " '" + program.steps(static_cast<int>(step)).name() + "' of program '" + program.name() + "'";
}

} // namespace zero::runtime
