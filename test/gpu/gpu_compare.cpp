// gpu-compare: every kernel of a plan for cuda, as its double of a GPU runs it, against the same kernel for the processor, on random
// numbers; attention, which a processor has no kernel for, against the reference interpreter. usage: gpu-compare PLAN MODULE    MODULE:
// what `zeroc --emit=place` prints with the flags of PLAN
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

/// Between its products attention rounds weights to the type of its operands, and made-up row sums make them any size: a few of them may be
/// most of a sum that is small.
constexpr double kRoundedWeights = 8;

/// The results of the reference interpreter.
bool interpret(mlir::func::FuncOp kernel, test::KernelMemory &memory) {
  llvm::SmallVector<nn::Tensor> inputs;
  for (auto [i, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    inputs.emplace_back(mlir::cast<mlir::RankedTensorType>(type));
    std::memcpy(inputs.back().bytes.data(), memory.data(i), inputs.back().bytes.size());
  }
  auto results = nn::evaluateFunction(kernel, inputs);
  if (failed(results)) return false;
  for (auto [i, result] : llvm::enumerate(*results))
    std::memcpy(memory.pointers()[inputs.size() + i], result.bytes.data(), result.bytes.size());
  return true;
}

/// Empty, or what differs.
std::string compare(mlir::func::FuncOp function, const test::KernelCase &kernel, const test::Library &library,
                    const test::GpuLibrary &gpu) {
  test::KernelMemory expected(kernel);
  bool form = test::hasProcessorForm(function);
  if (!form) {
    if (!interpret(function, expected)) return "the interpreter does not take it";
  } else if (test::KernelFunction processor = library[kernel.symbol]) {
    processor(expected.pointers().data(), 0, int64_t(kernel.processorExtent));
  } else {
    return "it is not in the library";
  }
  for (uint64_t order : {0, 1, 2}) {
    test::KernelMemory actual(kernel);
    gpu.launch(kernel.symbol, actual.pointers().data(), order);
    std::string wrong = test::difference(kernel, expected, actual, form ? 1 : kRoundedWeights);
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
      test::KernelCase made = test::caseOf(kernel.function);
      std::string what = compare(kernel.function, made, processor, gpu);
      if (what.empty()) continue;
      std::cout << made.symbol << ": " << what << "\n";
      ++wrong;
    }
    std::cout << plan.kernels.size() << " kernels, " << wrong << " wrong\n";
    return wrong || plan.kernels.empty();
  } catch (const std::exception &error) {
    std::cerr << "gpu-compare: error: " << error.what() << "\n";
    return 1;
  }
}
