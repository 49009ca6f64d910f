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
  uint64_t first = begin, stop = end; // [first, stop) has those of every rank: waits are the same on all
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
  bool stale = false;           // what a persistent one holds before the program is out of date
};

struct Arena {
  std::string name;
  uint64_t bytes = 0;
  uint64_t alignment = 1; // buffers start at multiples
};

/// Bytes the host reads after the program.
struct Result {
  std::string name;
  uint32_t buffer = 0;
  uint64_t begin = 0, end = 0; // relative to the buffer
};

/// How lanes run on into a program from another: waits for ticks of that.
struct Entry {
  std::string after;
  std::vector<Wait> inputWaits;
  std::vector<std::pair<uint32_t, Wait>> waits; // by step
};

/// One program on one rank. What the host does is a step of lane compute: it writes the inputs, which is tick 0, and reads the results.
struct Problem {
  std::string name;
  bool another = false; // another program of the same rank as the one before it in a list, not another rank
  std::vector<Arena> arenas;
  std::vector<Buffer> buffers;
  std::vector<Step> steps; // after those of the plan what the host does before and after them, once addHost has been called
  std::vector<Access> inputs;
  std::vector<Result> results;
  std::vector<Wait> resultWaits; // what reading the results waits for
  std::vector<Entry> entries;
  uint32_t host = ~0u; // the step that writes the inputs; the one that reads the results follows it
  bool isHost(uint32_t step) const { return step >= host; }
};

/// Once all the rest is known.
void addHost(Problem &problem);

/// What a step touches on rank `rank`.
std::vector<Access> accessesOf(const plan::Plan &plan, const plan::Step &step, uint64_t rank);

/// A program of a validated plan as rank `rank` runs it.
Problem fromPlan(const plan::Plan &plan, int program, uint64_t rank);

/// Reads the text form; throws zero::Error naming the line. One statement a line, '#' starts a comment:
///   arena NAME BYTES [ALIGNMENT]
///   buffer NAME ARENA OFFSET BYTES life FIRST LAST        (or: persistent)
///   step NAME LANE [waits LANE:TICK …] [reads BUFFER[BEGIN:END] …] [writes BUFFER[BEGIN:END] …] [collective TEXT]
///   input BUFFER[BEGIN:END] …                             what the host writes before the steps
///   result NAME BUFFER[BEGIN:END]                         what it reads after them
///   reads LANE:TICK …                                     what that waits for
/// Several ranks are separated by "rank NAME" lines, several programs of one rank, which share arenas and persistent buffers, by "program
/// NAME" lines. Lanes run on from one program into another or into itself after
///   entry PROGRAM [LANE:TICK …]                           what writing the inputs waits for there
/// and then steps have "after LANE:TICK …" as well.
std::vector<Problem> parse(const std::string &text);

} // namespace zero::judge
