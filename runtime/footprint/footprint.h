// The memory that the process of one rank reaches, all of it: the plan's arenas and what stands beside them. It follows from the plan and
// the number of threads; zero-inspect states it, and zerorun holds it against what the machine and its limits leave before it starts.
#pragma once
#include "runtime/plan/container.h"
#include <cstdint>
#include <string>
#include <vector>

namespace zero::runtime {

struct FootprintPart {
  std::string key;  // for programs: "plan"
  std::string what; // for people: "the plan, and its programs in addresses"
  uint64_t bytes;   // at most
};

// What one process takes beside arenas, with so many threads that compute. Upper bounds: what libraries take was measured with those of
// Debian 12. No part of it are pages of files (data, the model, checkpoints that are being written), which the system takes back when it
// needs them, what it holds for sockets, and what --trace records.
std::vector<FootprintPart> besideArenas(const plan::PlanFile &file, int threads);
uint64_t bytesOf(const std::vector<FootprintPart> &parts);

// What limits on addresses (ulimit -v) count of it once the plan is loaded: whole stacks, and no code, which is mapped by then.
uint64_t mappedBesideArenas(const plan::PlanFile &file, int threads);

// Bytes of the arenas in memory, the device's and the host's, that a run of these programs makes: all of them, or those without
// `clips` if the plan can do without.
uint64_t arenaBytes(const plan::Plan &plan, bool clips);

} // namespace zero::runtime
