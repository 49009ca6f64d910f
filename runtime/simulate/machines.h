//===- machines.h - machines that are known by name ----------------------------------------------------===//
#pragma once
#include "runtime/plan/plan.pb.h"
#include "runtime/simulate/machine.h"
#include <string_view>

namespace zero::simulate {

/// The names, for sentences: "a100 and h100".
std::string machineNames();
/// Null if it is none of them. Of one GPU of a full node, with its share of the node's memory and disks, among many such nodes.
const Machine *machineNamed(std::string_view name);

/// What a plan for `target` runs on where nobody says: of a GPU's architecture the first that has it, of x86-64-v3 two processors without
/// products of bf16, else Machine's defaults.
Machine usualMachine(plan::Target::Kind kind, std::string_view level);
Machine usualMachine(const plan::Target &target);

/// A machine by its name, or of a file (readMachine).
Machine namedOrRead(const std::string &nameOrPath);

} // namespace zero::simulate
