//===- origins.cpp - which step made the bytes that another one reads -------------------------------------===//
#include "runtime/judge/origins.h"
#include <algorithm>

namespace zero::judge {

Origins::Origins(const plan::Plan &plan, const plan::Program &program) : program(program), writes(size_t(plan.buffers_size())) {
  for (int s = 0; s < program.steps_size(); ++s)
    for (const plan::Ref &ref : program.steps(s).writes())
      if (ref.bytes()) writes[ref.buffer()].push_back({s, ref.offset(), ref.offset() + ref.bytes()});
}

std::vector<Origin> Origins::of(const plan::Ref &ref, int step) const {
  std::vector<Origin> found;
  trace(ref.buffer(), ref.offset(), ref.offset() + ref.bytes(), step, found);
  return found;
}

// Backwards through what was written there; what an earlier write covers beside the one that was found is looked for on both sides of that.
void Origins::trace(uint32_t buffer, uint64_t begin, uint64_t end, int step, std::vector<Origin> &found) const {
  struct Part {
    uint64_t begin, end;
    size_t known; // writes that may have made it
  };
  const std::vector<Write> &here = writes[buffer];
  std::vector<Part> open{{begin, end, here.size()}};
  while (!open.empty()) {
    auto [first, stop, known] = open.back();
    open.pop_back();
    if (first >= stop) continue;
    while (known > 0 && (here[known - 1].step >= step || here[known - 1].begin >= stop || here[known - 1].end <= first)) --known;
    if (known == 0) {
      found.push_back({kBefore, buffer, first, stop});
      continue;
    }
    const Write &last = here[known - 1];
    uint64_t from = std::max(first, last.begin), to = std::min(stop, last.end);
    open.push_back({first, from, known - 1});
    open.push_back({to, stop, known - 1});
    const plan::Step &maker = program.steps(last.step);
    bool moves = maker.has_copy() || (maker.has_collective() && maker.collective().kind() == plan::Collective::ALL_GATHER);
    moves ? traceMoved(last.step, buffer, from, to, found) : found.push_back({last.step, buffer, from, to});
  }
}

void Origins::traceMoved(int step, uint32_t buffer, uint64_t begin, uint64_t end, std::vector<Origin> &found) const {
  const plan::Step &move = program.steps(step);
  const plan::Ref &source = move.reads(0), &target = move.writes(0);
  if (buffer != target.buffer()) return found.push_back({step, buffer, begin, end}); // room that a collective needs
  uint64_t part = move.has_copy() ? target.bytes() : source.bytes();                 // of one rank
  for (uint64_t at = begin; at < end && part;) {
    uint64_t inPart = (at - target.offset()) % part, stop = std::min(end, at + part - inPart);
    uint64_t from = source.offset() + inPart;
    trace(source.buffer(), from, from + (stop - at), step, found);
    at = stop;
  }
}

} // namespace zero::judge
