//===- offsets.h - at which byte of an arena each buffer lies: problem, solvers, check -------------===//
// Plain data. A buffer is live in the steps [first, last], both inclusive; its bytes are the half-open range
// [offset, offset + size). Two buffers may share bytes if no step lies in both lives. One that is in use beside the first steps of the
// program's next run, too, shares none with those that are live there.
#pragma once
#include "passes/place/bytes.h"
#include <string>
#include <vector>

namespace zero::place {

struct OffsetBuffer {
  std::string name; // for messages
  Bytes size;
  int64_t first = 0, last = 0;
  int64_t nextLast = -1; // of the steps of the program's next run beside which it is in use still, from the first on; -1: none
};

struct OffsetProblem {
  Bytes alignment{64}; // every offset is a multiple
  std::vector<OffsetBuffer> buffers;
};

struct OffsetSolution {
  std::vector<Bytes> offsets; // in the order of the buffers
  Bytes height;
  std::string solver; // which of the portfolio found it
};

/// The steps of the program as far as buffers know it.
int64_t stepsOf(const OffsetProblem &problem);
/// Live bytes of each of them, with sizes rounded up to `unit`, and with what is in use of the run before.
std::vector<int64_t> liveBytes(const OffsetProblem &problem, Bytes unit);
/// The largest of them: no solution is lower.
Bytes largestLive(const OffsetProblem &problem, Bytes unit);

/// Places buffers one after another, in several orders and by two rules, and keeps the lowest arena; a local search improves the best two
/// while they are more than 0.2 % above the lower bound; not where none becomes as low as `most`, since the bound is higher, or the best so
/// far by more than the search gains. One of `low` bytes is as good as a lower one. The same problem always has the same answer.
OffsetSolution solveOffsets(const OffsetProblem &problem, Bytes most = Bytes(INT64_MAX), Bytes low = Bytes(0));

/// Empty if the answer is right; else a sentence that names what is wrong with it.
std::string checkOffsets(const OffsetProblem &problem, const OffsetSolution &solution);

/// Text form, "alignment N" and one line per buffer, "name size first last [nextLast]"; lines from '#' on are comments. parse throws
/// std::runtime_error.
std::string print(const OffsetProblem &problem);
OffsetProblem parseOffsetProblem(const std::string &text);

} // namespace zero::place
