//===- codegen.h - kernels of the nn dialect to machine code ------------------------------------===//
// A kernel is a private `func.func` with the attribute `nn.kernel` whose body holds primitives of the
// nn dialect only (see passes/fuse). `describe` says what launching it takes without generating code;
// `compileToSharedObject` turns any number of kernels into one x86-64 shared object.
#pragma once
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zero::codegen {

/// What the machine code may use.
struct CpuTarget {
  std::string name;                  // "x86-64-v3" or "x86-64-v4": what goes into the plan
  std::vector<std::string> features; // in /proc/cpuinfo spelling, for Target.features of the plan
  unsigned lanes = 8;                // f32 per vector: 8 with AVX2, 16 with AVX-512

  /// "native" (the better of the two levels this machine has), "x86-64-v3" or "x86-64-v4". On failure `error` holds a sentence.
  static llvm::FailureOr<CpuTarget> fromName(llvm::StringRef name, std::string &error);
};

/// Blocks of a launch, threads of a block, and bytes of shared memory that the launch gives each beside what code declares, on a GPU.
struct Grid {
  uint64_t blocks = 0;
  unsigned threads = 0, sharedBytes = 0;
};

/// How a kernel is launched (plan.proto: Kernel, Launch).
struct KernelInfo {
  std::string symbol;             // name of the exported function: the func.func's own name
  uint64_t extent = 0;            // iterations of a launch
  uint64_t row = 0;               // elements of an iteration, of which the last may have fewer; 0: of another kind than rows
  std::vector<int64_t> summed;    // what decides in which order the elements of a row are summed: its dimensions, and how many sums are
                                  // under way at once, after the number of parts whose columns are summed, too; none: it sums no rows
  uint64_t grain = 1;             // iterations below which a piece is not worth a thread
  uint64_t flops = 0;             // of a whole launch
  uint64_t bytes = 0;             // read + written by a whole launch
  unsigned args = 0;              // inputs, then outputs
  unsigned outputsFrom = 0;       // index of the first output
  std::vector<uint64_t> argBytes; // of each argument: a launch touches no others
  std::vector<std::pair<unsigned, unsigned>> inplace; // (result, operand) that may be the same bytes; at most one operand per result
                                                      // and one result per operand may be used at once
  std::optional<Grid> grid;                           // on a GPU (ptx/ptx.h)
  std::string summary;                                // "rows add,layer_norm [256 x 768]", for people
};

/// Cheap: analyses the body, generates nothing. Errors are reported on the function.
llvm::FailureOr<KernelInfo> describe(mlir::func::FuncOp kernel);

/// One shared object, made by up to `threads` threads, whose number does not change a byte. It exports, per kernel, `extern "C" void
/// SYMBOL(void *const *args, int64_t begin, int64_t end)` computing iterations [begin, end) of [0, extent). Results do not depend on how
/// the extent is cut. The object refers to no symbol outside itself, and says of each kernel in `SYMBOL.bounds` how far it reaches
/// (plan.proto: Kernel).
llvm::FailureOr<llvm::SmallVector<char, 0>> compileToSharedObject(llvm::ArrayRef<mlir::func::FuncOp> kernels, const CpuTarget &target,
                                                                  unsigned threads = 1);

/// The vector code of the kernels (func, scf, arith, vector, memref), as a module of `context`: for tests and people.
/// The dialects must be loaded, see `registerDialects`.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> emitKernels(mlir::MLIRContext &context, llvm::ArrayRef<mlir::func::FuncOp> kernels,
                                                               unsigned lanes);

/// Dialects that `emitKernels` writes.
void registerDialects(mlir::DialectRegistry &registry);

} // namespace zero::codegen
