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

class Timeline {
public:
  static constexpr int kLanes = runtime::kLanes;

  // Before a program, while no lane runs.
  void reset() {
    for (Tick &tick : ticks) tick.value.store(0, std::memory_order_relaxed);
  }

  void advance(int lane) {
    ticks[static_cast<size_t>(lane)].value.fetch_add(1, std::memory_order_release);
    ticks[static_cast<size_t>(lane)].value.notify_all();
  }

  // Until `tick` steps of the lane are complete, or the timeline has failed.
  void wait(int lane, uint32_t tick) const {
    const std::atomic<uint32_t> &value = ticks[static_cast<size_t>(lane)].value;
    for (uint32_t now = value.load(std::memory_order_acquire); now < tick;) now = awaitChange(value, now);
  }

  // The first failure counts. All waits return from now on.
  void fail(std::exception_ptr why) {
    if (failed.exchange(true)) return;
    failure = std::move(why);
    for (Tick &tick : ticks) {
      tick.value.fetch_add(kPastTheEnd, std::memory_order_release);
      tick.value.notify_all();
    }
  }
  bool hasFailed() const { return failed.load(std::memory_order_acquire); }
  // To be read after all lanes have ended.
  std::exception_ptr reason() const { return failure; }

private:
  static constexpr uint32_t kPastTheEnd = uint32_t(1) << 31; // programs have fewer steps (their count is an int)
  struct alignas(64) Tick {
    std::atomic<uint32_t> value{0};
  };
  std::array<Tick, kLanes> ticks;
  std::atomic<bool> failed{false};
  std::exception_ptr failure;
};

} // namespace zero::runtime
