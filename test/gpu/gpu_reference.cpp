// gpu-reference: what `gpu-check kernels` wants to know of the kernels of a plan for cuda on a machine without a compiler: what they take,
// their form for processors as machine code, and elements of the results of those that have none, as the interpreter computes them. usage:
// gpu-reference PLAN MODULE -o NAME [--interpret SYMBOL]    MODULE: what `zeroc --emit=place` prints with the flags of PLAN It writes
// NAME.json, NAME.so and NAME.results. --interpret: kernels whose names begin so as if there were no form for processors.
#include "../unit/kernel_run.h"
#include "plan_kernels.h"
#include <fstream>
#include <iostream>

using namespace zero;

namespace {

/// Elements of all arguments: more would take the interpreter minutes.
constexpr uint64_t kInterpreted = 2 << 20;

uint64_t elementsOf(const test::KernelCase &kernel) {
  uint64_t sum = 0;
  for (const test::KernelArgument &argument : kernel.arguments) sum += argument.elements;
  return sum;
}

void write(const std::string &path, llvm::StringRef bytes) {
  std::ofstream out(path, std::ios::binary);
  if (!out.write(bytes.data(), std::streamsize(bytes.size())).flush()) throw std::runtime_error("cannot write " + path);
}

} // namespace

int main(int argc, char **argv) {
  if ((argc != 5 && argc != 7) || std::string(argv[3]) != "-o" || (argc == 7 && std::string(argv[5]) != "--interpret")) {
    std::cerr << "gpu-reference: usage: gpu-reference PLAN MODULE -o NAME [--interpret SYMBOL]\n";
    return 2;
  }
  try {
    test::PlanKernels plan(argv[1], argv[2]);
    llvm::SmallVector<mlir::func::FuncOp> functions;
    std::vector<test::KernelCase> cases;
    std::vector<char> results;
    for (const codegen::GpuKernel &kernel : plan.kernels) {
      test::KernelCase &made = cases.emplace_back(test::caseOf(kernel.function));
      if (test::hasProcessorForm(kernel.function) && (argc == 5 || !made.symbol.starts_with(argv[6]))) {
        functions.push_back(kernel.function);
        continue;
      }
      made.inexact = true;
      made.reference = elementsOf(made) <= kInterpreted ? test::Reference::Sample : test::Reference::None;
      if (made.reference == test::Reference::None) continue;
      test::KernelMemory memory(made);
      test::interpret(kernel.function, memory);
      std::vector<char> sample = test::sampleOf(made, memory);
      results.insert(results.end(), sample.begin(), sample.end());
    }
    test::Library processor(functions, "x86-64-v3");
    if (processor.bytes.empty()) return 1;
    std::string name = argv[4];
    write(name + ".so", {processor.bytes.data(), processor.bytes.size()});
    write(name + ".json", test::KernelCase::print(cases));
    write(name + ".results", {results.data(), results.size()});
    return 0;
  } catch (const std::exception &error) {
    std::cerr << "gpu-reference: error: " << error.what() << "\n";
    return 1;
  }
}
