//===- origins.cpp - which step made the bytes that another one reads -------------------------------------===//
#include "runtime/judge/origins.h"
#include <algorithm>

namespace zero::judge {

Origins::Origins(const plan::Plan &plan, const plan::Program &program) : program(program), writes(size_t(plan.buffers_size())) {
  for (int s = 0; s < program.steps_size(); ++s)
    for (const plan::Ref &ref : program.steps(s).writes())
      if (ref.bytes()) writes[ref.buffer()].push_back({s, ref.offset(), ref.offset() + ref.bytes()});
}

// Backwards through what was written there; what an earlier write covers beside the one that was found is looked for on both sides of that.
std::vector<Origin> Origins::of(const plan::Ref &ref, int step) const {
  std::vector<Origin> found;
  std::vector<Part> open{whole(ref.buffer(), ref.offset(), ref.offset() + ref.bytes(), step)};
  while (!open.empty()) {
    Part part = open.back();
    open.pop_back();
    if (part.begin >= part.end) continue;
    const std::vector<Write> &here = writes[part.buffer];
    auto isMaker = [&](const Write &w) { return w.step < part.step && w.begin < part.end && part.begin < w.end; };
    while (part.known > 0 && !isMaker(here[part.known - 1])) --part.known;
    if (part.known == 0) {
      found.push_back({kBefore, part.buffer, part.begin, part.end});
      continue;
    }
    const Write &last = here[--part.known];
    uint64_t from = std::max(part.begin, last.begin), to = std::min(part.end, last.end);
    open.push_back({part.buffer, part.begin, from, part.step, part.known});
    open.push_back({part.buffer, to, part.end, part.step, part.known});
    if (moves(last.step, part.buffer))
      openSources(last.step, from, to, open);
    else
      found.push_back({last.step, part.buffer, from, to});
  }
  return found;
}

// What else a collective writes is room that it needs.
bool Origins::moves(int step, uint32_t buffer) const {
  const plan::Step &s = program.steps(step);
  bool gathers = s.has_collective() && s.collective().kind() == plan::Collective::ALL_GATHER;
  return (s.has_copy() || gathers) && s.writes(0).buffer() == buffer;
}

void Origins::openSources(int step, uint64_t begin, uint64_t end, std::vector<Part> &open) const {
  const plan::Step &move = program.steps(step);
  const plan::Ref &source = move.reads(0), &target = move.writes(0);
  uint64_t each = source.bytes(); // of one rank
  for (uint64_t at = begin; at < end && each;) {
    uint64_t inPart = (at - target.offset()) % each, stop = std::min(end, at + each - inPart), from = source.offset() + inPart;
    open.push_back(whole(source.buffer(), from, from + (stop - at), step));
    at = stop;
  }
}

} // namespace zero::judge
