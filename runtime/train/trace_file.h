// --trace: collects what the engine saw and writes one file for all ranks.
#pragma once
#include "runtime/checkpoint/slices.h"
#include "runtime/engine/engine.h"
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace zero::runtime {

class TraceFile {
public:
  void collect(Engine &engine);                          // after a step
  void write(const Rank &rank, const std::string &path); // collective

private:
  void text(const Rank &rank, const std::function<void(std::string_view)> &take) const; // this rank's part, in pieces

  std::vector<TraceEvent> events; // 32 bytes each: a run in little memory is looked at in little more
  uint64_t steps = 0;
};

} // namespace zero::runtime
