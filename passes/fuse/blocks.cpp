//===- blocks.cpp - where the blocks of a chain end --------------------------------------------------------===//
#include "passes/fuse/keep.h"
#include <map>

namespace zero::fuse {
namespace {

/// Between two places where least is under way.
struct Segment {
  uint32_t end;   // after its last
  uint64_t width; // bytes that what follows reads
  uint32_t kind;  // equal for equal segments
};

/// Bytes under way after each tensor.
std::vector<uint64_t> widths(std::span<const Made> forward) {
  std::vector<uint32_t> last(forward.size());
  for (uint32_t i = 0; i < forward.size(); ++i) {
    last[i] = i;
    for (uint32_t need : forward[i].needs) last[need] = i;
  }
  std::vector<uint64_t> opened(forward.size() + 1), closed(forward.size() + 1), result;
  for (uint32_t i = 0; i < forward.size(); ++i) opened[i] += forward[i].bytes, closed[last[i]] += forward[i].bytes;
  uint64_t width = 0;
  for (uint32_t i = 0; i < forward.size(); ++i) result.push_back(width += opened[i] - closed[i]);
  return result;
}

std::vector<Segment> segments(std::span<const Made> forward) {
  std::vector<uint64_t> width = widths(forward);
  std::vector<Segment> found;
  std::map<std::vector<uint64_t>, uint32_t> kinds;
  uint32_t begin = 0;
  auto end = [&](uint32_t at) {
    std::vector<uint64_t> text;
    for (uint32_t i = begin; i < at; ++i) {
      text.insert(text.end(), {forward[i].kind, forward[i].bytes, forward[i].needs.size()});
      for (uint32_t need : forward[i].needs) text.push_back(need >= begin ? i - need : 0);
    }
    found.push_back({at, width[at - 1], kinds.try_emplace(std::move(text), uint32_t(kinds.size())).first->second});
    begin = at;
  };
  bool narrower = false; // than what came before
  for (uint32_t i = 0, plateau = 0; i + 1 < forward.size(); ++i) {
    if (i > 0 && width[i] != width[i - 1]) narrower = width[i] < width[i - 1], plateau = i;
    if (i == 0) narrower = true;
    if (narrower && width[i + 1] > width[i]) end(plateau + 1);
  }
  if (begin < forward.size()) end(uint32_t(forward.size()));
  return found;
}

/// A run of segments in which each equals the one `period` later.
struct Repetition {
  size_t period = 0, length = 0; // at least two periods, or none
};

Repetition repetitionAt(std::span<const Segment> segments, size_t begin) {
  Repetition best;
  size_t rest = segments.size() - begin;
  for (size_t period = 1; 2 * period <= rest; ++period) {
    size_t length = period;
    while (length < rest && segments[begin + length].kind == segments[begin + length - period].kind) ++length;
    if (length >= 2 * period && length > best.length) best = {period, length};
  }
  return best;
}

} // namespace

std::vector<uint32_t> blockEnds(std::span<const Made> forward) {
  std::vector<Segment> all = segments(forward);
  std::vector<uint32_t> ends;
  for (size_t i = 0; i < all.size();) {
    Repetition found = repetitionAt(all, i);
    if (!found.period) {
      ends.push_back(all[i++].end);
      continue;
    }
    size_t phase = 0; // segments before the first whole block
    for (size_t d = 1; d < found.period; ++d)
      if (all[i + found.period + d - 1].width < all[i + found.period + phase - 1].width) phase = d;
    if (phase) ends.push_back(all[i + phase - 1].end);
    size_t at = i + phase;
    for (; at + found.period <= i + found.length; at += found.period) ends.push_back(all[at + found.period - 1].end);
    i += found.length;
    if (at < i) ends.push_back(all[i - 1].end);
  }
  return ends;
}

} // namespace zero::fuse
