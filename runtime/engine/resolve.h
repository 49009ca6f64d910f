// Turns the steps of a program into operations whose addresses are known on this rank: what a device is given.
#pragma once
#include "runtime/device/program.h"
#include "runtime/engine/parameter_groups.h"
#include "runtime/plan/plan.pb.h"
#include <functional>

namespace zero::runtime {

using Locate = std::function<Address(const plan::Ref &)>;

// Throws a sentence for a step this runtime does not have yet. `rank`: of the groups alone; addresses know it.
DeviceProgram resolve(const plan::Plan &plan, const plan::Program &program, const Locate &locate, const ParameterGroups &groups = {},
                      uint64_t rank = 0);

} // namespace zero::runtime
