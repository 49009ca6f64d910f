//===- machines.h - machines that are known by name ----------------------------------------------------===//
#pragma once
#include "runtime/plan/plan.pb.h"
#include "runtime/simulate/cluster.h"
#include <string_view>

namespace zero::simulate {

/// The names, for error messages: "a100 and h100".
std::string machineNames();
/// Full nodes of GPUs, each of which has its share of the node's memory and disks. Null if the name is unknown.
const Cluster *clusterNamed(std::string_view name);

/// What a plan is estimated on without --machine. `level`: a GPU's architecture (sm_80: an A100; sm_90 and sm_90a: an H100), or a CPU's
/// level (x86-64-v3: two processors without instructions for bf16); otherwise the defaults of Machine.
/// GPUs of a run of `world` ranks are in nodes of eight (equalRank).
Machine defaultMachine(plan::Target::Kind kind, std::string_view level, uint64_t world);
Machine defaultMachine(const plan::Target &target, uint64_t world);

/// By its name, or of a file (readCluster).
Cluster namedOrRead(const std::string &nameOrPath);

} // namespace zero::simulate
