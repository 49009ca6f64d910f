// The GPU that a rank runs on: its primary context, and what it says of itself.
#pragma once
#include "runtime/device/cuda/driver.h"
#include <cstdint>
#include <string>

namespace zero::runtime::cuda {

class Gpu {
public:
  // Of the machine's GPUs, in the driver's order (which CUDA_VISIBLE_DEVICES says), the one of the `rankHere`-th rank on it: ranks take
  // turns.
  explicit Gpu(int rankHere);
  ~Gpu();
  Gpu(const Gpu &) = delete;
  Gpu &operator=(const Gpu &) = delete;

  // Lets the calling thread's calls mean this GPU.
  void enter() const;
  // The same where nobody can be told that it failed: at the end.
  void enterAtEnd() const noexcept { driver.contextSetCurrent(context); }

  const std::string &name() const { return called; }
  int capability() const { return compute; } // 90: sm_90
  uint64_t freeBytes() const;

private:
  const Driver &driver;
  Ordinal ordinal = 0;
  ContextHandle context{};
  std::string called;
  int compute = 0;
};

} // namespace zero::runtime::cuda
