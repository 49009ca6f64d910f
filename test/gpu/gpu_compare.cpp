// gpu-compare: every kernel of a plan for cuda, as its double of a GPU runs it, against the same kernel for the processor, on random
// numbers. usage: gpu-compare PLAN MODULE    MODULE: what `zeroc --emit=place` prints with the flags of PLAN
//
// Where no sum runs in another order the bits are the same. Otherwise results differ by rounding: of the type they are stored in, and of
// sums of f32. Nothing is written beside an argument, and threads may run in any order.
#include "../unit/kernel_check.h"
#include "compiler/codegen/ptx/division.h"
#include "double.h"
#include "gpu_library.h"
#include "plan_kernels.h"
#include <iostream>

using namespace zero;

namespace {

struct Run {
  std::vector<test::Guarded> memory;
  std::vector<void *> args;
};

Run prepare(mlir::func::FuncOp kernel) {
  std::mt19937 random(11);
  Run run;
  for (mlir::Type t : kernel.getArgumentTypes())
    run.memory.emplace_back(test::randomTensor(mlir::cast<mlir::RankedTensorType>(t), random, 40));
  for (mlir::Type t : kernel.getResultTypes()) run.memory.emplace_back(nn::Tensor(mlir::cast<mlir::RankedTensorType>(t)));
  for (test::Guarded &g : run.memory) run.args.push_back(g.data());
  return run;
}

double toleranceOf(mlir::Type element) { return element.isF32() || element.isF64() ? 2e-5 : element.isF16() ? 2e-3 : 1.6e-2; }

/// Empty, or what differs.
std::string compare(codegen::GpuKernel kernel, test::KernelFunction processor, const test::GpuLibrary &gpu) {
  auto info = codegen::describeForGpu(kernel.function);
  auto program = codegen::buildProgram(kernel.function);
  if (failed(info) || failed(program) || !processor) return "it cannot be compiled";
  bool sameOrder = program->reductions.empty();
  Run expected = prepare(kernel.function);
  processor(expected.args.data(), 0, int64_t(info->extent));
  for (uint64_t order : {0, 1, 2}) {
    Run actual = prepare(kernel.function);
    gpu.launch(info->symbol, actual.args.data(), order);
    for (size_t i = 0; i < actual.memory.size(); ++i) {
      if (!actual.memory[i].intact()) return "it writes beside argument " + std::to_string(i);
      if (i < info->outputsFrom) {
        if (actual.memory[i].bytes != expected.memory[i].bytes) return "it writes its operand " + std::to_string(i);
        continue;
      }
      auto type = mlir::cast<mlir::RankedTensorType>(kernel.function.getResultTypes()[i - info->outputsFrom]);
      nn::Tensor reference(type);
      std::memcpy(reference.bytes.data(), expected.memory[i].data(), reference.bytes.size());
      std::string wrong = test::difference(reference, actual.memory[i].data(), sameOrder ? 0 : toleranceOf(type.getElementType()));
      if (!wrong.empty()) return "result " + std::to_string(i - info->outputsFrom) + ", order " + std::to_string(order) + ": " + wrong;
    }
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
    for (const codegen::GpuKernel &kernel : plan.kernels) functions.push_back(kernel.function);
    test::Library processor(functions);
    int wrong = 0;
    for (codegen::GpuKernel &kernel : plan.kernels) {
      std::string symbol = kernel.function.getSymName().str(), what = compare(kernel, processor[symbol], gpu);
      if (what.empty()) continue;
      std::cout << symbol << ": " << what << "\n";
      ++wrong;
    }
    std::cout << plan.kernels.size() << " kernels, " << wrong << " wrong\n";
    return wrong || plan.kernels.empty();
  } catch (const std::exception &error) {
    std::cerr << "gpu-compare: error: " << error.what() << "\n";
    return 1;
  }
}
