// The inputs of one program run, as the host has made them: in memory of its own, so that they can be made while another program runs.
#pragma once
#include "runtime/device/state.h"
#include "runtime/plan/plan.pb.h"
#include <cstddef>
#include <span>
#include <vector>

namespace zero::runtime {

class Inputs {
public:
  explicit Inputs(const plan::Plan &plan) : plan(plan), offsets{0} {
    for (const plan::Input &input : plan.inputs())
      offsets.push_back((offsets.back() + input.ref().bytes() + kAlignment - 1) / kAlignment * kAlignment);
    bytes.resize(offsets.back());
  }

  // The bytes of the plan's input `input`, as many as its Ref has; zeros at first.
  std::span<std::byte> of(int input) { return {bytes.data() + offsets[static_cast<size_t>(input)], plan.inputs(input).ref().bytes()}; }

  void writeTo(State &state) {
    for (int i = 0; i < plan.inputs_size(); ++i) state.write(plan.inputs(i).ref(), 0, of(i));
  }

private:
  static constexpr uint64_t kAlignment = 64;

  const plan::Plan &plan;
  std::vector<uint64_t> offsets;
  std::vector<std::byte> bytes;
};

} // namespace zero::runtime
