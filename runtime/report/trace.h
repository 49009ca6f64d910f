// --trace: what every lane did when, in the format of chrome://tracing and Perfetto.
#pragma once
#include <string>
#include <vector>

namespace zero::runtime {

struct TraceSpan {
  std::string name, program; // of the step, of the program
  int lane;
  double begin, end; // seconds
};

// The events of one rank as the inside of a JSON array: one event a line, separated by commas, no comma at the end.
std::string traceEvents(int rank, const std::vector<TraceSpan> &spans);

} // namespace zero::runtime
