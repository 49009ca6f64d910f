// The plan's PTX, compiled by the driver for the GPU at hand.
#pragma once
#include "runtime/device/cuda/handles.h"
#include "runtime/device/device.h"
#include <span>
#include <vector>

namespace zero::runtime::cuda {

struct Kernel {
  FunctionHandle function{};
  plan::Grid grid;
  uint64_t extent = 0; // iterations of a launch
};

// `what`: "the plan's kernels", for sentences. Throws one for text that the driver refuses.
OwnedModule compilePtx(const std::string &text, const std::string &what);

class KernelModule {
public:
  // Throws a sentence for code that the driver refuses, a kernel that is not there, or one that reaches further or less far than the plan
  // says.
  KernelModule(std::span<const std::byte> ptx, std::span<const KernelSymbol> symbols);

  const std::vector<Kernel> &kernels() const { return list; } // of the symbols, in their order

private:
  Kernel load(const KernelSymbol &symbol) const;
  std::vector<uint64_t> boundsOf(const std::string &symbol) const; // empty: it says nothing of them

  OwnedModule module;
  std::vector<Kernel> list;
};

} // namespace zero::runtime::cuda
