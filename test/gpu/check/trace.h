//===- trace.h - what a run of zerorun wrote of itself ----------------------------------------------------===//
#pragma once
#include "runtime/plan/container.h"
#include "test/gpu/check/check.h"

namespace zero::check {

double median(std::vector<double> values);

/// Of each optimizer step, from `--metrics`; and the bytes that the plan's arenas take of the device.
struct Metrics {
  std::vector<double> seconds, rates; // tokens in a second
  double proven = 0;
};
/// Throws Error for fewer than `least` steps.
Metrics readMetrics(const std::string &path, size_t least);

/// One step of the plan over all traced runs of its program.
struct Traced {
  const plan::Program *program = nullptr;
  const plan::Step *step = nullptr;
  std::vector<double> seconds{};
  double mean() const { // the first run loads code
    size_t from = seconds.size() > 1;
    double sum = 0;
    for (size_t i = from; i < seconds.size(); ++i) sum += seconds[i];
    return sum / double(seconds.size() - from);
  }
};

struct Trace {
  std::vector<Traced> steps;
  double busy = 0, span = 0; // of lane compute, from the second run of a program on
};

/// Rank 0's events of `--trace`. Each lane's are its steps in the plan's order, again and again.
Trace readTrace(const plan::Plan &plan, const std::string &path);

} // namespace zero::check
