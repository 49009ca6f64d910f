//===- page.h - a plan as a page of HTML ------------------------------------------------------------------===//
#pragma once
#include "runtime/plan/container.h"
#include "runtime/simulate/machine.h"
#include <string>

namespace zero::page {

/// What zero-inspect says of a plan, with drawings: how full memory is in each step, and what each lane does when in a step of training, as
/// estimated on the machine. One file, which loads nothing and runs nothing: it can be mailed. `threads`: of zerorun, for its process.
std::string html(const plan::PlanFile &file, const simulate::Machine &machine, int threads);

} // namespace zero::page
