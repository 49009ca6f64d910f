//===- gpu_library.h - kernels for a GPU, run on the processor --------------------------------------------===//
// Test double: loads what `gpu-double` made and launches its kernels, each with the grid it was made for. Needs no LLVM.
#pragma once
#include "fibers.h"
#include <mutex>
#include <string>

namespace zero::test {

class GpuLibrary {
public:
  explicit GpuLibrary(const std::string &path);
  /// The same from memory.
  GpuLibrary(const char *bytes, size_t size);
  ~GpuLibrary();
  GpuLibrary(const GpuLibrary &) = delete;

  bool has(const std::string &symbol) const;
  GpuGrid grid(const std::string &symbol) const;
  /// `args` are the addresses of the kernel's arguments. What is in shared memory before a block begins is no number. Throws if there is no
  /// such kernel, and as runGrid. Launches run one after another, whoever asks for them.
  /// `blocks`: the first ones of its grid; 0: all.
  void launch(const std::string &symbol, void *const *args, uint64_t order = 0, uint64_t blocks = 0) const;

private:
  void open(const std::string &path);
  template <typename T> T *find(const std::string &name) const;
  int fd = -1;
  void *handle = nullptr;
  mutable std::mutex shared; // memory of a block is one place of the library
};

} // namespace zero::test
