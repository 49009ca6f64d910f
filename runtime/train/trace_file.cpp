#include "runtime/train/trace_file.h"
#include "runtime/checkpoint/shared_file.h"
#include "runtime/report/trace.h"

namespace zero::runtime {
namespace {

constexpr size_t kWriteBytes = size_t(64) << 10; // written at once

} // namespace

void TraceFile::collect(Engine &engine) {
  if (steps++ < kTracedSteps) events.insert(events.end(), engine.trace().begin(), engine.trace().end());
  engine.clearTrace();
  if (steps == kTracedSteps) engine.endTrace();
}

void TraceFile::text(const Rank &rank, const std::function<void(std::string_view)> &take) const {
  int number = static_cast<int>(rank.rank);
  std::set<int> lanes;
  for (const TraceEvent &event : events) lanes.insert(event.lane);
  if (number == 0) take("[\n");
  take(traceNames(number, lanes));
  for (const TraceEvent &event : events) {
    const plan::Program &program = rank.plan.programs(static_cast<int>(event.program));
    take(traceEvent(number, {program.steps(static_cast<int>(event.step)).name(), program.name(), event.lane, event.begin, event.end}));
  }
  take(rank.rank + 1 == rank.plan.world() ? "\n]\n" : ",\n");
}

void TraceFile::write(const Rank &rank, const std::string &path) {
  uint64_t mine = 0, offset = 0;
  text(rank, [&](std::string_view piece) { mine += piece.size(); });
  // Each rank's part lies after those of the ranks before it.
  std::vector<uint64_t> sizes(rank.plan.world());
  rank.communicator.allGather(&mine, sizes.data(), sizeof mine);
  for (uint64_t r = 0; r < rank.rank; ++r) offset += sizes[r];
  SharedFile file(path, rank.communicator, [](const File &) {});
  std::string held;
  auto flush = [&] {
    file.file().write(offset, held.data(), held.size());
    offset += held.size();
    held.clear();
  };
  text(rank, [&](std::string_view piece) {
    held += piece;
    if (held.size() >= kWriteBytes) flush();
  });
  flush();
  file.publish();
}

} // namespace zero::runtime
