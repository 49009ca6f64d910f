//===- shared_object.cpp - kernels to one shared object -------------------------------------------------===//
#include "compiler/codegen/groups.h"
#include "compiler/codegen/link.h"

using namespace mlir;

namespace zero::codegen {

FailureOr<SmallVector<char, 0>> compileToSharedObject(ArrayRef<func::FuncOp> kernels, const CpuTarget &target, unsigned threads) {
  if (kernels.empty()) return SmallVector<char, 0>();
  auto sources = sourcesOf(kernels);
  if (failed(sources)) return failure();
  for (auto [source, kernel] : llvm::zip(*sources, kernels))
    if (failed(forProcessor(source.program, kernel))) return failure();
  auto compile = [&](ArrayRef<const KernelSource *> group) { return compileObject(group, target); };
  Location loc = func::FuncOp(kernels.front()).getLoc();
  auto objects = compileGroups(*sources, threads, compile);
  if (!objects) return emitError(loc) << llvm::toString(objects.takeError());
  auto linked = link(*objects);
  if (!linked) return emitError(loc) << llvm::toString(linked.takeError());
  return std::move(*linked);
}

} // namespace zero::codegen
