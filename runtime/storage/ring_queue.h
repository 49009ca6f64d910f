// Requests through io_uring: one system call submits what is new and waits for what is complete.
#pragma once
#include "runtime/base/error.h"
#include "runtime/storage/request_queue.h"

namespace zero::runtime {

// The system does not let this process have a ring: the kernel has none, a container forbids it, or the little memory that the system keeps
// for one exceeds the limit on locked memory.
class RingRefused : public Error {
public:
  using Error::Error;
};

// Throws RingRefused, and a sentence of another kind for anything else.
std::unique_ptr<RequestQueue> makeRingQueue(std::span<const int> files);

} // namespace zero::runtime
