// The line a person watches: rewritten in place on a terminal, a plain line now and then elsewhere.
#pragma once
#include "runtime/report/record.h"
#include <chrono>
#include <cstdio>
#include <string>

namespace zero::runtime {

// "step 12/300  epoch 0.35  loss 3.4567  lr 1.0e-03  1234 tokens/s  0:48 left"
std::string progressText(const StepRecord &record, double secondsLeft);
std::string durationText(double seconds); // "0:48", "1:02:03", "3 days"

// How many steps apart the lines of a log stand: 1, 2, 5, 10, 20, …, for twenty lines or a little more, closer where steps are so slow
// that ten seconds would pass between two lines.
uint64_t logStride(uint64_t steps, double secondsPerStep);

class ProgressLine {
public:
  // `out` stays the caller's and outlives the line. `rewrite`: one line, rewritten in place and cut to the terminal's width.
  ProgressLine(std::FILE *out, bool rewrite);
  ~ProgressLine(); // leaves the cursor on a fresh line
  void show(const StepRecord &record);
  void say(const std::string &sentence); // a line of its own
  // Why the last line could not be written (errno), or 0: EPIPE where nobody reads any more. The first failure is said on stderr, and
  // from there on so are sentences; lines of steps are not.
  int failure() const { return failed; }

private:
  void put(const std::string &text);

  std::FILE *out;
  bool rewrite, open = false; // open: the cursor stands after a line that will be rewritten
  uint64_t first = 0;         // step this run started with
  int failed = 0;
  std::chrono::steady_clock::time_point start, last;
};

} // namespace zero::runtime
