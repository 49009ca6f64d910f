#include "runtime/simulate/timeline.h"
#include <algorithm>

namespace zero::simulate {

void Timeline::begin(bool drained) {
  double complete = endOf(earlier);
  std::swap(now, earlier);
  if (drained) complete = endOf(earlier);
  for (size_t lane = 0; lane < kLanes; ++lane)
    now[lane].assign(1, earlier[lane].empty() ? complete : std::max(complete, earlier[lane].back()));
}

double Timeline::reached(const Ends &ends, const LaneTick &wait) {
  const std::vector<double> &lane = ends[static_cast<size_t>(wait.lane)];
  return lane.empty() ? 0 : lane[std::min<size_t>(wait.tick, lane.size() - 1)];
}

Span Timeline::run(int lane, double seconds, std::span<const LaneTick> waits, std::span<const LaneTick> before) {
  std::vector<double> &ends = now[static_cast<size_t>(lane)];
  Span span{ends.back(), 0};
  for (const LaneTick &wait : waits) span.begin = std::max(span.begin, reached(now, wait));
  for (const LaneTick &wait : before) span.begin = std::max(span.begin, reached(earlier, wait));
  span.end = span.begin + seconds;
  ends.push_back(span.end);
  worked[static_cast<size_t>(lane)] += seconds;
  return span;
}

double Timeline::endOf(const Ends &lanes) {
  double all = 0;
  for (const auto &ends : lanes)
    if (!ends.empty()) all = std::max(all, ends.back());
  return all;
}

} // namespace zero::simulate
