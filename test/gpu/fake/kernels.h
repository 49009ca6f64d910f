// Where the fake device's kernels come from: the library that ZERO_FAKE_KERNELS names.
#pragma once
#include "test/gpu/fibers.h"
#include <functional>
#include <string>
#include <vector>

namespace zero::fake {

// Computes a whole launch with arguments that the host can reach. False, with a line on stderr, if the kernel fails: it was made for
// another grid, or its threads wait for each other without end.
using Launch = std::function<bool(const std::vector<void *> &args, test::GpuGrid grid)>;

// Empty if there is no such kernel.
Launch launchOf(const std::string &symbol);

} // namespace zero::fake
