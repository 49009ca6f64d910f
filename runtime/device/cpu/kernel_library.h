// The plan's shared object, loaded from memory.
#pragma once
#include "runtime/device/cpu/calls.h"
#include "runtime/device/device.h"
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace zero::runtime {

class KernelLibrary {
public:
  KernelLibrary(std::span<const std::byte> object, std::span<const KernelSymbol> symbols);
  ~KernelLibrary();
  KernelLibrary(const KernelLibrary &) = delete;
  KernelLibrary &operator=(const KernelLibrary &) = delete;

  const std::vector<KernelFunction> &functions() const { return kernels; } // of the symbols, in their order

private:
  // What the object says of a kernel's bounds, where it is not what the plan says; empty otherwise.
  std::string boundsRefusal(const KernelSymbol &symbol) const;

  // The descriptor stays open while the library is loaded: dlopen recognises libraries by the text of their path, and
  // a reused descriptor number would silently give the library loaded before.
  int fd = -1;
  void *handle = nullptr;
  std::vector<KernelFunction> kernels;
};

// Names of the features of `wanted` that this machine's /proc/cpuinfo does not list, separated by ", ".
std::string missingFeatures(const std::vector<std::string> &wanted);

} // namespace zero::runtime
