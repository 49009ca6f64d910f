// Sums in the order of ranks, which no library makes: a kernel of our own adds in f32 what the ranks have sent each other. It keeps the
// promise of runtime/comm/ordered_sum.h, so that a GPU's sums have the bits of the CPU's.
#pragma once
#include "runtime/device/cuda/handles.h"
#include "runtime/device/program.h"
#include <string>

namespace zero::runtime::cuda {

// dst[i] = x0 + x1 + … for i in [0, count), in exactly this order, where xr is parts[r * count + i], but mine[i] for rank `own`. dst may be
// `mine` where that is f32.
struct SumCall {
  Pointer parts, mine;
  plan::DType dtype; // of both: F32 or BF16
  Pointer dst;       // f32
  uint64_t count;
  uint32_t world, own;
};

// Its kernels, zero_sum_f32 and zero_sum_bf16: parts, mine, dst, count of 64 bits, world and own of 32.
std::string orderedSumPtx();

class OrderedSum {
public:
  OrderedSum(); // for the current GPU. Throws a sentence if the driver does not take it.

  void run(const SumCall &call, StreamHandle stream) const;

private:
  OwnedModule module;
  FunctionHandle ofF32{}, ofBf16{};
};

} // namespace zero::runtime::cuda
