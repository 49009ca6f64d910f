//===- problem.h - what the judge sees of a program -----------------------------------------------===//
// Plain data, with a text form, so that wrong answers can be written down by hand and shown to the judge. Nothing here
// is shared with the solvers that produced the plan.
#pragma once
#include "runtime/plan/plan.pb.h"
#include <cstdint>
#include <string>
#include <vector>

namespace zero::judge {

/// Bytes [begin, end) of a buffer.
struct Access {
  uint32_t buffer = 0;
  uint64_t begin = 0, end = 0; // relative to the buffer
  bool writes = false;
};

struct Wait {
  uint32_t lane = 0;
  uint64_t tick = 0; // steps of that lane that must be complete
};

struct Step {
  std::string name;
  uint32_t lane = 0;
  std::vector<Wait> waits;
  std::vector<Access> accesses;
  std::string collective; // empty: none; else what every rank must call here in the same order
};

struct Buffer {
  std::string name;
  uint32_t arena = 0;
  uint64_t offset = 0, bytes = 0;
  bool persistent = false;
  uint32_t first = 0, last = 0; // steps, inclusive; transient buffers only
};

struct Arena {
  std::string name;
  uint64_t bytes = 0;
  uint64_t alignment = 1; // buffers start at multiples
};

/// Bytes the host reads behind the program.
struct Result {
  std::string name;
  uint32_t buffer = 0;
  uint64_t begin = 0, end = 0; // relative to the buffer
};

/// One program on one rank.
struct Problem {
  std::string name;
  std::vector<Arena> arenas;
  std::vector<Buffer> buffers;
  std::vector<Step> steps;
  std::vector<Result> results;
};

/// What a step touches on rank `rank`.
std::vector<Access> accessesOf(const plan::Plan &plan, const plan::Step &step, uint64_t rank);

/// A program of a validated plan as rank `rank` runs it.
Problem fromPlan(const plan::Plan &plan, int program, uint64_t rank);

/// Reads the text form; throws zero::Error naming the line. One statement a line, '#' starts a comment:
///   arena NAME BYTES [ALIGNMENT]
///   buffer NAME ARENA OFFSET BYTES life FIRST LAST        (or: persistent)
///   step NAME LANE [waits LANE:TICK …] [reads BUFFER[BEGIN:END] …] [writes BUFFER[BEGIN:END] …] [collective TEXT]
///   result NAME BUFFER[BEGIN:END]
std::vector<Problem> parse(const std::string &text); // several programs (ranks) are separated by "rank NAME" lines

const char *laneName(uint32_t lane);

} // namespace zero::judge
