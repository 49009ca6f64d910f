//===- fibers.h - a block of GPU threads on one thread of the processor -----------------------------------===//
// Test double: every thread of a block is a fiber, which runs until it waits for others. When all of them wait, barriers open and
// shuffles exchange. In which order they run decides a number, so that a kernel that lacks a barrier shows.
#pragma once
#include <cstdint>
#include <functional>

namespace zero::test {

/// What a kernel's code calls in place of the intrinsics, in the order of the double's table of them.
struct GpuHooks {
  uint32_t (*thread)();
  uint32_t (*block)();
  void (*barrier)();
  uint32_t (*any)(uint32_t condition);
  void (*warpBarrier)();
  uint32_t (*shuffle)(uint32_t value, uint32_t bits); // of the thread of the warp whose number differs in these bits
  void (*multiplyMatrices)(void *registers);          // these three as warp_operations.h
  void (*loadMatrices)(void *registers);
  void (*loadTransposed)(void *registers);
  uint32_t (*pack)(float high, float low); // two numbers as bf16
  float (*power)(float exponent);          // of 2, as exact as a GPU's unit for it or better
  // cp.async: the first `count` bytes from there, then zeros; and until all that the thread has begun is there, and not before.
  void (*begin16)(void *to, const void *from, uint32_t count);
  void (*begin4)(void *to, const void *from, uint32_t count);
  void (*waitForCopies)();
  float (*inverse)(float number);           // 1 / number, likewise
  void (*timesTransposed)(void *registers); // of four warps, as warp_operations.h
  void (*plusTimesTransposed)(void *registers);
  void (*plusTimes)(void *registers);
  void (*fenceShared)(); // until products of four warps see what the thread has written, after a barrier
};
extern const GpuHooks kGpuHooks;

struct GpuGrid {
  uint64_t blocks;
  unsigned threads;
};

/// Runs `thread` as every thread of every block, in an order that depends on `order` (0: ascending); `beforeBlock` before each block.
/// Throws where threads of a block wait for each other without end: some have ended, or wait elsewhere. Any number of calls on different
/// threads of the processor do not meet.
void runGrid(GpuGrid grid, uint64_t order, const std::function<void()> &beforeBlock, const std::function<void()> &thread);

} // namespace zero::test
