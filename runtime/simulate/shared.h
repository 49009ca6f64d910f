//===- shared.h - what several have under way on one resource --------------------------------------------===//
#pragma once
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

namespace zero::simulate {

/// All get equal shares, and it never rests while one of them has something to do. Time is counted in seconds that each has had of the
/// resource so far, so that a beginning or an end moves no other end.
class Shared {
public:
  /// `capacity`: how many of them would have as much as if they were alone.
  explicit Shared(double capacity = 1) : capacity(capacity) {}

  /// From `now` on: work of so many users at once, each of which takes `seconds` with one unit of the capacity to itself.
  void begin(double now, double seconds, double users, uint64_t work) {
    pass(now);
    underWay.push({had + seconds, users, work});
    sharing += users;
  }
  bool idle() const { return underWay.empty(); }
  /// When the next of them ends, if nothing begins before.
  double nextEnd(double now) const { return now + std::max(0.0, underWay.top().at - had - (now - since) * rate()) / rate(); }
  /// Ends it, at the time of nextEnd; which work it was.
  uint64_t end(double now) {
    pass(now);
    Work first = underWay.top();
    underWay.pop();
    sharing = underWay.empty() ? 0 : sharing - first.users;
    return first.work;
  }

private:
  struct Work {
    double at, users;
    uint64_t work;
    bool operator>(const Work &other) const { return std::pair(at, work) > std::pair(other.at, other.work); }
  };
  double rate() const { return capacity / sharing; } // seconds that each gets of it in one
  void pass(double now) {
    if (!underWay.empty()) had += (now - since) * rate();
    since = now;
  }

  double capacity, sharing = 0, had = 0, since = 0;
  std::priority_queue<Work, std::vector<Work>, std::greater<>> underWay;
};

} // namespace zero::simulate
