// The seam below storage.h: requests to the disk under way, completed in any order. One thread at a time uses a queue.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace zero::runtime {

// One transfer between memory and a range of one file; all of it in multiples of kBlockBytes.
struct Request {
  bool writes;
  uint32_t file; // in the order of the descriptors the queue was made with
  uint64_t offset;
  std::byte *memory;
  uint32_t bytes;
};

// Of the request in a slot: the bytes that were transferred, from the first on, or minus an errno.
struct Outcome {
  uint32_t slot;
  int64_t result;
};

class RequestQueue {
public:
  virtual ~RequestQueue() = default;

  virtual uint32_t depth() const = 0; // requests that may be under way, in slots [0, depth)
  // Into a slot that is free. It is under way at the latest when wait() sleeps.
  virtual void submit(uint32_t slot, const Request &request) = 0;
  // One of those under way that is complete; its slot is free then. Where none is, it sleeps until `together` of them are, no more than are
  // under way: whoever needs many is not woken for each, which takes processors from those who compute.
  virtual Outcome wait(uint32_t together) = 0;
  // Memory that most requests will be about, alive as long as the queue: a queue may prepare it once instead of in every request.
  virtual void registerMemory(std::span<const std::span<std::byte>>) {}
  // Why it is this kind of queue and not a better one; empty if that is as it should be.
  virtual std::string remark() const { return ""; }
};

using MakeQueue = std::function<std::unique_ptr<RequestQueue>(std::span<const int> files)>;

} // namespace zero::runtime
