// The ticks of all lanes: the only thing lanes share. Advancing a lane is one store; waiting spins for a moment and then
// sleeps on the tick itself. A failing lane fails the whole timeline, which wakes everyone who waits.
#pragma once
#include "runtime/device/program.h"
#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <utility>

namespace zero::runtime {

inline void cpuPause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Sleeps until `word` differs from `old`; returns the new value.
inline uint32_t awaitChange(const std::atomic<uint32_t> &word, uint32_t old) {
  for (int i = 0; i < 200; ++i) {
    uint32_t value = word.load(std::memory_order_acquire);
    if (value != old) return value;
    cpuPause();
  }
  word.wait(old, std::memory_order_acquire);
  return word.load(std::memory_order_acquire);
}

// Ticks of all programs together, which wrap. Lanes are never further apart than the steps of two programs.
class Timeline {
public:
  static constexpr int kLanes = runtime::kLanes;

  void advance(int lane) {
    ticks[static_cast<size_t>(lane)].value.fetch_add(1, std::memory_order_release);
    ticks[static_cast<size_t>(lane)].value.notify_all();
  }

  // Until the lane has reached `tick`, or the timeline has failed.
  void wait(int lane, uint32_t tick) const {
    const std::atomic<uint32_t> &value = ticks[static_cast<size_t>(lane)].value;
    for (uint32_t now = value.load(std::memory_order_acquire); static_cast<int32_t>(now - tick) < 0 && !hasFailed();)
      now = awaitChange(value, now);
  }

  // The first failure counts. All waits return from now on.
  void fail(std::exception_ptr why) {
    if (failed.exchange(true)) return;
    failure = std::move(why);
    for (size_t lane = 0; lane < kLanes; ++lane) advance(static_cast<int>(lane)); // those who wait look again
  }
  bool hasFailed() const { return failed.load(std::memory_order_acquire); }
  // To be read after all lanes have ended.
  std::exception_ptr reason() const { return failure; }

private:
  struct alignas(64) Tick {
    std::atomic<uint32_t> value{0};
  };
  std::array<Tick, kLanes> ticks;
  std::atomic<bool> failed{false};
  std::exception_ptr failure;
};

} // namespace zero::runtime
