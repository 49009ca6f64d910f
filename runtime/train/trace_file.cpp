#include "runtime/train/trace_file.h"
#include "runtime/checkpoint/shared_file.h"

namespace zero::runtime {

void TraceFile::collect(Engine &engine, const plan::Plan &plan) {
  if (steps++ < kSteps)
    for (const TraceEvent &event : engine.trace()) {
      const plan::Program &program = plan.programs(static_cast<int>(event.program));
      spans.push_back({program.steps(static_cast<int>(event.step)).name(), program.name(), event.lane, event.begin, event.end});
    }
  engine.clearTrace();
  if (steps == kSteps) engine.endTrace();
}

void TraceFile::write(const Rank &rank, const std::string &path) {
  bool last = rank.rank + 1 == rank.plan.world();
  std::string text = (rank.rank == 0 ? "[\n" : "") + traceEvents(static_cast<int>(rank.rank), spans) + (last ? "\n]\n" : ",\n");
  // Each rank's part lies after those of the ranks before it.
  std::vector<uint64_t> sizes(rank.plan.world());
  uint64_t mine = text.size(), offset = 0;
  rank.communicator.allGather(&mine, sizes.data(), sizeof mine);
  for (uint64_t r = 0; r < rank.rank; ++r) offset += sizes[r];
  SharedFile file(path, rank.communicator, [](const File &) {});
  file.file().write(offset, text.data(), text.size());
  file.publish();
}

} // namespace zero::runtime
