//===- sharing_cost.h - how much longer a step takes where buffers share bytes --------------------------------===//
#pragma once
#include "passes/pipeline/search.h"
#include <algorithm>
#include <limits>
#include <map>

namespace zero::pipeline {

/// Placed, a choice takes about as much longer than with every buffer apart as others of its kind do, of which there are many with other
/// numbers of tiles: those that copy activations away, or make them again, or do not. (GPT-2 124M in bf16 under 192 and 256 MiB: 1.15
/// to 1.18 times as long, 1.24 to 1.33 where blocks are made again.) Without tiles buffers are larger beside the room that there is, and it
/// may be much longer (ModernBERT of 79 million parameters in bf16 under 333 MiB: 1.26 times without, 1.02 with eight).
class SharingCost {
public:
  void learn(const Trial &apart, const Trial &placed) {
    double factor = placed.time.seconds / apart.time.seconds;
    auto [known, fresh] = least.try_emplace(kindOf(apart), factor);
    if (!fresh) known->second = std::min(known->second, factor);
  }

  /// With the seconds that it may take when it is placed, if all goes well: of an unknown kind half as much longer as the least of those
  /// with tiles, or without. (A Llama of 156 million parameters in f32 under 833 MiB: with tiles 1.38 to 1.45 times, but 1.22 times where
  /// activations go to disk.)
  Trial expected(Trial apart) const {
    const Kind kind = kindOf(apart);
    double factor = std::numeric_limits<double>::infinity();
    for (const auto &[other, cost] : least)
      if (other.tiled == kind.tiled) factor = std::min(factor, (1 + cost) / 2);
    if (auto known = least.find(kind); known != least.end()) factor = known->second;
    if (factor < std::numeric_limits<double>::infinity()) apart.time.seconds *= std::max(1.0, kUnlike * factor);
    return apart;
  }

private:
  static constexpr double kUnlike = 0.95; // how much less it may cost one choice than others of its kind
  struct Kind {
    bool tiled, makesAgain;
    std::string activations; // where they go
    auto operator<=>(const Kind &) const = default;
  };
  static Kind kindOf(const Trial &trial) {
    const Settings &settings = trial.settings;
    return {settings.tiling.parts > 1, settings.keepBytes.has_value(), settings.schedule.activations};
  }

  std::map<Kind, double> least;
};

} // namespace zero::pipeline
