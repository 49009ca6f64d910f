// Runs the text of a PTX kernel: for kernels that are written by hand and not made by zeroc, whose own are run as machine code (kernels.h).
// It knows the instructions that those use, and no others.
#pragma once
#include "test/gpu/fibers.h"
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace zero::fake {

class Machine {
public:
  // Reads the kernel `symbol` of a module. Throws std::runtime_error for what it does not know.
  Machine(const std::string &text, const std::string &symbol);

  std::vector<size_t> parameterBytes() const;
  // All threads of a launch, one after another. Throws if one reaches outside of the device's memory.
  void run(const std::vector<uint64_t> &parameters, test::GpuGrid grid) const;

private:
  struct Thread;
  using Instruction = std::function<void(Thread &)>;
  struct Parser;

  std::vector<std::pair<std::string, size_t>> parameters; // and their bytes
  std::vector<Instruction> code;
  size_t registers = 0;
};

} // namespace zero::fake
