#include "test/gpu/fake/kernels.h"
#include "test/gpu/fake/faults.h"
#include "test/gpu/gpu_library.h"
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <map>
#include <memory>
#include <stdexcept>

namespace zero::fake {
namespace {

bool failed(const std::string &symbol, const std::string &why) {
  std::fprintf(stderr, "the fake device could not run kernel '%s': %s\n", symbol.c_str(), why.c_str());
  return false;
}

// A library that stays open, of kernels thread by thread (gpu-double made it) or of whole launches.
struct Library {
  explicit Library(const char *path) : handle(path ? ::dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr) {
    if (!handle)
      std::fprintf(stderr, "the fake device has no kernels: %s\n", path ? ::dlerror() : "ZERO_FAKE_KERNELS is not set");
    else if (::dlsym(handle, "zero_gpu_hooks"))
      threads = std::make_unique<test::GpuLibrary>(path);
  }
  void *handle;
  std::unique_ptr<test::GpuLibrary> threads;
};

Launch threadByThread(const test::GpuLibrary &library, const std::string &symbol) {
  return [&library, symbol](const std::vector<void *> &args, test::GpuGrid grid) {
    static std::atomic<uint64_t> launches{setting("ZERO_FAKE_SEED", 1) * 1000003};
    test::GpuGrid made = library.grid(symbol);
    if (grid.blocks > made.blocks || grid.threads != made.threads) return failed(symbol, "it was made for another grid");
    try {
      library.launch(symbol, args.data(), ++launches, grid.blocks);
      return true;
    } catch (const std::runtime_error &error) {
      return failed(symbol, error.what());
    }
  };
}

} // namespace

Launch launchOf(const std::string &symbol) {
  static std::map<std::string, Library> libraries; // by path, which tests change
  const char *path = std::getenv("ZERO_FAKE_KERNELS");
  const Library &library = libraries.try_emplace(path ? path : "", path).first->second;
  if (!library.handle) return {};
  if (library.threads) return library.threads->has(symbol) ? threadByThread(*library.threads, symbol) : Launch();
  auto *blocks = reinterpret_cast<void (*)(void **, uint64_t)>(::dlsym(library.handle, symbol.c_str()));
  if (!blocks) return {};
  return [blocks](std::vector<void *> args, test::GpuGrid grid) { return blocks(args.data(), grid.blocks), true; };
}

} // namespace zero::fake
