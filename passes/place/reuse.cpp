//===- reuse.cpp - the bytes that transfers are given ---------------------------------------------------===//
#include "passes/place/reuse.h"
#include <algorithm>
#include <numeric>
#include <queue>

namespace zero::place {
namespace {

class Reuse {
public:
  Reuse(const OffsetProblem &problem, const std::vector<CopyEnds> &lanes, int64_t steps, OffsetSolution &solution)
      : problem(problem), lanes(lanes), steps(steps), offsets(solution.offsets), byBegin(offsets.size()), byEnd(offsets.size()) {
    std::iota(byBegin.begin(), byBegin.end(), size_t(0));
    byEnd = byBegin;
    std::stable_sort(byBegin.begin(), byBegin.end(), [&](size_t a, size_t b) { return offsets[a] < offsets[b]; });
    std::stable_sort(byEnd.begin(), byEnd.end(), [&](size_t a, size_t b) { return endOf(a) < endOf(b); });
  }

  void move(size_t index, Bytes height) {
    Bytes best = offsets[index];
    int64_t most = restAt(index, best);
    forEachPlace(index, height, [&](Bytes at, int64_t rest) {
      if (rest > most) most = rest, best = at;
    });
    if (best == offsets[index]) return;
    take(index);
    offsets[index] = best;
    put(index);
  }

  Bytes endOf(size_t index) const { return offsets[index] + sizeOf(index); }

private:
  Bytes sizeOf(size_t index) const { return problem.buffers[index].size.alignedTo(problem.alignment); }

  /// Steps between the two where they share bytes and a copy is at one end of what is between them; 0: they are live together.
  int64_t restOf(size_t a, size_t b) const { return std::min(between(a, b), between(b, a)); }

  /// From the end of `before` to the beginning of `after`, in the next step of training if need be.
  int64_t between(size_t before, size_t after) const {
    const OffsetBuffer &a = problem.buffers[before], &b = problem.buffers[after];
    if (a.first <= b.last && b.first <= a.last) return 0;
    if (b.first <= a.nextLast || a.first <= b.nextLast) return 1; // they may be in use together
    if (!lanes[before].ends && !lanes[after].begins) return steps;
    return b.first > a.last ? b.first - a.last : b.first - a.last + steps;
  }

  int64_t restAt(size_t index, Bytes at) const {
    int64_t rest = steps;
    for (size_t other = 0; other < offsets.size(); ++other)
      if (other != index && offsets[other] < at + sizeOf(index) && at < endOf(other)) rest = std::min(rest, restOf(index, other));
    return rest;
  }

  /// Sees the places that begin at the bottom or where another buffer ends, the lowest first: no other is better than all of them, since
  /// down to the next of these it only meets fewer. With the rest that the buffer would have there.
  template <typename See> void forEachPlace(size_t index, Bytes height, See see) const {
    using Met = std::pair<int64_t, Bytes>; // its rest, and its end
    std::priority_queue<Met, std::vector<Met>, std::greater<>> met;
    auto next = byBegin.begin();
    auto place = [&](Bytes at) {
      if (at + sizeOf(index) > height) return;
      for (; next != byBegin.end() && offsets[*next] < at + sizeOf(index); ++next)
        if (*next != index && endOf(*next) > at) met.push({restOf(index, *next), endOf(*next)});
      while (!met.empty() && met.top().second <= at) met.pop();
      see(at, met.empty() ? steps : met.top().first);
    };
    place(Bytes(0));
    Bytes last;
    for (size_t other : byEnd)
      if (other != index && endOf(other) > last) place(last = endOf(other));
  }

  void take(size_t index) {
    for (std::vector<size_t> *order : {&byBegin, &byEnd}) order->erase(std::find(order->begin(), order->end(), index));
  }
  void put(size_t index) {
    auto begins = [&](size_t a, size_t b) { return offsets[a] < offsets[b]; };
    auto ends = [&](size_t a, size_t b) { return endOf(a) < endOf(b); };
    byBegin.insert(std::upper_bound(byBegin.begin(), byBegin.end(), index, begins), index);
    byEnd.insert(std::upper_bound(byEnd.begin(), byEnd.end(), index, ends), index);
  }

  const OffsetProblem &problem;
  const std::vector<CopyEnds> &lanes;
  int64_t steps;
  std::vector<Bytes> &offsets;
  std::vector<size_t> byBegin, byEnd;
};

} // namespace

void restBytes(const OffsetProblem &problem, const std::vector<CopyEnds> &lanes, int64_t steps, Bytes height, OffsetSolution &solution) {
  constexpr int kSweeps = 2;  // the second hears of what the first has moved
  std::vector<size_t> copied; // in the order of the program
  for (size_t i = 0; i < problem.buffers.size(); ++i)
    if (lanes[i].begins || lanes[i].ends) copied.push_back(i);
  std::stable_sort(copied.begin(), copied.end(), [&](size_t a, size_t b) { return problem.buffers[a].first < problem.buffers[b].first; });
  Reuse reuse(problem, lanes, steps, solution);
  for (int sweep = 0; sweep < kSweeps; ++sweep)
    for (size_t index : copied) reuse.move(index, height);
  solution.height = Bytes(0);
  for (size_t i = 0; i < problem.buffers.size(); ++i) solution.height = std::max(solution.height, reuse.endOf(i));
}

} // namespace zero::place
