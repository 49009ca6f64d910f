//===- groups.cpp - kernels compiled in groups by several threads -----------------------------------------===//
#include "compiler/codegen/groups.h"
#include "llvm/ADT/STLExtras.h"
#include <atomic>
#include <system_error>
#include <thread>

using namespace mlir;

namespace zero::codegen {
namespace {

using Group = std::vector<const KernelSource *>;

/// Values of the kernels of a group: enough for what a group costs by itself not to count, few enough for several threads
/// to have something to do.
constexpr size_t kGroup = 200;

std::vector<Group> groupsOf(ArrayRef<KernelSource> kernels) {
  std::vector<Group> groups;
  size_t size = kGroup;
  for (const KernelSource &kernel : kernels) {
    if (size >= kGroup) {
      groups.emplace_back();
      size = 0;
    }
    groups.back().push_back(&kernel);
    size += kernel.program.kind == Program::Tiles ? kGroup : kernel.program.nodes.size();
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

FailureOr<std::vector<KernelSource>> sourcesOf(ArrayRef<func::FuncOp> kernels) {
  std::vector<KernelSource> sources;
  for (func::FuncOp kernel : kernels) {
    auto program = buildProgram(kernel);
    if (failed(program)) return failure();
    KernelInfo info = describe(*program, kernel);
    sources.push_back({std::move(*program), std::move(info), {}});
  }
  return sources;
}

llvm::Expected<std::vector<Code>> compileGroups(ArrayRef<KernelSource> kernels, unsigned threads,
                                                llvm::function_ref<llvm::Expected<Code>(ArrayRef<const KernelSource *>)> compile) {
  std::vector<Group> groups = groupsOf(kernels);
  std::vector<Code> compiled(groups.size());
  std::vector<std::string> errors(groups.size());
  inParallel(threads, groups.size(), [&](size_t i) {
    auto code = compile(groups[i]);
    if (code)
      compiled[i] = std::move(*code);
    else
      errors[i] = llvm::toString(code.takeError());
  });
  for (const std::string &error : errors)
    if (!error.empty()) return llvm::createStringError(error);
  return compiled;
}

} // namespace zero::codegen
