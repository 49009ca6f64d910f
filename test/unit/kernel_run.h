//===- kernel_run.h - compile kernels of the nn dialect and call them -----------------------------===//
// For tests and benchmarks of generated code.
#pragma once
#include "compiler/codegen/codegen.h"
#include "compiler/nn/eval/eval.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

namespace zero::test {

using KernelFunction = void (*)(void *const *, int64_t, int64_t);

/// Machine code of the kernels of a module, loaded.
class Library {
public:
  Library(llvm::ArrayRef<mlir::func::FuncOp> kernels, llvm::StringRef target = "native") {
    std::string error;
    auto cpu = codegen::CpuTarget::fromName(target, error);
    if (failed(cpu)) return;
    auto object = codegen::compileToSharedObject(kernels, *cpu);
    if (failed(object)) return;
    bytes = std::move(*object);
    fd = memfd_create("kernels", 0); // kept open: dlopen tells libraries apart by path
    if (write(fd, bytes.data(), bytes.size()) != ssize_t(bytes.size())) return;
    handle = dlopen(("/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(fd)).c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  ~Library() {
    if (handle) dlclose(handle);
    if (fd >= 0) close(fd);
  }
  Library(const Library &) = delete;
  KernelFunction operator[](llvm::StringRef name) const { return handle ? KernelFunction(dlsym(handle, name.str().c_str())) : nullptr; }
  llvm::SmallVector<char, 0> bytes;

private:
  int fd = -1;
  void *handle = nullptr;
};

struct Context {
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  Context() { context.loadDialect<nn::NnDialect, mlir::func::FuncDialect>(); }
  mlir::OwningOpRef<mlir::ModuleOp> parse(llvm::StringRef text) { return mlir::parseSourceString<mlir::ModuleOp>(text, &context); }
};

} // namespace zero::test
