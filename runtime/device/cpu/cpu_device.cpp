#include "runtime/device/cpu/cpu_device.h"
#include "runtime/device/cpu/available_memory.h"
#include "runtime/device/cpu/kernel_library.h"
#include "runtime/device/cpu/memory.h"
#include "runtime/device/cpu/queue.h"
#include "runtime/plan/error.h"
#include <algorithm>
#include <cstdio>
#include <malloc.h>
#include <sched.h>
#include <utility>

namespace zero::runtime {
namespace {

// The processors this process may use, shared fairly with the other ranks of this machine unless they were bound apart.
int defaultThreads(int ranksHere) {
  cpu_set_t set;
  CPU_ZERO(&set);
  int allowed = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
  int online = static_cast<int>(std::thread::hardware_concurrency());
  return std::max(1, allowed < online ? allowed : allowed / ranksHere);
}

std::string inGiB(uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f GiB", static_cast<double>(bytes) / (uint64_t(1) << 30));
  return text;
}

class CpuDevice final : public Device {
public:
  CpuDevice(int threads, int ranksHere) : ranksHere(ranksHere), executor(threads) {
    // The product library allocates its packing room in every call: keep freed memory instead of returning it.
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
  }

  // Memory is given by the system only when it is first written, so what is too much is refused here, before the first
  // arena is filled: all ranks of this machine are about to ask for the same.
  uint32_t allocateArena(const std::string &name, uint64_t bytes) override {
    auto ranks = static_cast<uint64_t>(ranksHere);
    AvailableMemory available = availableMemory();
    if (promised + bytes > available.bytes / ranks)
      throw Error("arena '" + name + "' would bring this rank to " + inGiB(promised + bytes) + ", but " +
                  (available.group.empty()
                       ? "this machine has " + inGiB(available.bytes) + " of memory left"
                       : "the memory limit of the control group '" + available.group + "' leaves " + inGiB(available.bytes)) +
                  (ranks > 1 ? " for the " + std::to_string(ranks) + " ranks of this machine" : "") +
                  "; compile for more machines, a higher --stage or a smaller batch");
    promised += bytes;
    arenas.emplace_back(name, bytes);
    return static_cast<uint32_t>(arenas.size() - 1);
  }

  void loadKernels(std::span<const std::byte> object, std::span<const KernelSymbol> symbols) override {
    auto library = std::make_unique<KernelLibrary>(object, symbols);
    kernels.insert(kernels.end(), library->functions().begin(), library->functions().end());
    libraries.push_back(std::move(library));
  }

  void requireTarget(const plan::Target &target) override {
    if (target.kind() != plan::Target::CPU)
      throw Error(std::string("the plan was compiled for ") + targetName(target.kind()) +
                  " and cannot run on the cpu; compile with --target cpu");
    std::string missing = missingFeatures({target.features().begin(), target.features().end()});
    if (!missing.empty())
      throw Error("the plan was compiled for " + target.cpu() + ", whose kernels need " + missing +
                  "; this machine does not have that; compile it again here with --cpu native");
  }

  void prepare(std::vector<DeviceProgram> programs, CommunicatorFactory &factory) override {
    executor.prepare(attentionLimits(programs));
    std::vector<CpuProgram> bound;
    auto at = [this](Address address) { return pointer(address); };
    for (DeviceProgram &program : programs) bound.push_back(boundProgram(std::exchange(program, {}), kernels, at));
    queue = std::make_unique<CpuQueue>(std::move(bound), executor, at, factory);
  }

  void read(Address from, uint64_t bytes, const TakePiece &take) const override {
    lendPieces(static_cast<const std::byte *>(pointer(from)), bytes, take);
  }
  void write(Address to, uint64_t bytes, const FillPiece &fill) override { lendPieces(static_cast<std::byte *>(pointer(to)), bytes, fill); }

  void submit(const Submission &submission) override { queue->submit(submission); }
  Completion finish() override { return queue->finish(); }
  void stop() override { queue.reset(); }

  int threads() const override { return executor.threads(); }

private:
  void *pointer(Address address) const { return arenas[address.arena].data() + address.offset; }

  int ranksHere;
  uint64_t promised = 0; // bytes of all arenas
  std::vector<MappedArena> arenas;
  std::vector<std::unique_ptr<KernelLibrary>> libraries;
  std::vector<KernelFunction> kernels; // of all libraries
  Executor executor;
  std::unique_ptr<CpuQueue> queue; // last: its threads end before what they use
};

} // namespace

std::unique_ptr<Device> makeCpuDevice(const DeviceOptions &options) {
  if (options.threads < 0 || options.threads > 4096)
    throw Error("cannot run with " + std::to_string(options.threads) + " threads; give --threads a number from 1 to 4096");
  return std::make_unique<CpuDevice>(options.threads ? options.threads : defaultThreads(options.ranksHere), options.ranksHere);
}

} // namespace zero::runtime
