#include "runtime/report/trace.h"
#include "runtime/report/record.h"
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <set>

namespace zero::runtime {

std::string traceEvents(int rank, const std::vector<TraceSpan> &spans) {
  // Processes are ranks, threads are lanes.
  std::string text =
      fmt::format(R"({{"ph": "M", "name": "process_name", "pid": {}, "tid": 0, "args": {{"name": "rank {}"}}}})", rank, rank);
  std::set<int> lanes;
  for (const TraceSpan &span : spans) lanes.insert(span.lane);
  for (int lane : lanes)
    text += fmt::format(",\n"
                        R"({{"ph": "M", "name": "thread_name", "pid": {}, "tid": {}, "args": {{"name": "{}"}}}})",
                        rank, lane, kLaneNames[static_cast<size_t>(lane)]);
  for (const TraceSpan &span : spans)
    text += fmt::format(",\n"
                        R"({{"ph": "X", "name": {}, "cat": {}, "pid": {}, "tid": {}, "ts": {:.3f}, "dur": {:.3f}}})",
                        nlohmann::json(span.name).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
                        nlohmann::json(span.program).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), rank, span.lane,
                        span.begin * 1e6, (span.end - span.begin) * 1e6);
  return text;
}

} // namespace zero::runtime
