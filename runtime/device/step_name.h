// How sentences call a step of a program and what it failed with, whatever device runs it.
#pragma once
#include "runtime/comm/communicator.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/process/addresses.h"
#include <exception>
#include <string>

namespace zero::runtime {

inline std::string stepName(const plan::Program &program, uint32_t step) {
  return "step " + std::to_string(step) + " '" + program.steps(static_cast<int>(step)).name() + "' of program '" + program.name() + "'";
}

// What a step failed with, and where. A time-out stays one: who catches it leaves the other ranks time to speak.
inline std::exception_ptr withPlace(const std::string &place, const std::exception &error) {
  if (dynamic_cast<const TimedOut *>(&error)) return std::make_exception_ptr(TimedOut(place + ": " + error.what()));
  return std::make_exception_ptr(Error(place + ": " + sentenceOf(error)));
}

} // namespace zero::runtime
