// Stacks that are large enough, whoever's shell has started this process.
#pragma once
#include <cstddef>

namespace zero::runtime {

// Enough for each thread of zerorun, those of libraries included.
inline constexpr size_t kThreadStackBytes = size_t(1) << 20;

// Both before any thread is started.
// The limit on the stack of the first thread (ulimit -s) is raised as far as may be, to the usual 8 MiB; the system gives all others as
// much as that was, and they get no less than the above. Throws a sentence if too little is left to go on.
void raiseStacks();
// Threads get so much, whatever that limit is.
void setThreadStacks(size_t bytes);

} // namespace zero::runtime
