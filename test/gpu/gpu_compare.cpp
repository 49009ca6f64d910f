// gpu-compare: every kernel of a plan for cuda, as its double of a GPU runs it, against the same kernel for the processor, on random
// numbers; one that processors have no form of, against the interpreter.
// usage: gpu-compare PLAN MODULE    MODULE: what `zeroc --emit=place` prints with the flags of PLAN
//
// Where no sum runs in another order the bits are the same. Otherwise results differ by rounding: of the type they are stored in, and of
// sums of f32. Nothing is written beside an argument, and threads may run in any order.
#include "../unit/kernel_run.h"
#include "double.h"
#include "gpu_library.h"
#include "plan_kernels.h"
#include <iostream>

using namespace zero;

namespace {

/// Empty, or what differs.
std::string compare(mlir::func::FuncOp function, test::KernelFunction processor, const test::GpuLibrary &gpu) {
  test::KernelCase kernel = test::caseOf(function);
  const test::KernelMemory given(kernel);
  test::KernelMemory expected = given;
  if (processor)
    processor(expected.pointers().data(), 0, int64_t(kernel.processorExtent));
  else if (!test::hasProcessorForm(function))
    test::interpret(function, expected);
  else
    return "it is not in the library";
  for (uint64_t order : {0, 1, 2}) {
    test::KernelMemory actual = given;
    gpu.launch(kernel.symbol, actual.pointers().data(), order);
    std::string wrong = test::difference(kernel, expected, actual);
    if (!wrong.empty()) return "order " + std::to_string(order) + ": " + wrong;
  }
  return "";
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 3) {
    std::cerr << "gpu-compare: usage: gpu-compare PLAN MODULE\n";
    return 2;
  }
  try {
    test::PlanKernels plan(argv[1], argv[2]);
    auto object = test::compileDouble(plan.kernels);
    if (failed(object)) return 1;
    test::GpuLibrary gpu(object->data(), object->size());
    llvm::SmallVector<mlir::func::FuncOp> functions;
    for (const codegen::GpuKernel &kernel : plan.kernels)
      if (test::hasProcessorForm(kernel.function)) functions.push_back(kernel.function);
    test::Library processor(functions);
    int wrong = 0;
    for (codegen::GpuKernel &kernel : plan.kernels) {
      llvm::StringRef symbol = kernel.function.getSymName();
      std::string what = compare(kernel.function, processor[symbol], gpu);
      if (what.empty()) continue;
      std::cout << symbol.str() << ": " << what << "\n";
      ++wrong;
    }
    std::cout << plan.kernels.size() << " kernels, " << wrong << " wrong\n";
    return wrong || plan.kernels.empty();
  } catch (const std::exception &error) {
    std::cerr << "gpu-compare: error: " << error.what() << "\n";
    return 1;
  }
}
