#include "runtime/device/cuda/cuda_device.h"
#include "runtime/base/error.h"
#include "runtime/device/cpu/kernel_library.h"
#include "runtime/device/cuda/arenas.h"
#include "runtime/device/cuda/cuda_queue.h"
#include "runtime/device/cuda/gpu.h"
#include "runtime/plan/target.h"
#include <cstring>
#include <deque>
#include <fmt/format.h>
#include <optional>

namespace zero::runtime {
namespace {

using namespace cuda;

class CudaDevice final : public Device {
public:
  explicit CudaDevice(const DeviceOptions &options)
      : useGraphs(options.graphs), hostThreads(threadsOf(options)), onProcessors(noteOnProcessors(options)),
        measuredIn(options.measured.name), gpu(options.neighbours.before), arenas(gpu, options.neighbours),
        disk(options.diskPaths, options.rank) {
    if (!options.measured.text.empty()) table = parseTable(options.measured.text, measuredIn);
  }
  ~CudaDevice() override { stop(); }

  void requireTarget(const plan::Target &target) override {
    if (target.kind() != plan::Target::CUDA)
      throw Error(
          fmt::format("the plan was compiled for {} and cannot run on a GPU; compile with --target cuda", plan::targetName(target.kind())));
    const std::string &architecture = target.features(0); // "sm_90"
    int capability = std::stoi(architecture.substr(3));
    if (architecture.ends_with('a') && gpu.capability() != capability) // later ones do not have all that it has
      throw Error(
          fmt::format("the plan was compiled for {}, which GPUs of sm_{} run alone, and the GPU of this machine ({}) is sm_{}; compile "
                      "without --gpu",
                      architecture, capability, gpu.name(), gpu.capability()));
    if (gpu.capability() < capability)
      throw Error(fmt::format("the plan was compiled for {}, and the GPU of this machine ({}) is sm_{}; {}", architecture, gpu.name(),
                              gpu.capability(),
                              gpu.capability() < 80 ? "plans need one of sm_80 or later (A100, RTX 30)" : "compile without --gpu"));
  }

  uint32_t allocateArena(const std::string &name, plan::Tier tier, uint64_t bytes) override {
    gpu.enter();
    if (tier == plan::DISK && bytes > 0) disk.allocate(arenas.count(), name, bytes);
    return arenas.allocate(name, tier, bytes);
  }

  void loadKernels(std::span<const std::byte> ptx, std::span<const KernelSymbol> symbols) override {
    gpu.enter();
    modules.emplace_back(ptx, symbols);
    kernels.insert(kernels.end(), modules.back().kernels().begin(), modules.back().kernels().end());
  }

  void loadHostKernels(std::span<const std::byte> object, std::span<const KernelSymbol> symbols, const plan::Target &target) override {
    std::string missing = missingFeatures({target.host_features().begin(), target.host_features().end()});
    if (!missing.empty())
      throw Error("the plan updates on the host, with kernels compiled for " + target.cpu() + ", which need " + missing +
                  "; this machine does not have that; compile with --cpu x86-64-v3, or on a machine like this one");
    gpu.enter();
    hostKernels.emplace(object, symbols);
    hostLane.emplace(gpu, hostThreads, failure);
  }

  void prepare(std::vector<DeviceProgram> given, CommunicatorFactory &factory) override {
    gpu.enter();
    auto pointer = [this](Address address) { return arenas.pointer(address); };
    Binding binding{pointer,
                    [this](Address address) { return arenas.hostMemory(address); },
                    kernels,
                    disk,
                    nullptr,
                    {},
                    &failure,
                    static_cast<uint32_t>(factory.rank()),
                    static_cast<uint32_t>(factory.world())};
    if (hostKernels) binding.hostKernels = hostKernels->functions();
    auto multiplies = lanesWithProducts(given), bounces = lanesThatBounce(given, binding);
    for (int lane = 0; lane < kLanes; ++lane) {
      if (multiplies[static_cast<size_t>(lane)]) {
        if (!products) products.emplace(findDevice(table, gpu.name(), BlasLt::get().version()), measuredIn);
        products->addLane(lane);
      }
      if (!bounces[static_cast<size_t>(lane)]) continue;
      PinnedMemory &memory = bounce[static_cast<size_t>(lane)] = allocatePinned(kPieceBytes, "transfers between GPU and disk");
      binding.bounce[static_cast<size_t>(lane)] = static_cast<std::byte *>(memory.get());
    }
    if (products) binding.products = &*products;
    registerDiskMemory(binding);
    if (factory.world() > 1 && communicates(given)) {
      collectives.emplace(factory);
      arenas.eachOnGpu([this](Pointer memory, uint64_t bytes) { collectives->enroll(memory, bytes); });
    }
    std::vector<CudaProgram> bound;
    for (const DeviceProgram &program : given) bound.push_back(boundProgram(program, binding));
    if (sumsInOrder(bound)) orderedSum.emplace();
    queue.emplace(std::move(bound), pointer,
                  Issuer{binding.products, collectives ? &*collectives : nullptr, orderedSum ? &*orderedSum : nullptr,
                         hostLane ? &*hostLane : nullptr},
                  failure, useGraphs);
  }

  HostMemory hostMemory(uint64_t bytes) override {
    gpu.enter();
    auto pinned = std::make_shared<PinnedMemory>(allocatePinned(bytes, "inputs and results"));
    auto *start = static_cast<std::byte *>(pinned->get());
    std::memset(start, 0, bytes);
    return {std::move(pinned), start};
  }

  void read(Address from, uint64_t bytes, const TakePiece &take) const override {
    if (auto offset = disk.find(from)) return disk.read(*offset, bytes, take);
    arenas.read(from, bytes, take);
  }
  void write(Address to, uint64_t bytes, const FillPiece &fill) override {
    if (auto offset = disk.find(to)) return disk.write(*offset, bytes, fill);
    arenas.write(to, bytes, fill);
  }

  void submit(const Submission &submission) override {
    disk.releaseStaging();
    gpu.enter();
    queue->submit(submission);
  }
  Completion finish() override {
    gpu.enter();
    return queue->finish();
  }
  void stop() override {
    gpu.enterAtEnd();
    queue.reset();
    hostLane.reset();
    collectives.reset();
    orderedSum.reset();
    products.reset();
  }

  int threads() const override { return hostThreads; }
  DiskTraffic diskTraffic() const override { return disk.traffic(); }
  std::vector<std::string> notes() const override {
    std::vector<std::string> notes = disk.notes();
    if (products)
      notes.push_back(
          fmt::format("matrix products have {} MiB of GPU memory to work in beside the plan's arenas", products->workspaceBytes() >> 20));
    if (products && !table.empty()) notes.push_back(aboutTable());
    if (!onProcessors.empty()) notes.push_back(onProcessors);
    return notes;
  }

private:
  std::string aboutTable() const {
    uint64_t library = BlasLt::get().version();
    std::string here = fmt::format("{} with cuBLASLt {}", gpu.name(), library), first = "the first that cuBLASLt's heuristic names";
    if (!findDevice(table, gpu.name(), library))
      return fmt::format("'{}' was measured on {} with cuBLASLt {}, and this is {}: matrix products take {}; zerorun --tune measures here",
                         measuredIn, table[0].device, table[0].library, here, first);
    size_t all = products->count(), missing = products->unmeasured();
    return fmt::format("matrix products take the algorithms of '{}', measured on {}{}", measuredIn, here,
                       missing ? fmt::format("; {} of {} are not in it and take {}", missing, all, first) : "");
  }

  // What disks read to and write from.
  void registerDiskMemory(const Binding &binding) {
    if (!disk.any()) return;
    std::vector<std::span<std::byte>> memory = arenas.hostArenas();
    for (std::byte *each : binding.bounce)
      if (each) memory.emplace_back(each, kPieceBytes);
    if (!memory.empty()) disk.storage().registerMemory(memory);
  }

  bool useGraphs;
  int hostThreads;
  std::string onProcessors; // what people should know of them
  std::string measuredIn;   // the file of the table
  ProductTable table;       // empty: nothing was measured
  Gpu gpu;
  Arenas arenas;
  std::array<PinnedMemory, kLanes> bounce;
  DiskArenas disk; // ends before the memory it transfers
  std::deque<KernelModule> modules;
  std::vector<Kernel> kernels; // of all modules
  std::optional<Products> products;
  std::optional<Collectives> collectives;   // of several ranks
  std::optional<OrderedSum> orderedSum;     // where the plan wants it
  std::optional<KernelLibrary> hostKernels; // of a plan that updates on the host
  Failure failure;
  std::optional<HostLane> hostLane;
  std::optional<CudaQueue> queue; // last: what is under way ends before what it uses
};

} // namespace

std::unique_ptr<Device> makeCudaDevice(const DeviceOptions &options) { return std::make_unique<CudaDevice>(options); }

} // namespace zero::runtime
