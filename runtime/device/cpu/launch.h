// What processors do in plans for the cpu, and in updates that the host makes for another device: a kernel's iterations on the threads of a
// pool, and fills.
#pragma once
#include "runtime/device/cpu/calls.h"
#include "runtime/device/cpu/thread_pool.h"

namespace zero::runtime {

// Returns when all of them are done. Cut into more pieces than there are threads, none smaller than the call's grain.
void launch(ThreadPool &pool, const LaunchCall &call);

// On the calling thread.
void fill(const FillCall &call);

} // namespace zero::runtime
