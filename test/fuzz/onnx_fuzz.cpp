// Whatever bytes an ONNX file has, reading it ends in a module that verifies, or in a diagnostic.
#include "compiler/nn/Nn.h"
#include "compiler/onnx/import.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "test/fuzz/message_mutator.h"
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <unistd.h>

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
  return zero::fuzz::mutateMessage(data, size, most, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static mlir::MLIRContext *context = [] {
    auto *made = new mlir::MLIRContext(mlir::MLIRContext::Threading::DISABLED);
    made->loadDialect<zero::nn::NnDialect, mlir::func::FuncDialect>();
    return made;
  }();
  static const std::string path = "/dev/shm/zero-onnx-fuzz-" + std::to_string(getpid()) + ".onnx";
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char *>(data), static_cast<std::streamsize>(size));

  size_t errors = 0;
  mlir::ScopedDiagnosticHandler count(context, [&](mlir::Diagnostic &diagnostic) {
    errors += diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error;
    return mlir::success();
  });
  zero::onnx::ImportOptions options;
  // A name the model does not have is an error, so dimensions are bound only where their names occur.
  for (const char *dimension : {"batch", "seq"})
    if (std::string_view(reinterpret_cast<const char *>(data), size).find(dimension) != std::string_view::npos)
      options.bind[dimension] = dimension[0] == 'b' ? 1 : 4;
  options.init = size % 2 ? zero::onnx::Init::Weights : zero::onnx::Init::Random;
  options.maxConstantBytes = 1 << 20;
  auto module = zero::onnx::importModel(path, options, *context);
  unlink(path.c_str());
  if (mlir::failed(module) && errors == 0) abort();                             // refused without a word
  if (mlir::succeeded(module) && mlir::failed(mlir::verify(**module))) abort(); // accepted, and made something that is not valid
  return 0;
}
