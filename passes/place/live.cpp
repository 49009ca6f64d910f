//===- live.cpp - how many bytes are live in each step -------------------------------------------------===//
#include "passes/place/offsets.h"
#include <algorithm>
#include <numeric>

namespace zero::place {
namespace {

constexpr size_t kLevels = 64; // of how far buffers reach into the next run

/// Sums of live bytes of some buffers, by step.
class Live {
public:
  Live(int64_t steps, Bytes unit) : changes(size_t(steps) + 1), unit(unit) {}
  void add(const OffsetBuffer &buffer) {
    int64_t bytes = buffer.size.alignedTo(unit).count;
    changes[size_t(buffer.first)] += bytes, changes[size_t(buffer.last) + 1] -= bytes;
  }
  std::vector<int64_t> sums() const {
    std::vector<int64_t> sums(changes.size() - 1);
    std::partial_sum(changes.begin(), changes.end() - 1, sums.begin());
    return sums;
  }
  int64_t largest() const {
    int64_t live = 0, largest = 0;
    for (int64_t change : changes) largest = std::max(largest, live += change);
    return largest;
  }

private:
  std::vector<int64_t> changes;
  Bytes unit;
};

} // namespace

int64_t stepsOf(const OffsetProblem &problem) {
  int64_t steps = 0;
  for (const OffsetBuffer &buffer : problem.buffers) steps = std::max({steps, buffer.last + 1, buffer.nextLast + 1});
  return steps;
}

std::vector<int64_t> liveBytes(const OffsetProblem &problem, Bytes unit) {
  int64_t steps = stepsOf(problem);
  Live all(steps, unit), others(steps, unit), reaching(steps, unit); // those that do not reach into the next run, and that do
  std::vector<const OffsetBuffer *> next;
  for (const OffsetBuffer &buffer : problem.buffers) {
    all.add(buffer);
    if (buffer.nextLast < 0)
      others.add(buffer);
    else
      next.push_back(&buffer);
  }
  std::vector<int64_t> live = all.sums();
  if (next.empty()) return live;
  // Of those that reach as far as a step of the next run, no two that are live together in their own share bytes with each other or with
  // what is live in that step.
  std::vector<int64_t> beside = others.sums();
  std::stable_sort(next.begin(), next.end(), [](auto *a, auto *b) { return a->nextLast > b->nextLast; });
  for (size_t count = 0, levels = std::min(kLevels, next.size()), level = 1; level <= levels; ++level) {
    for (; count < next.size() * level / levels; ++count) reaching.add(*next[count]);
    int64_t to = next[count - 1]->nextLast, largest = reaching.largest();
    for (int64_t step = to; step >= 0; --step) {
      int64_t &here = live[size_t(step)];
      here = std::max(here, beside[size_t(step)] + largest);
    }
  }
  return live;
}

Bytes largestLive(const OffsetProblem &problem, Bytes unit) {
  std::vector<int64_t> live = liveBytes(problem, unit);
  return Bytes(live.empty() ? 0 : *std::max_element(live.begin(), live.end()));
}

} // namespace zero::place
