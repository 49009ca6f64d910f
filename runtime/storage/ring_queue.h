// Requests through io_uring: one system call submits what is new and waits for what is complete.
#pragma once
#include "runtime/storage/request_queue.h"

namespace zero::runtime {

// Whether the system lets this process use it: kernels without it and many containers do not.
bool ringsAllowed();

// Throws a sentence if the system refuses a ring for another reason than that.
std::unique_ptr<RequestQueue> makeRingQueue(std::span<const int> files);

} // namespace zero::runtime
