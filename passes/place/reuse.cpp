//===- reuse.cpp - the bytes that transfers are given ---------------------------------------------------===//
#include "passes/place/reuse.h"
#include <algorithm>
#include <numeric>
#include <optional>

namespace zero::place {
namespace {

class Reuse {
public:
  Reuse(const OffsetProblem &problem, const std::vector<CopyEnds> &lanes, int64_t steps, const OffsetSolution &solution) : steps(steps) {
    for (size_t i = 0; i < problem.buffers.size(); ++i) {
      const OffsetBuffer &buffer = problem.buffers[i];
      Bytes begin = solution.offsets[i];
      placed.push_back({begin, begin + buffer.size.alignedTo(problem.alignment), buffer.first, buffer.last, buffer.nextLast, lanes[i], i});
    }
    std::stable_sort(placed.begin(), placed.end(), isBelow);
    rests.resize(placed.size());
  }

  /// To the lowest of the places with the longest rest, if that is longer than where it is.
  void move(size_t index, Bytes height) {
    auto mine = std::find_if(placed.begin(), placed.end(), [&](const Placed &one) { return one.index == index; });
    Placed moving = *mine;
    int64_t rest = steps; // where it is
    for (size_t i = 0; i < placed.size(); ++i) {
      const Placed &other = placed[i];
      rests[i] = other.index == index ? steps : restOf(moving, other);
      if (other.begin < moving.end && moving.begin < other.end) rest = std::min(rest, rests[i]);
    }
    // The longer it is to be, the more is in the way.
    std::optional<Bytes> best;
    for (int64_t longest = steps + 1, asked = rest + 1; rest + 1 < longest; asked = rest + (longest - rest) / 2) {
      if (std::optional<Bytes> place = placeFor(moving.end - moving.begin, height, asked))
        best = place, rest = asked;
      else
        longest = asked;
    }
    if (!best) return;
    placed.erase(mine);
    moving.end = *best + (moving.end - moving.begin), moving.begin = *best;
    placed.insert(std::upper_bound(placed.begin(), placed.end(), moving, isBelow), moving);
  }

  void write(OffsetSolution &solution) const {
    solution.height = Bytes(0);
    for (const Placed &one : placed) {
      solution.offsets[one.index] = one.begin;
      solution.height = std::max(solution.height, one.end);
    }
  }

private:
  struct Placed {
    Bytes begin, end;
    int64_t first, last, nextLast; // as the problem has them
    CopyEnds copies;
    size_t index;
  };
  static bool isBelow(const Placed &a, const Placed &b) { return a.begin < b.begin; }

  /// Steps between the two where they share bytes and a copy is at one end of what is between them; 0: they are live together.
  int64_t restOf(const Placed &a, const Placed &b) const {
    if (a.first <= b.last && b.first <= a.last) return 0;
    if (b.first <= a.nextLast || a.first <= b.nextLast) return 1; // they may be in use together
    return std::min(between(a, b), between(b, a));
  }

  /// From the end of `before` to the beginning of `after`, in the next step of training if need be.
  int64_t between(const Placed &before, const Placed &after) const {
    if (!before.copies.ends && !after.copies.begins) return steps;
    return after.first - before.last + (after.first > before.last ? 0 : steps);
  }

  /// The lowest place below `height` that meets no buffer whose rest is shorter than `rest`: at the bottom, or where one of these ends.
  std::optional<Bytes> placeFor(Bytes size, Bytes height, int64_t rest) const {
    Bytes at;
    for (size_t i = 0; i < placed.size(); ++i) {
      bool meets = rests[i] < rest; // as likely as not: no branch
      if (meets & (placed[i].begin >= at + size)) break;
      Bytes above = std::max(at, placed[i].end);
      at = meets ? above : at;
    }
    return at + size <= height ? std::optional(at) : std::nullopt;
  }

  int64_t steps;
  std::vector<Placed> placed; // by their first byte
  std::vector<int64_t> rests; // of each of these with the buffer that moves
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
  reuse.write(solution);
}

} // namespace zero::place
