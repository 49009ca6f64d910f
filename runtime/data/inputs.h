// The inputs of one program run, as the host has made them: in memory of its own, so that they can be made while another program runs.
#pragma once
#include "runtime/plan/plan.pb.h"
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace zero::runtime {

class Inputs {
public:
  // `memory`: bytesOf(plan) or more.
  Inputs(const plan::Plan &plan, std::span<std::byte> memory) : plan(plan), offsets(offsetsOf(plan)), memory(memory) {}

  static uint64_t bytesOf(const plan::Plan &plan) { return offsetsOf(plan).back(); }

  // The bytes of the plan's input `input`, as many as its Ref has.
  std::span<std::byte> of(int input) const { return memory.subspan(offsets[static_cast<size_t>(input)], plan.inputs(input).ref().bytes()); }

private:
  static constexpr uint64_t kAlignment = 64;

  static std::vector<uint64_t> offsetsOf(const plan::Plan &plan) {
    std::vector<uint64_t> offsets{0};
    for (const plan::Input &input : plan.inputs())
      offsets.push_back((offsets.back() + input.ref().bytes() + kAlignment - 1) / kAlignment * kAlignment);
    return offsets;
  }

  const plan::Plan &plan;
  std::vector<uint64_t> offsets;
  std::span<std::byte> memory;
};

} // namespace zero::runtime
