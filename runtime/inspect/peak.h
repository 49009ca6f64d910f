//===- peak.h - what fills the fullest moment of a program ---------------------------------------------===//
#pragma once
#include "runtime/inspect/inspect.h"

namespace zero::inspect {

struct Peak {
  struct Layer {
    std::string name;
    ByKind kinds{};
    uint64_t bytes = 0;
  };
  uint32_t step = 0;
  uint64_t bytes = 0;
  std::vector<Layer> layers;     // the fullest first
  std::vector<uint32_t> largest; // buffers, the largest first; ten of them
};
Peak peakOf(const plan::Plan &plan, int program);

} // namespace zero::inspect
