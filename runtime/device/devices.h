// The kinds of device this program was built with: the one table that names them (built_in/, one for each way to build it). A new kind is
// an implementation of Device and a row of the table.
#pragma once
#include "runtime/comm/neighbours.h"
#include "runtime/device/device.h"
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace zero::runtime {

// What `zerorun --tune` has measured and written beside the plan, as it was read.
struct MeasuredTable {
  std::string name; // of the file
  std::string text; // empty: there is no such file
};

// What this process takes beside arenas.
struct Beside {
  uint64_t bytes = 0;  // that it reaches, at most
  uint64_t mapped = 0; // that it maps from now on
};

struct DeviceOptions {
  int threads = 0;                             // of the host's processors; 0: as many as this process may use
  Neighbours neighbours{};                     // with whom this rank shares its machine
  int rank = 0, world = 1;                     // of all of the run
  std::function<Beside(int threads)> beside{}; // of this process with so many threads; none: not counted
  std::vector<std::string> diskPaths{};        // folders for what the plan keeps on disk; each rank of the run has files of its own in them
  bool graphs = true;                          // of a GPU: steps that nothing comes between are launched together
  MeasuredTable measured{};                    // of a kind of device that has tune
};

// How many threads of the host compute: as many as were asked for, or the processors this process may use, shared fairly with the other
// ranks of this machine that may use them too. Throws a sentence for a number that makes no sense.
int threadsOf(const DeviceOptions &options);
// What people should know of the processors that a rank was bound to by who launched it; empty: nothing.
std::string noteOnProcessors(const DeviceOptions &options);

struct DeviceKind {
  plan::Target::Kind kind;
  const char *name; // as `zeroc --target` spells it
  std::unique_ptr<Device> (*make)(const DeviceOptions &);
  // Measures on this machine what its library can be told about the programs' products, and yields the text of the table: what `known` has,
  // and what was measured. `say` is told a sentence for each. Null: there is nothing to be chosen.
  std::string (*tune)(std::span<const DeviceProgram> programs, const MeasuredTable &known,
                      const std::function<void(const std::string &)> &say) = nullptr;
};

std::span<const DeviceKind> builtInDevices();

// The device that plans of this target run on. Throws a sentence about the plan `name` if this program has none.
const DeviceKind &deviceFor(const plan::Target &target, const std::string &name);

} // namespace zero::runtime
