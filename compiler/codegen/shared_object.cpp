//===- shared_object.cpp - kernels to one shared object -------------------------------------------------===//
// Kernels are compiled in groups, each by one thread. Groups depend on the kernels alone, and so does the object: not on
// the number of threads, nor on which of them is done first.
#include "compiler/codegen/link.h"
#include "compiler/codegen/object.h"
#include "llvm/ADT/STLExtras.h"
#include <atomic>
#include <system_error>
#include <thread>

using namespace mlir;

namespace zero::codegen {
namespace {

/// Values of the kernels of a group: enough for what a group costs by itself not to count, few enough for several threads
/// to have something to do.
constexpr size_t kGroup = 200;

using Group = std::vector<const KernelSource *>;

std::vector<Group> groupsOf(ArrayRef<KernelSource> kernels) {
  std::vector<Group> groups;
  size_t size = kGroup;
  for (const KernelSource &kernel : kernels) {
    if (size >= kGroup) {
      groups.emplace_back();
      size = 0;
    }
    groups.back().push_back(&kernel);
    size += kernel.program.nodes.size();
  }
  return groups;
}

/// `work(i)` for each i below `count`, by as many threads as there may be and can be had; this one is one of them.
void inParallel(unsigned threads, size_t count, llvm::function_ref<void(size_t)> work) {
  std::atomic<size_t> next = 0;
  auto run = [&] {
    for (size_t i; (i = next++) < count;) work(i);
  };
  std::vector<std::thread> others;
  try {
    while (others.size() + 1 < std::min<size_t>(threads, count)) others.emplace_back(run);
  } catch (const std::system_error &) { // the machine has no more
  }
  run();
  for (std::thread &other : others) other.join();
}

} // namespace

FailureOr<SmallVector<char, 0>> compileToSharedObject(ArrayRef<func::FuncOp> kernels, const CpuTarget &target, unsigned threads) {
  if (kernels.empty()) return SmallVector<char, 0>();
  std::vector<KernelSource> sources;
  for (func::FuncOp kernel : kernels) {
    auto program = buildProgram(kernel);
    if (failed(program)) return failure();
    KernelInfo info = describe(*program, kernel);
    sources.push_back({std::move(*program), std::move(info)});
  }
  std::vector<Group> groups = groupsOf(sources);
  std::vector<SmallVector<char, 0>> objects(groups.size());
  std::vector<std::string> errors(groups.size());
  inParallel(threads, groups.size(), [&](size_t i) {
    auto object = compileObject(groups[i], target);
    if (object)
      objects[i] = std::move(*object);
    else
      errors[i] = llvm::toString(object.takeError());
  });
  Location loc = func::FuncOp(kernels.front()).getLoc();
  for (const std::string &error : errors)
    if (!error.empty()) return emitError(loc) << error;
  auto linked = link(objects);
  if (!linked) return emitError(loc) << llvm::toString(linked.takeError());
  return std::move(*linked);
}

} // namespace zero::codegen
