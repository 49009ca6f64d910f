#include "runtime/device/cpu/cpu_device.h"
#include "runtime/base/bytes.h"
#include "runtime/base/error.h"
#include "runtime/device/cpu/available_memory.h"
#include "runtime/device/cpu/kernel_library.h"
#include "runtime/device/cpu/memory.h"
#include "runtime/device/cpu/queue.h"
#include "runtime/plan/target.h"
#include "runtime/process/addresses.h"
#include <algorithm>
#include <malloc.h>
#include <utility>

namespace zero::runtime {
namespace {

class CpuDevice final : public Device {
public:
  CpuDevice(int threads, const DeviceOptions &options)
      : neighbours(options.neighbours), onProcessors(noteOnProcessors(options)), disk(options.diskPaths, options.rank), executor(threads) {
    // The product library allocates its packing room in every call: keep freed memory instead of returning it.
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    held = heldMemory();
    Beside counted = options.beside ? options.beside(threads) : Beside{};
    beside = counted.bytes - std::min(counted.bytes, held);
    mappedBeside = counted.mapped;
  }

  // The host's memory is this device's own.
  uint32_t allocateArena(const std::string &name, plan::Tier tier, uint64_t bytes) override {
    auto number = static_cast<uint32_t>(arenas.size());
    if (tier == plan::DISK) {
      if (bytes > 0) disk.allocate(number, name, bytes);
    } else {
      requireMemory(name, bytes);
      promised += bytes, mapped += MappedArena::mappedFor(bytes);
    }
    arenas.emplace_back(name, tier == plan::DISK ? 0 : bytes);
    return number;
  }

  // Memory is given by the system only when it is first written, so what is too much is refused here, before the first
  // arena is filled: all ranks of this machine are about to ask for the same. What the process has already is not asked for again.
  void requireMemory(const std::string &name, uint64_t bytes) const {
    uint64_t arenas = promised + bytes, more = arenas + beside;
    // Of `left` this rank takes `others` beside arenas.
    auto refuse = [&](const std::string &what, const std::string &why, uint64_t left, uint64_t others) {
      constexpr uint64_t disks = 32 << 20;                           // bytes that a run with state on disk may take beside this one's
      uint64_t room = (left - std::min(left, others + disks)) >> 20; // MiB for arenas
      throw Error("arena '" + name + "' would bring this rank to " + what + ", but " + why + "; compile " +
                  (room ? "with --device-memory " + std::to_string(room) + "M, which leaves the rest on disk, " : "") +
                  "for more machines, a higher --stage or a smaller batch, or raise the limit");
    };
    AvailableMemory available = availableMemory(neighbours);
    if (more > available.ofEach())
      refuse(inMiB(held + more) + ", " + inMiB(arenas) + " of arenas and " + inMiB(held + beside) + " beside them, " + inMiB(more) +
                 " more than it has now",
             (available.group.empty()
                  ? "this machine has " + inMiB(available.bytes) + " of memory left"
                  : "the memory limit of the control group '" + available.group + "' leaves " + inMiB(available.bytes)) +
                 available.sharers(),
             available.ofEach(), beside);
    AvailableAddresses addresses = availableAddresses(); // beside what earlier arenas have taken
    uint64_t mappedNow = MappedArena::mappedFor(bytes), left = addresses.bytes + (addresses.flag ? mapped : 0);
    if (addresses.flag && mappedNow + mappedBeside > addresses.bytes)
      refuse(inMiB(mapped + mappedNow) + " of arenas, and it maps up to " + inMiB(mappedBeside) + " beside them for " +
                 std::to_string(executor.threads()) + " threads that compute (--threads) and others",
             "its limit on memory that is mapped (ulimit " + std::string(addresses.flag) + ") leaves " + inMiB(left), left, mappedBeside);
  }

  void loadKernels(std::span<const std::byte> object, std::span<const KernelSymbol> symbols) override {
    auto library = std::make_unique<KernelLibrary>(object, symbols);
    kernels.insert(kernels.end(), library->functions().begin(), library->functions().end());
    libraries.push_back(std::move(library));
  }

  void requireTarget(const plan::Target &target) override {
    if (target.kind() != plan::Target::CPU)
      throw Error(std::string("the plan was compiled for ") + plan::targetName(target.kind()) +
                  " and cannot run on the cpu; compile with --target cpu");
    std::string missing = missingFeatures({target.features().begin(), target.features().end()});
    if (!missing.empty())
      throw Error("the plan was compiled for " + target.cpu() + ", whose kernels need " + missing +
                  "; this machine does not have that; compile it again here with --cpu native");
  }

  void prepare(std::vector<DeviceProgram> programs, CommunicatorFactory &factory) override {
    executor.prepare(needsOf(programs));
    std::vector<std::span<std::byte>> transferred;
    for (uint32_t arena : copiedWithDisk(programs, disk)) transferred.push_back(arenas[arena].bytes());
    if (!transferred.empty()) disk.storage().registerMemory(transferred);
    disk.prepareRows(rowsToDisk(programs, disk));
    std::vector<CpuProgram> bound;
    auto at = [this](Address address) { return pointer(address); };
    for (DeviceProgram &program : programs) bound.push_back(boundProgram(std::exchange(program, {}), kernels, at, disk));
    queue = std::make_unique<CpuQueue>(std::move(bound), executor, at, factory);
  }

  void read(Address from, uint64_t bytes, const TakePiece &take) const override {
    if (auto offset = disk.find(from)) return disk.read(*offset, bytes, take);
    lendPieces(static_cast<const std::byte *>(pointer(from)), bytes, take);
  }
  void write(Address to, uint64_t bytes, const FillPiece &fill) override {
    if (auto offset = disk.find(to)) return disk.write(*offset, bytes, fill);
    lendPieces(static_cast<std::byte *>(pointer(to)), bytes, fill);
  }

  void submit(const Submission &submission) override {
    disk.releaseStaging();
    queue->submit(submission);
  }
  Completion finish() override { return queue->finish(); }
  void stop() override { queue.reset(); }

  int threads() const override { return executor.threads(); }
  DiskTraffic diskTraffic() const override { return disk.traffic(); }
  std::vector<std::string> notes() const override {
    std::vector<std::string> notes = disk.notes();
    for (const std::string &note : {executor.note(), onProcessors})
      if (!note.empty()) notes.push_back(note);
    return notes;
  }

private:
  void *pointer(Address address) const { return arenas[address.arena].data() + address.offset; }

  Neighbours neighbours;
  std::string onProcessors;        // what people should know of them
  uint64_t promised = 0;           // bytes of all arenas in memory
  uint64_t held = 0, beside = 0;   // bytes this process had when the device was made, and will take beside arenas
  uint64_t mapped = 0;             // bytes of addresses of all arenas in memory
  uint64_t mappedBeside = 0;       // and of what is beside them, with whole stacks
  std::vector<MappedArena> arenas; // empty: of those on disk
  DiskArenas disk;                 // ends before the memory it transfers
  std::vector<std::unique_ptr<KernelLibrary>> libraries;
  std::vector<KernelFunction> kernels; // of all libraries
  Executor executor;
  std::unique_ptr<CpuQueue> queue; // last: its threads end before what they use
};

} // namespace

std::unique_ptr<Device> makeCpuDevice(const DeviceOptions &options) { return std::make_unique<CpuDevice>(threadsOf(options), options); }

} // namespace zero::runtime
