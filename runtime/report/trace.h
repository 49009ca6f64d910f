// --trace: what every lane did when, in the format of chrome://tracing and Perfetto.
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace zero::runtime {

// Training steps recorded, the first ones: more would fill disks, and no viewer opens them.
inline constexpr uint64_t kTracedSteps = 10;

struct TraceSpan {
  std::string_view name, program; // of the step, of the program
  int lane;
  double begin, end; // seconds
};

// The events of one rank as the inside of a JSON array, one a line: first those that name it and its lanes, then one for every span, which
// begins with the comma after the one before.
std::string traceNames(int rank, const std::set<int> &lanes);
std::string traceEvent(int rank, const TraceSpan &span);

} // namespace zero::runtime
