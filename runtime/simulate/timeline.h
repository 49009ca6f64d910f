//===- timeline.h - lanes in virtual time -----------------------------------------------------------------===//
// Each lane does its tasks one after another; a task also waits for ticks of other lanes. Tasks come in one linear order in which what they
// wait for comes first, as the steps of a plan do, so that one walk knows when each begins.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace zero::simulate {

inline constexpr int kLanes = 8; // plan.Lane

/// Until `tick` tasks of the lane are complete.
struct LaneTick {
  int lane = 0;
  uint64_t tick = 0;
};

/// Seconds.
struct Span {
  double begin = 0, end = 0;
};

class Timeline {
public:
  /// A program begins, whose ticks count from 0: what came before it is from now on `before`, and what came before that is complete. Lanes
  /// run on from there, or, drained, all begin when all are done.
  void begin(bool drained);
  /// The next task of a lane. It waits for ticks of this program and of the one before it.
  Span run(int lane, double seconds, std::span<const LaneTick> waits, std::span<const LaneTick> before = {});

  /// When everything so far is complete.
  double end() const { return endOf(now); }
  /// Seconds for which each lane has worked.
  const std::array<double, kLanes> &busy() const { return worked; }

private:
  using Ends = std::array<std::vector<double>, kLanes>; // of each lane's tasks, behind when its first could begin
  static double reached(const Ends &ends, const LaneTick &wait);
  static double endOf(const Ends &lanes);

  Ends now, earlier;
  std::array<double, kLanes> worked{};
};

} // namespace zero::simulate
