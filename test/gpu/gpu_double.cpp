// gpu-double: the kernels of a plan for cuda as machine code of the processor, for GpuLibrary.
// usage: gpu-double PLAN MODULE -o FILE    MODULE: what `zeroc --emit=place` prints with the flags of PLAN
#include "double.h"
#include "plan_kernels.h"
#include <fstream>
#include <iostream>

using namespace zero;

int main(int argc, char **argv) {
  if (argc != 5 || std::string(argv[3]) != "-o") {
    std::cerr << "gpu-double: usage: gpu-double PLAN MODULE -o FILE\n";
    return 2;
  }
  try {
    test::PlanKernels plan(argv[1], argv[2]);
    auto object = test::compileDouble(plan.kernels);
    if (failed(object)) return 1;
    std::ofstream(argv[4], std::ios::binary).write(object->data(), std::streamsize(object->size()));
    return 0;
  } catch (const std::exception &error) {
    std::cerr << "gpu-double: error: " << error.what() << "\n";
    return 1;
  }
}
