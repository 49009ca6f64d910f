#include "runtime/device/cuda/gpu.h"
#include <array>

namespace zero::runtime::cuda {

Gpu::Gpu(int rankHere) : driver(Driver::get()) {
  int count = 0, major = 0, minor = 0;
  std::array<char, 128> text{};
  driver.require(driver.deviceGetCount(&count), "cannot count this machine's GPUs");
  driver.require(driver.deviceGet(&ordinal, rankHere % count), "cannot choose a GPU");
  driver.require(driver.deviceGetName(text.data(), text.size() - 1, ordinal), "cannot ask the GPU for its name");
  driver.require(driver.deviceGetAttribute(&major, kCapabilityMajor, ordinal), "cannot ask the GPU what it can do");
  driver.require(driver.deviceGetAttribute(&minor, kCapabilityMinor, ordinal), "cannot ask the GPU what it can do");
  called = text.data(), compute = 10 * major + minor;
  driver.require(driver.contextRetain(&context, ordinal), "cannot use the GPU '" + called + "'");
  try {
    enter();
  } catch (...) {
    driver.contextRelease(ordinal);
    throw;
  }
}

Gpu::~Gpu() { driver.contextRelease(ordinal); }

void Gpu::enter() const { driver.require(driver.contextSetCurrent(context), "cannot use the GPU '" + called + "'"); }

uint64_t Gpu::freeBytes() const {
  size_t free = 0, total = 0;
  driver.require(driver.memoryInfo(&free, &total), "cannot ask the GPU for its memory");
  return free;
}

} // namespace zero::runtime::cuda
