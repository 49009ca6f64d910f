// gpu-reference: the kernels of a plan for cuda in their form for processors, as machine code, and what they take, for `gpu-check kernels`
// on a machine without a compiler. usage: gpu-reference PLAN MODULE -o NAME    MODULE: what `zeroc --emit=place` prints with the flags of
// PLAN It writes NAME.so and NAME.json.
#include "../unit/kernel_run.h"
#include "plan_kernels.h"
#include <fstream>
#include <iostream>

using namespace zero;

int main(int argc, char **argv) {
  if (argc != 5 || std::string(argv[3]) != "-o") {
    std::cerr << "gpu-reference: usage: gpu-reference PLAN MODULE -o NAME\n";
    return 2;
  }
  try {
    test::PlanKernels plan(argv[1], argv[2]);
    llvm::SmallVector<mlir::func::FuncOp> functions;
    std::vector<test::KernelCase> cases;
    for (const codegen::GpuKernel &kernel : plan.kernels) {
      if (test::hasProcessorForm(kernel.function)) functions.push_back(kernel.function);
      cases.push_back(test::caseOf(kernel.function));
    }
    test::Library processor(functions, "x86-64-v3");
    if (processor.bytes.empty()) return 1;
    std::string name = argv[4];
    std::ofstream(name + ".so", std::ios::binary).write(processor.bytes.data(), std::streamsize(processor.bytes.size()));
    std::ofstream(name + ".json", std::ios::binary) << test::KernelCase::print(cases);
    return 0;
  } catch (const std::exception &error) {
    std::cerr << "gpu-reference: error: " << error.what() << "\n";
    return 1;
  }
}
