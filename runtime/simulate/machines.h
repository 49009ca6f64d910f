//===- machines.h - machines that are known by name ----------------------------------------------------===//
#pragma once
#include "runtime/plan/plan.pb.h"
#include "runtime/simulate/machine.h"
#include <string_view>

namespace zero::simulate {

/// The names, for error messages: "a100 and h100".
std::string machineNames();
/// One GPU of a full node among many, with its share of the node's memory and disks. Null if the name is unknown.
const Machine *machineNamed(std::string_view name);

/// What a plan is estimated on without --machine. `level`: a GPU's architecture (sm_80: an A100; sm_90 and sm_90a: an H100), or a CPU's
/// level (x86-64-v3: two processors without instructions for bf16); otherwise the defaults of Machine.
Machine defaultMachine(plan::Target::Kind kind, std::string_view level);
Machine defaultMachine(const plan::Target &target);

/// A machine by its name, or of a file (readMachine).
Machine namedOrRead(const std::string &nameOrPath);

} // namespace zero::simulate
