// Plans for cuda without a GPU: the libraries that stand in for NVIDIA's (test/gpu/fake), and kernels written in C as those have them.
#pragma once
#include "test/unit/plan_builder.h"
#include "test/unit/run_fixtures.h"

namespace zero::test {

// The plan as it would be for a GPU: a block for each iteration.
inline void makeCuda(plan::Plan &plan) {
  plan.mutable_target()->set_kind(plan::Target::CUDA);
  plan.mutable_target()->clear_features(), plan.mutable_target()->add_features("sm_90");
  for (plan::Kernel &kernel : *plan.mutable_kernels())
    kernel.mutable_gpu()->set_blocks(static_cast<uint32_t>(std::max<uint64_t>(kernel.extent(), 1))), kernel.mutable_gpu()->set_threads(64);
}

// Its sums as zeroc has them made for a GPU.
inline void sumByLibrary(plan::Plan &plan) {
  for (plan::Program &program : *plan.mutable_programs())
    for (plan::Step &step : *program.mutable_steps()) {
      if (!step.has_collective() || step.collective().order() != plan::Collective::RANK) continue;
      step.mutable_collective()->set_order(plan::Collective::LIBRARY), step.mutable_collective()->clear_slice();
      if (step.writes_size() == 2) step.mutable_writes()->RemoveLast();
    }
}

// What a plan's code segment holds of its kernels, as far as the fake reads it: their names, and how far they reach.
inline std::string ptxOf(const plan::Plan &plan) {
  std::string text = "//\n// for tests\n//\n.version 8.0\n.target sm_90\n.address_size 64\n";
  for (const plan::Kernel &kernel : plan.kernels()) {
    if (!kernel.has_gpu()) continue; // the host's
    std::vector<uint64_t> bounds{kernel.extent(), kernel.args()};
    bounds.insert(bounds.end(), kernel.arg_bytes().begin(), kernel.arg_bytes().end());
    bounds.push_back(kernel.row());
    text += ".visible .global .align 8 .u64 " + kernel.symbol() + "_bounds[" + std::to_string(bounds.size()) + "] = {";
    for (size_t i = 0; i < bounds.size(); ++i) text += (i ? ", " : "") + std::to_string(bounds[i]);
    text += "};\n.visible .entry " + kernel.symbol() + "()\n{\n\tret;\n}\n";
  }
  return text;
}

// Kernels in C as the cpu has them (run_fixtures.h), made into functions that compute a launch: the library for ZERO_FAKE_KERNELS.
inline std::string launches(const plan::Plan &plan, const std::string &source) {
  std::string before, after;
  for (const plan::Kernel &kernel : plan.kernels()) {
    const std::string &name = kernel.symbol();
    before += "void " + name + "(void *const *args, long begin, long end) __asm__(\"" + name + ".range\");\n";
    after += "void " + name + "_blocks(void **args, long blocks) __asm__(\"" + name + "\");\nvoid " + name +
             "_blocks(void **args, long blocks) { " + name + "(args, 0, blocks); }\n";
  }
  return compileKernels(before + source + after);
}

} // namespace zero::test
