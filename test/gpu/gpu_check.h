//===- gpu_check.h - kernels for a GPU against the reference interpreter ----------------------------------===//
#pragma once
#include "../unit/kernel_check.h"
#include "double.h"
#include "gpu_library.h"

namespace zero::test {

/// Empty, or what is wrong with the kernel as a GPU would run it: values, orders of threads, results in place, bytes beside them.
/// `alignment`: of all arguments, in bytes; 0: those of their types.
inline std::string checkOnGpu(mlir::func::FuncOp kernel, const CheckOptions &options, unsigned alignment = 16) {
  auto info = codegen::describeForGpu(kernel);
  if (failed(info)) return "it has no description";
  std::vector<unsigned> alignments(alignment ? info->args : 0, alignment);
  auto object = compileDouble(codegen::GpuKernel{kernel, alignments});
  if (failed(object)) return "it cannot be compiled";
  GpuLibrary library(object->data(), object->size());
  std::mt19937 random(7);
  try {
    return checkLaunches(
        kernel, *info, [&](void *const *args, int way) { library.launch(info->symbol, args, way == 0 ? 0 : 1 + random()); }, options);
  } catch (const std::runtime_error &error) {
    return error.what();
  }
}

} // namespace zero::test
