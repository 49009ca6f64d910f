// A kernel's iterations on the threads of a pool: of plans for the cpu, and of updates that the host makes for another device.
#pragma once
#include "runtime/device/cpu/calls.h"
#include "runtime/device/cpu/thread_pool.h"

namespace zero::runtime {

// Returns when all of them are done. Cut into more pieces than there are threads, none smaller than the call's grain.
void launch(ThreadPool &pool, const LaunchCall &call);

} // namespace zero::runtime
