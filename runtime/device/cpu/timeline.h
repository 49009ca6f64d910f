// The ticks of all lanes: the only thing lanes share. Waiting spins for a moment and then sleeps until the lane has reached that tick;
// steps before it wake nobody, since who is woken takes a processor from who computes. (GPT-2 124M in bf16 under 768 MiB: lanes that looked
// after each step of the one they waited for did so 1500 times in a step of training.) A failing lane fails the whole timeline, which wakes
// everyone who waits.
#pragma once
#include "runtime/device/program.h"
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <exception>
#include <utility>

namespace zero::runtime {

inline void cpuPause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

inline constexpr int kSpins = 200; // before a thread sleeps, with a pause in between

// Sleeps until `word` differs from `old`; returns the new value.
inline uint32_t awaitChange(const std::atomic<uint32_t> &word, uint32_t old) {
  for (int i = 0; i < kSpins; ++i) {
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

  // A waiter publishes its target and its bit before it reads the tick for the last time, and an advance changes the tick before it reads
  // who waits; both orders are sequentially consistent, so one of the two sees the other. Between its look at a target and the clearing of
  // the bit the waiter may have gone on by itself and wait for a later tick: then the bit that is cleared is the later wait's, which is
  // woken too early and sets it again.
  void advance(int lane) {
    Tick &tick = ticks[static_cast<size_t>(lane)];
    uint32_t now = tick.value.fetch_add(1, std::memory_order_seq_cst) + 1;
    for (uint32_t left = tick.sleepers.load(std::memory_order_seq_cst); left != 0; left &= left - 1) {
      auto sleeper = static_cast<size_t>(std::countr_zero(left));
      if (isBefore(now, tick.targets[sleeper].load(std::memory_order_relaxed))) continue;
      if (tick.sleepers.fetch_and(~bitOf(sleeper)) & bitOf(sleeper)) wake(sleeper);
    }
  }

  // The lane `waiter`, until the other has reached `target`, or the timeline has failed.
  void wait(int waiter, int lane, uint32_t target) {
    Tick &tick = ticks[static_cast<size_t>(lane)];
    for (int i = 0; i < kSpins; ++i, cpuPause())
      if (!isBefore(tick.value.load(std::memory_order_acquire), target) || hasFailed()) return;
    auto self = static_cast<size_t>(waiter);
    std::atomic<uint32_t> &wakes = sleepers[self].wakes;
    tick.targets[self].store(target, std::memory_order_relaxed); // released with the bit, which an advance reads before it
    // `wakes` is read before the bit is set: who clears the bit has synchronized with it, so it changes `wakes` after that was read, and
    // this lane does not sleep on what is counted already.
    for (;;) {
      uint32_t seen = wakes.load(std::memory_order_acquire);
      tick.sleepers.fetch_or(bitOf(self), std::memory_order_seq_cst);
      if (!isBefore(tick.value.load(std::memory_order_seq_cst), target) || failed.load(std::memory_order_seq_cst)) break;
      wakes.wait(seen, std::memory_order_acquire);
    }
    tick.sleepers.fetch_and(~bitOf(self), std::memory_order_relaxed);
  }

  // The first failure counts. All waits return from now on.
  void fail(std::exception_ptr why) {
    if (failed.exchange(true)) return;
    failure = std::move(why);
    for (size_t lane = 0; lane < kLanes; ++lane) wake(lane);
  }
  bool hasFailed() const { return failed.load(std::memory_order_acquire); }
  // To be read after all lanes have ended.
  std::exception_ptr reason() const { return failure; }

private:
  struct alignas(64) Tick {
    std::atomic<uint32_t> value{0};
    std::atomic<uint32_t> sleepers{0}; // a bit of each lane that sleeps until `value` is its target
    std::array<std::atomic<uint32_t>, kLanes> targets{};
  };
  struct alignas(64) Sleeper {
    std::atomic<uint32_t> wakes{0}; // what the lane sleeps on
  };

  static bool isBefore(uint32_t tick, uint32_t target) { return static_cast<int32_t>(tick - target) < 0; }
  static uint32_t bitOf(size_t lane) { return uint32_t(1) << lane; }
  void wake(size_t lane) {
    sleepers[lane].wakes.fetch_add(1, std::memory_order_seq_cst);
    sleepers[lane].wakes.notify_one();
  }

  std::array<Tick, kLanes> ticks;
  std::array<Sleeper, kLanes> sleepers;
  std::atomic<bool> failed{false};
  std::exception_ptr failure;
};

} // namespace zero::runtime
