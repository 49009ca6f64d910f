#include "runtime/report/trace.h"
#include "runtime/plan/lanes.h"
#include "runtime/report/record.h"
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace zero::runtime {
namespace {

std::string quoted(std::string_view text) { return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace); }

} // namespace

// Processes are ranks, threads are lanes.
std::string traceNames(int rank, const std::set<int> &lanes) {
  std::string text =
      fmt::format(R"({{"ph": "M", "name": "process_name", "pid": {}, "tid": 0, "args": {{"name": "rank {}"}}}})", rank, rank);
  for (int lane : lanes)
    text += fmt::format(",\n"
                        R"({{"ph": "M", "name": "thread_name", "pid": {}, "tid": {}, "args": {{"name": "{}"}}}})",
                        rank, lane, plan::kLaneNames[static_cast<size_t>(lane)]);
  return text;
}

std::string traceEvent(int rank, const TraceSpan &span) {
  return fmt::format(",\n"
                     R"({{"ph": "X", "name": {}, "cat": {}, "pid": {}, "tid": {}, "ts": {:.3f}, "dur": {:.3f}}})",
                     quoted(span.name), quoted(span.program), rank, span.lane, span.begin * 1e6, (span.end - span.begin) * 1e6);
}

} // namespace zero::runtime
