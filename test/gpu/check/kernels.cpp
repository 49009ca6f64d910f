// gpu-check kernels: what the GPU makes of each kernel of a plan, against its form for processors on the same numbers.
#include "runtime/device/cuda/kernels.h"
#include "runtime/plan/container.h"
#include "test/gpu/check/check.h"
#include "test/gpu/check/kernel_case.h"
#include <algorithm>
#include <chrono>
#include <cmath>
#include <dlfcn.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>

namespace zero::check {
namespace {

using test::KernelCase;
using test::KernelMemory;
using Processor = void(void *const *args, int64_t begin, int64_t end);

constexpr int kRepeats = 5;

/// What gpu-reference has written.
class References {
public:
  explicit References(const std::string &name) : cases(KernelCase::read(name + ".json")), sampled(name + ".results", std::ios::binary) {
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi2"))
      throw NotRun("references are computed with AVX2, which this processor lacks");
    std::string path = std::filesystem::absolute(name + ".so");
    handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) throw Error(std::string("the kernels' form for processors cannot be opened: ") + ::dlerror());
  }
  Processor *of(const std::string &symbol) const {
    void *found = ::dlsym(handle, symbol.c_str());
    if (!found) throw Error("the kernels' form for processors has no '" + symbol + "'");
    return reinterpret_cast<Processor *>(found);
  }
  /// The next kernel's elements, in the order of kernels.
  std::vector<char> nextSample(const KernelCase &kernel) {
    std::vector<char> sample(test::sampleOf(kernel, KernelMemory(kernel)).size());
    if (!sampled.read(sample.data(), std::streamsize(sample.size()))) throw Error("its results are missing");
    return sample;
  }
  std::vector<KernelCase> cases;

private:
  std::ifstream sampled;
  void *handle;
};

/// A launch with the arguments of `memory` in memory of the GPU, which come back with what it has left in them and around them.
class Launched {
public:
  Launched(const cuda::Kernel &kernel, KernelMemory &memory, size_t arguments, Stopwatch &watch) : kernel(kernel), watch(watch) {
    for (size_t i = 0; i < arguments; ++i) {
      std::vector<char> &bytes = memory.whole(i);
      room.push_back(cuda::allocateDevice(bytes.size(), "an argument"));
      host.push_back(cuda::allocatePinned(bytes.size(), "an argument"));
      std::copy(bytes.begin(), bytes.end(), static_cast<char *>(host.back().get()));
      copy(room.back().get(), cuda::pointerTo(host.back().get()), bytes.size());
      pointers.push_back(room.back().get() + KernelMemory::kGuard);
    }
    for (cuda::Pointer &pointer : pointers) params.push_back(&pointer);
    run(watch.stream());
    for (size_t i = 0; i < arguments; ++i) copy(cuda::pointerTo(host[i].get()), room[i].get(), memory.whole(i).size());
    watch.synchronize();
    for (size_t i = 0; i < arguments; ++i) {
      auto *found = static_cast<const char *>(host[i].get());
      memory.whole(i).assign(found, found + memory.whole(i).size());
    }
  }
  double seconds() {
    return watch.seconds([this](cuda::StreamHandle stream) { run(stream); });
  }

private:
  void run(cuda::StreamHandle stream) {
    const plan::Grid &grid = kernel.grid;
    driver.require(driver.launchKernel(kernel.function, grid.blocks(), 1, 1, grid.threads(), 1, 1, grid.shared_bytes(), stream,
                                       params.data(), nullptr),
                   "cannot launch it");
  }
  void copy(cuda::Pointer to, cuda::Pointer from, uint64_t bytes) {
    driver.require(driver.copyAsync(to, from, bytes, watch.stream()), "cannot copy");
  }

  const cuda::Driver &driver = cuda::Driver::get();
  const cuda::Kernel &kernel;
  Stopwatch &watch;
  std::vector<cuda::DeviceMemory> room;
  std::vector<cuda::PinnedMemory> host;
  std::vector<cuda::Pointer> pointers;
  std::vector<void *> params;
};

/// That a description is of these kernels and no others.
void requireSame(const plan::Plan &plan, const std::vector<KernelCase> &cases) {
  int count =
      int(std::ranges::count_if(plan.kernels(), [](const plan::Kernel &kernel) { return kernel.has_gpu(); })); // the host's come last
  bool same = count == int(cases.size());
  for (int i = 0; same && i < count; ++i) {
    const plan::Kernel &kernel = plan.kernels(i);
    const KernelCase &other = cases[size_t(i)];
    same = kernel.symbol() == other.symbol && kernel.extent() == other.extent && kernel.args() == other.arguments.size();
    for (int a = 0; same && a < kernel.arg_bytes_size(); ++a) {
      const test::KernelArgument &argument = other.arguments[size_t(a)];
      same = kernel.arg_bytes(a) == argument.elements * runtime::sizeOf(argument.type);
    }
  }
  if (!same) throw Error("the references are of other kernels than the plan's");
}

struct Timed {
  const plan::Kernel *kernel;
  double seconds;
};

/// Kernels that are large enough, the slowest first; yields how many bytes in a second all of them move together.
double printTimes(std::vector<Timed> timed, double limit) {
  std::ranges::sort(timed, std::greater(), &Timed::seconds);
  double bytes = 0, seconds = 0;
  fmt::print("| kernel | µs | MB | GB/s | of device copy |\n|---|---|---|---|---|\n");
  for (const auto &[kernel, each] : timed) {
    bytes += double(kernel->bytes()), seconds += each;
    fmt::print("| {} | {:.1f} | {:.1f} | {:.0f} | {:.0f} % |\n", kernel->summary(), each * 1e6, double(kernel->bytes()) / 1e6,
               double(kernel->bytes()) / each / 1e9, 100 * double(kernel->bytes()) / each / limit);
  }
  fmt::print("\n");
  return bytes / seconds;
}

} // namespace

void kernels(const Arguments &arguments) {
  if (arguments.names.size() != 2) throw BadUsage("kernels wants PLAN NAME");
  plan::PlanFile file = plan::load(arguments.names[0]);
  References reference(arguments.names[1]);
  requireSame(file.plan, reference.cases);
  if (reference.cases.empty()) throw Error("the plan has no kernels");
  Limits limits(arguments.text("--limits"));
  cuda::Gpu gpu(0);
  std::vector<runtime::KernelSymbol> symbols;
  for (const plan::Kernel &kernel : file.plan.kernels())
    if (kernel.has_gpu())
      symbols.push_back(
          {kernel.symbol(), kernel.extent(), {kernel.arg_bytes().begin(), kernel.arg_bytes().end()}, kernel.row(), kernel.gpu()});
  double large = limits.of("device_copy") > 0 ? arguments.number("--large", 0) : HUGE_VAL;
  auto begin = std::chrono::steady_clock::now();
  cuda::KernelModule module(file.kernels, symbols);
  double loading = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  Stopwatch watch(kRepeats);
  std::vector<std::string> wrong;
  std::vector<Timed> timed;
  int bySample = 0, unheld = 0;
  for (size_t i = 0; i < reference.cases.size(); ++i) {
    const KernelCase &kernel = reference.cases[i];
    const plan::Kernel &planned = file.plan.kernels(int(i));
    try {
      KernelMemory actual(kernel);
      std::vector<char> sample;
      if (kernel.reference == test::Reference::Sample) sample = reference.nextSample(kernel);
      Launched launched(module.kernels()[i], actual, kernel.arguments.size(), watch);
      std::string what;
      if (kernel.reference == test::Reference::Processor) {
        KernelMemory expected(kernel);
        reference.of(kernel.symbol)(expected.pointers().data(), 0, int64_t(kernel.processorExtent));
        what = test::difference(kernel, expected, actual);
      } else {
        what = test::difference(kernel, sample, actual);
        ++(sample.empty() ? unheld : bySample);
      }
      if (!what.empty()) throw Error(what);
      if (double(planned.bytes()) >= large) timed.push_back({&planned, launched.seconds()});
    } catch (const Error &error) {
      wrong.push_back(fmt::format("{} ({}): {}", kernel.symbol, planned.summary(), error.what()));
    }
  }
  std::string reached;
  if (bySample) reached += fmt::format(", {} of them by elements of their results", bySample);
  if (unheld) reached += fmt::format(", {} run without a reference, too large for one", unheld);
  if (!timed.empty())
    reached += fmt::format(", large ones at {:.0f} % of a device copy's bytes in a second",
                           100 * printTimes(timed, limits.of("device_copy")) / limits.of("device_copy"));
  for (const std::string &each : wrong) fmt::print("- {}\n", each);
  if (!wrong.empty()) throw Error(fmt::format("{} of {} kernels are wrong: {}", wrong.size(), reference.cases.size(), wrong.front()));
  fmt::print("{} kernels, loaded in {:.2f} s{}\n", reference.cases.size(), loading, reached);
}

} // namespace zero::check
