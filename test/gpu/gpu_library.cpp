#include "gpu_library.h"
#include <cstring>
#include <dlfcn.h>
#include <stdexcept>
#include <sys/mman.h>
#include <unistd.h>

namespace zero::test {

GpuLibrary::GpuLibrary(const std::string &path) { open(path); }

GpuLibrary::GpuLibrary(const char *bytes, size_t size) {
  fd = memfd_create("gpu-kernels", 0); // kept open: dlopen tells libraries apart by path
  if (fd < 0 || write(fd, bytes, size) != ssize_t(size)) throw std::runtime_error("the kernels' double cannot be held in memory");
  open("/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(fd));
}

GpuLibrary::~GpuLibrary() {
  if (handle) dlclose(handle);
  if (fd >= 0) close(fd);
}

void GpuLibrary::open(const std::string &path) {
  handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) throw std::runtime_error(std::string("the kernels' double cannot be loaded: ") + dlerror());
  auto *hooks = static_cast<GpuHooks *>(dlsym(handle, "zero_gpu_hooks"));
  if (!hooks) throw std::runtime_error(path + " was not made by gpu-double");
  *hooks = kGpuHooks;
}

template <typename T> T *GpuLibrary::find(const std::string &name) const {
  void *found = dlsym(handle, name.c_str());
  if (!found) throw std::runtime_error("the kernels' double has no '" + name + "'");
  return reinterpret_cast<T *>(found);
}

bool GpuLibrary::has(const std::string &symbol) const { return dlsym(handle, (symbol + ".grid").c_str()) != nullptr; }

GpuGrid GpuLibrary::grid(const std::string &symbol) const {
  auto *numbers = find<const uint64_t>(symbol + ".grid");
  return {numbers[0], unsigned(numbers[1])};
}

void GpuLibrary::launch(const std::string &symbol, void *const *args, uint64_t order, uint64_t blocks) const {
  auto *numbers = find<const uint64_t>(symbol + ".grid"); // blocks, threads, number of shared arrays, bytes of each
  auto *thread = find<void(void *const *)>(symbol);
  std::vector<std::pair<void *, uint64_t>> arrays;
  for (uint64_t i = 0; i < numbers[2]; ++i) arrays.push_back({find<void>(symbol + "_shared_" + std::to_string(i)), numbers[3 + i]});
  std::lock_guard lock(shared);
  runGrid(
      {blocks ? blocks : numbers[0], unsigned(numbers[1])}, order,
      [&] {
        for (auto [array, bytes] : arrays) std::memset(array, 0xff, bytes);
      },
      [&] { thread(args); });
}

} // namespace zero::test
