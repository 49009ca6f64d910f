// gpu-check copies
#include "runtime/process/in_parts.h"
#include "runtime/process/processors.h"
#include "test/gpu/check/check.h"
#include <algorithm>
#include <chrono>
#include <cstring>
#include <fmt/format.h>

namespace zero::check {
namespace {

constexpr int kRepeats = 7;

struct Buffers {
  explicit Buffers(uint64_t bytes)
      : bytes(bytes), here(cuda::allocateDevice(bytes, "copies")), there(cuda::allocateDevice(bytes, "copies")),
        host(cuda::allocatePinned(bytes, "copies")), back(cuda::allocatePinned(bytes, "copies")) {}
  uint64_t bytes;
  cuda::DeviceMemory here, there;
  cuda::PinnedMemory host, back;
};

void copy(cuda::Pointer to, cuda::Pointer from, uint64_t bytes, cuda::StreamHandle stream) {
  const cuda::Driver &driver = cuda::Driver::get();
  driver.require(driver.copyAsync(to, from, bytes, stream), "cannot copy");
}

/// The same bytes come back that were sent over the device.
void requireWhole(const Buffers &b, Stopwatch &watch) {
  auto *sent = static_cast<unsigned char *>(b.host.get()), *found = static_cast<unsigned char *>(b.back.get());
  for (uint64_t i = 0; i < b.bytes; ++i) sent[i] = static_cast<unsigned char>(i * 2654435761u >> 13);
  std::memset(found, 0, b.bytes);
  copy(b.here.get(), cuda::pointerTo(sent), b.bytes, watch.stream());
  copy(b.there.get(), b.here.get(), b.bytes, watch.stream());
  copy(cuda::pointerTo(found), b.there.get(), b.bytes, watch.stream());
  watch.synchronize();
  auto [wrong, is] = std::mismatch(sent, sent + b.bytes, found);
  if (wrong != sent + b.bytes) throw Error(fmt::format("byte {} of {} came back as another one", wrong - sent, b.bytes));
}

double median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + kRepeats / 2, times.end());
  return times[kRepeats / 2];
}

/// By all processors, as updates by the host go over its memory.
double onHost(const Buffers &b) {
  constexpr uint64_t kPart = uint64_t(16) << 20; // bytes that are worth starting a thread
  std::vector<double> times;
  for (int i = 0; i < kRepeats; ++i) {
    auto begin = std::chrono::steady_clock::now();
    inParts(b.bytes, kPart, static_cast<int>(runtime::processors()), "a thread that copies", [&](uint64_t from, uint64_t to) {
      std::memcpy(static_cast<char *>(b.back.get()) + from, static_cast<const char *>(b.host.get()) + from, to - from);
    });
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return median(times);
}

/// Both ways at once, in two streams, by the host's clock.
double bothWays(const Buffers &b, Stopwatch &one, Stopwatch &other) {
  std::vector<double> times;
  for (int i = 0; i < kRepeats; ++i) {
    auto begin = std::chrono::steady_clock::now();
    copy(b.here.get(), cuda::pointerTo(b.host.get()), b.bytes, one.stream());
    copy(cuda::pointerTo(b.back.get()), b.there.get(), b.bytes, other.stream());
    one.synchronize(), other.synchronize();
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return median(times);
}

} // namespace

void copies(const Arguments &arguments) {
  auto bytes = static_cast<uint64_t>(arguments.number("--mib", 1024)) << 20;
  Limits limits(arguments.text("--limits"));
  cuda::Gpu gpu(0);
  Buffers b(bytes);
  Stopwatch watch(kRepeats), other(kRepeats);
  requireWhole(b, watch);
  auto measured = [&](const char *name, const char *what, double moved, double seconds) {
    limits.raise(name, moved / seconds);
    fmt::print("| {} | {:.1f} GB/s |\n", what, moved / seconds / 1e9);
    return moved / seconds / 1e9;
  };
  fmt::print("| copies of {} MiB | |\n|---|---|\n", bytes >> 20);
  auto n = double(bytes);
  double device = measured("device_copy", "on the device, read and written", 2 * n,
                           watch.seconds([&](auto stream) { copy(b.there.get(), b.here.get(), bytes, stream); }));
  double to = measured("to_device", "host to device", n,
                       watch.seconds([&](auto stream) { copy(b.here.get(), cuda::pointerTo(b.host.get()), bytes, stream); }));
  double from = measured("to_host", "device to host", n,
                         watch.seconds([&](auto stream) { copy(cuda::pointerTo(b.back.get()), b.there.get(), bytes, stream); }));
  double both = measured("both_ways", "both at once, their sum", 2 * n, bothWays(b, watch, other));
  measured("host_copy", "on the host, read and written, by all processors", 2 * n, onHost(b));
  fmt::print("\n{:.0f} GB/s on the device, {:.1f} from the host, {:.1f} to it, {:.1f} both at once\n", device, to, from, both);
}

} // namespace zero::check
