// gpu-check machine
#include "runtime/device/cuda/blas_lt.h"
#include "runtime/device/cuda/nccl.h"
#include "test/gpu/check/check.h"
#include <dlfcn.h>
#include <fmt/format.h>
#include <fstream>

namespace zero::check {
namespace {

constexpr double kGiB = double(1 << 30);

/// Where an opened library lies, by a part of its name.
std::string pathOf(const std::string &name) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (size_t at = line.find('/'); at != std::string::npos && line.find(name, line.rfind('/')) != std::string::npos)
      return line.substr(at);
  return "";
}

/// A function of an opened library that not all versions of it have; null where it has none.
template <typename Function> Function *functionOf(const std::string &path, const char *symbol) {
  void *handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  return handle ? reinterpret_cast<Function *>(::dlsym(handle, symbol)) : nullptr;
}

void row(const std::string &what, const std::string &text) { fmt::print("| {} | {} |\n", what, text); }

std::string blasText() {
  cuda::BlasLt::get();
  std::string path = pathOf("libcublasLt.so");
  auto *version = functionOf<size_t()>(path, "cublasLtGetVersion");
  return fmt::format("version {}, `{}`", version ? std::to_string(version()) : "unknown", path);
}

std::string ncclText() {
  cuda::Nccl::get();
  std::string path = pathOf("libnccl.so");
  auto *version = functionOf<int(int *)>(path, "ncclGetVersion");
  int number = 0;
  bool known = version && version(&number) == 0;
  return fmt::format("version {}, `{}`", known ? std::to_string(number) : "unknown", path);
}

} // namespace

void machine(const Arguments &) {
  const cuda::Driver &driver = cuda::Driver::get();
  int count = 0, version = 0;
  driver.require(driver.deviceGetCount(&count), "cannot count this machine's GPUs");
  driver.require(driver.driverGetVersion(&version), "cannot ask the CUDA driver for its version");
  fmt::print("| | |\n|---|---|\n");
  std::string first;
  for (int number = 0; number < count; ++number) {
    cuda::Gpu gpu(number);
    size_t free = 0, total = 0;
    driver.require(driver.memoryInfo(&free, &total), "cannot ask the GPU for its memory");
    std::string text = fmt::format("{}, sm_{}, {:.1f} GiB of memory", gpu.name(), gpu.capability(), double(total) / kGiB);
    row(fmt::format("GPU {}", number), text + fmt::format(", {:.1f} GiB free", double(free) / kGiB));
    if (number == 0) first = text;
  }
  row("driver", fmt::format("serves CUDA {}.{}, `{}`", version / 1000, version % 1000 / 10, pathOf("libcuda.so")));
  std::string nccl;
  try {
    nccl = ncclText();
  } catch (const Error &error) {
    nccl = std::string("none: ") + error.what();
  }
  row("NCCL", nccl);
  row("cuBLASLt", blasText()); // last: without it nothing can be multiplied
  fmt::print("{} GPU{}: {}\n", count, count == 1 ? "" : "s", first);
}

} // namespace zero::check
