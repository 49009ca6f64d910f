//===- slack.cpp - live ranges that leave other lanes time ----------------------------------------------===//
#include "passes/place/slack.h"
#include <algorithm>
#include <numeric>

namespace zero::place {

OffsetProblem withSlack(OffsetProblem problem, const std::vector<TransferEnds> &transfers, int64_t steps, int64_t reach) {
  std::vector<int64_t> live = liveBytes(problem, problem.alignment);
  live.resize(size_t(steps));
  auto bytesOf = [&](const OffsetBuffer &buffer) { return buffer.size.alignedTo(problem.alignment).count; };
  int64_t peak = *std::max_element(live.begin(), live.end());
  auto take = [&](int64_t step, int64_t bytes) {
    if (step < 0 || step >= steps || live[size_t(step)] + bytes >= peak) return false;
    live[size_t(step)] += bytes;
    return true;
  };
  std::vector<size_t> order(problem.buffers.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return problem.buffers[a].first < problem.buffers[b].first; });
  for (size_t i : order) {
    OffsetBuffer &buffer = problem.buffers[i];
    if (buffer.nextLast >= 0) continue; // how many bytes are live in the next run depends on all of these
    for (int64_t n = 0; transfers[i].ends && n < reach && take(buffer.last + 1, bytesOf(buffer)); ++n) ++buffer.last;
    for (int64_t n = 0; transfers[i].begins && n < reach && take(buffer.first - 1, bytesOf(buffer)); ++n) --buffer.first;
  }
  return problem;
}

} // namespace zero::place
