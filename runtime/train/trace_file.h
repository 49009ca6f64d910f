// --trace: collects what the engine saw and writes one file for all ranks.
#pragma once
#include "runtime/checkpoint/slices.h"
#include "runtime/engine/engine.h"
#include "runtime/report/trace.h"
#include <string>
#include <vector>

namespace zero::runtime {

class TraceFile {
public:
  static constexpr uint64_t kSteps = 10;                 // training steps recorded: more would fill disks and no viewer opens them
  void collect(Engine &engine, const plan::Plan &plan);  // after a step
  void write(const Rank &rank, const std::string &path); // collective

private:
  std::vector<TraceSpan> spans;
  uint64_t steps = 0;
};

} // namespace zero::runtime
