#include "passes/pipeline/alignments.h"
#include "runtime/plan/state.h"
#include <numeric>

namespace zero::pipeline {
namespace {

constexpr unsigned kMost = 16; // arenas start at multiples of far more

/// The largest divisor of all addresses that the reference stands for.
unsigned alignmentOf(const plan::Plan &plan, const plan::Ref &ref) {
  uint64_t divisor = std::gcd<uint64_t>(kMost, plan.buffers(int(ref.buffer())).offset());
  divisor = std::gcd(divisor, ref.offset());
  for (uint64_t stride : ref.strides()) divisor = std::gcd(divisor, stride);
  return unsigned(divisor);
}

} // namespace

std::vector<std::vector<unsigned>> argumentAlignments(const plan::Plan &plan) {
  std::vector<std::vector<unsigned>> alignments;
  for (const plan::Kernel &kernel : plan.kernels()) alignments.emplace_back(kernel.args(), kMost);
  for (const plan::Program &program : plan.programs())
    for (const plan::Step &step : program.steps()) {
      const plan::Launch *launch = plan::launchOf(step);
      if (!launch) continue;
      auto argument = alignments.at(launch->kernel()).begin();
      auto holds = [&](const plan::Ref &ref) { *argument = std::min(*argument, alignmentOf(plan, ref)), ++argument; };
      for (int i = 0; i < plan::kernelReads(step); ++i) holds(step.reads(i));
      for (int i = 0; i < plan::kernelWrites(step); ++i) holds(step.writes(i));
    }
  return alignments;
}

} // namespace zero::pipeline
