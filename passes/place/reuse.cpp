//===- reuse.cpp - the bytes that transfers are given ---------------------------------------------------===//
#include "passes/place/reuse.h"
#include <algorithm>

namespace zero::place {
namespace {

struct Range {
  Bytes begin, end;
  bool meets(Range other) const { return begin < other.end && other.begin < end; }
};

/// What is live in a step, the lowest first: it grows with the depth of a model, and is looked through for each buffer that moves. So it
/// lies in one piece.
class Live {
public:
  struct Buffer {
    Range range;
    int64_t last;
  };
  void add(Buffer buffer) {
    buffers.insert(
        std::partition_point(buffers.begin(), buffers.end(), [&](const Buffer &other) { return other.range.begin <= buffer.range.begin; }),
        buffer);
  }
  void dropBefore(int64_t step) {
    std::erase_if(buffers, [&](const Buffer &buffer) { return buffer.last < step; });
  }
  const std::vector<Buffer> &all() const { return buffers; }

private:
  std::vector<Buffer> buffers;
};

/// Where a buffer may go: what is left of an arena in pieces of at least its size, the lowest first.
class Gaps {
public:
  Gaps(Bytes size, Bytes height, const Live &live) : size(size) {
    Bytes end;
    for (const Live::Buffer &buffer : live.all()) {
      add({end, std::min(buffer.range.begin, height)});
      end = std::max(end, buffer.range.end);
    }
    add({end, height});
  }
  bool empty() const { return gaps.empty(); }
  Bytes lowest() const { return gaps.front().begin; }

  void take(Range taken) {
    auto first = std::partition_point(gaps.begin(), gaps.end(), [&](Range gap) { return gap.end <= taken.begin; }), last = first;
    while (last != gaps.end() && last->begin < taken.end) ++last;
    if (first == last) return;
    Range below{first->begin, taken.begin}, above{taken.end, std::prev(last)->end};
    auto at = gaps.erase(first, last);
    if (above.begin + size <= above.end) at = gaps.insert(at, above);
    if (below.begin + size <= below.end) gaps.insert(at, below);
  }

private:
  void add(Range gap) {
    if (gap.begin < gap.end && gap.begin + size <= gap.end) gaps.push_back(gap);
  }

  Bytes size;
  std::vector<Range> gaps;
};

/// A buffer and the step where it begins, or where it ends.
struct End {
  int64_t step;
  size_t index;
};

/// Ends in the order of their distance after a step, over the end of the program too.
class Walk {
public:
  /// `ends`: in the order of steps.
  Walk(const std::vector<End> &ends, int64_t from, int64_t steps) : ends(ends), from(from), steps(steps), left(ends.size()) {
    next = size_t(std::partition_point(ends.begin(), ends.end(), [&](End end) { return end.step <= from; }) - ends.begin());
    measure();
  }
  /// Of the next one; the steps of the program if there is none.
  int64_t distance() const { return nearest; }
  size_t take() {
    size_t taken = ends[next].index;
    ++next, --left;
    measure();
    return taken;
  }

private:
  void measure() {
    if (next == ends.size()) next = 0, from -= steps;
    nearest = left ? std::min(steps, ends[next].step - from) : steps;
  }

  const std::vector<End> &ends;
  int64_t from, steps, nearest;
  size_t next, left;
};

class Reuse {
public:
  Reuse(const OffsetProblem &problem, const std::vector<TransferEnds> &transfers, int64_t steps, Bytes height,
        const OffsetSolution &solution)
      : buffers(problem.buffers), transfers(transfers), steps(steps), height(height) {
    for (size_t i = 0; i < buffers.size(); ++i) {
      ranges.push_back({solution.offsets[i], solution.offsets[i] + buffers[i].size.alignedTo(problem.alignment)});
      End begin{buffers[i].first, i}, end{-buffers[i].last, i}; // after an end, back in time
      begins.push_back(begin), ends.push_back(end);
      if (transfers[i].begins) movedBegins.push_back(begin);
      if (transfers[i].ends) movedEnds.push_back(end);
      if (transfers[i].begins || transfers[i].ends) moved.push_back(begin);
      if (buffers[i].nextLast >= 0) besideNext.push_back(i);
    }
    std::stable_sort(besideNext.begin(), besideNext.end(), [&](size_t a, size_t b) { return buffers[a].nextLast > buffers[b].nextLast; });
    for (std::vector<End> *list : {&begins, &ends, &movedBegins, &movedEnds, &moved})
      std::stable_sort(list->begin(), list->end(), [](End a, End b) { return a.step < b.step; });
  }

  /// Moves each buffer of transfers once, in the order of the program.
  void sweep() {
    size_t begun = 0;
    Live live; // that began earlier
    for (auto [step, index] : moved) {
      for (; begins[begun].step < step; ++begun) {
        size_t other = begins[begun].index;
        if (buffers[other].last >= step) live.add({ranges[other], buffers[other].last});
      }
      live.dropBefore(step);
      move(index, live, begun);
    }
  }

  void write(OffsetSolution &solution) const {
    solution.height = Bytes(0);
    for (size_t i = 0; i < buffers.size(); ++i) {
      solution.offsets[i] = ranges[i].begin;
      solution.height = std::max(solution.height, ranges[i].end);
    }
  }

private:
  /// To the lowest of the places with the longest rest, if that is longer than where it is. The others take their bytes away, those with
  /// the shortest rest first, until no place is left. Live with it are `live` and some of `begins` from `begun` on.
  void move(size_t index, const Live &live, size_t begun) {
    const OffsetBuffer &buffer = buffers[index];
    const Range mine = ranges[index];
    Gaps gaps(mine.end - mine.begin, height, live);
    bool meets = false; // where it is, somebody with a shorter rest
    auto take = [&](size_t other) {
      if (other == index) return;
      gaps.take(ranges[other]);
      meets |= mine.meets(ranges[other]);
    };
    for (; begun < begins.size() && begins[begun].step <= buffer.last; ++begun) take(begins[begun].index);

    Bytes lowest;
    bool better = false;
    Walk before(transfers[index].begins ? ends : movedEnds, -buffer.first, steps),
        after(transfers[index].ends ? begins : movedBegins, buffer.last, steps);
    for (int64_t rest = 1; !gaps.empty(); rest = std::min(before.distance(), after.distance())) {
      lowest = gaps.lowest(), better = meets;
      if (rest >= std::min(steps, kLong)) break;
      if (rest == 1) takeBesideNext(buffer, take);
      while (before.distance() == rest) take(before.take());
      while (after.distance() == rest) take(after.take());
    }
    if (better) ranges[index] = {lowest, lowest + (mine.end - mine.begin)};
  }

  /// What may be in use together with a buffer when the program runs again.
  template <typename Take> void takeBesideNext(const OffsetBuffer &buffer, Take take) const {
    for (size_t i = 0; i < begins.size() && begins[i].step <= buffer.nextLast; ++i) take(begins[i].index);
    for (size_t i = 0; i < besideNext.size() && buffer.first <= buffers[besideNext[i]].nextLast; ++i) take(besideNext[i]);
  }

  static constexpr int64_t kLong = 1024; // steps; a longer rest makes no copy earlier, and each is looked for among all that end in it

  const std::vector<OffsetBuffer> &buffers;
  const std::vector<TransferEnds> &transfers;
  int64_t steps;
  Bytes height;
  std::vector<Range> ranges; // of each buffer
  std::vector<End> begins, ends, movedBegins, movedEnds, moved;
  std::vector<size_t> besideNext;
};

} // namespace

void restBytes(const OffsetProblem &problem, const std::vector<TransferEnds> &transfers, int64_t steps, Bytes height,
               OffsetSolution &solution) {
  constexpr int kSweeps = 2; // the second hears of what the first has moved
  Reuse reuse(problem, transfers, steps, height, solution);
  for (int sweep = 0; sweep < kSweeps; ++sweep) reuse.sweep();
  reuse.write(solution);
}

} // namespace zero::place
