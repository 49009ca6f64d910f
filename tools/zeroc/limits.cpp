//===- limits.cpp - a compilation may take so much memory and time --------------------------------===//
// What no check foresees ends here, in a sentence rather than in the system's killer: a thread looks at the memory and the processor
// time of the process a hundred times a second.
#include "tools/zeroc/limits.h"
#include "runtime/base/error.h"
#include "llvm/Support/ErrorHandling.h"
#include <algorithm>
#include <charconv>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <new>
#include <unistd.h>

namespace zero {
namespace {

constexpr uint64_t kLeastBytes = uint64_t(4) << 30, kBytesPerByte = 4, kBytesPerNode = 256 << 10;
constexpr uint64_t kLeastSeconds = 20, kNodesPerSecond = 50, kBytesPerSecond = 32 << 20;

pipeline::Progress *watched = nullptr; // for handlers that take no argument

/// Without allocating: there may be nothing left to allocate.
struct Sentence {
  char text[1024];
  size_t length = 0;
  Sentence &operator<<(const char *part) {
    size_t n = std::min(std::strlen(part), sizeof(text) - length);
    std::memcpy(text + length, part, n);
    length += n;
    return *this;
  }
  Sentence &operator<<(uint64_t number) {
    char digits[24];
    *std::to_chars(digits, digits + 20, number).ptr = 0;
    return *this << digits;
  }
};

[[noreturn]] void end(Sentence &s) {
  if (watched) {
    const char *phase = watched->phase, *pass = watched->pass, *node = watched->node, *reading = watched->reading.node;
    s << " in phase '" << phase << "'";
    if (pass) s << " (" << pass << ")";
    if (node)
      s << "; the node that has become most operations is '" << node << "'";
    else if (reading)
      s << " at node '" << reading << "'";
  }
  s << "\n";
  (void)!write(2, s.text, s.length);
  _exit(1);
}

[[noreturn]] void endWithoutMemory() {
  Sentence s;
  end(s << "zeroc: error: the machine has no memory left for compiling this model");
}

/// Anonymous memory: mapped files are the page cache's.
uint64_t bytesInUse(int statm) {
  char text[128];
  ssize_t n = pread(statm, text, sizeof(text) - 1, 0);
  if (n <= 0) return 0;
  uint64_t size = 0, resident = 0, shared = 0;
  text[n] = 0;
  for (const char *p = text, *end = text + n; uint64_t * into : {&size, &resident, &shared}) {
    auto read = std::from_chars(p, end, *into);
    p = read.ptr + 1;
  }
  return (resident - std::min(resident, shared)) * uint64_t(sysconf(_SC_PAGESIZE));
}

uint64_t secondsUsed() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return uint64_t(now.tv_sec);
}

} // namespace

uint64_t Limits::bytesFor(const onnx::ImportProgress &model) const {
  return bytes.value_or(kLeastBytes + kBytesPerByte * model.bytes + kBytesPerNode * model.nodes);
}

uint64_t Limits::secondsFor(const onnx::ImportProgress &model) const {
  return seconds.value_or(kLeastSeconds + model.bytes / kBytesPerSecond + model.nodes / kNodesPerSecond);
}

Watch::Watch(Limits limits, pipeline::Progress &progress) : limits(limits), progress(progress) {
  watched = &progress;
  std::set_new_handler(endWithoutMemory);
  llvm::install_bad_alloc_error_handler([](void *, const char *, bool) { endWithoutMemory(); });
  llvm::install_fatal_error_handler([](void *, const char *why, bool) {
    Sentence s;
    end(s << "zeroc: error: LLVM gives up (" << why << ")");
  });
  try {
    thread = std::thread([this] { run(); });
  } catch (const std::system_error &error) {
    throw Error(std::string("no thread can be started: ") + error.what());
  }
}

Watch::~Watch() {
  {
    std::lock_guard lock(mutex);
    done = true;
  }
  wake.notify_one();
  thread.join();
  llvm::remove_fatal_error_handler();
  llvm::remove_bad_alloc_error_handler();
  std::set_new_handler(nullptr);
  watched = nullptr;
}

void Watch::run() {
  int statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  std::unique_lock lock(mutex);
  while (!wake.wait_for(lock, std::chrono::milliseconds(10), [this] { return done; })) {
    if (progress.writing) continue;
    Sentence s;
    s << "zeroc: error: compiling this model takes more than ";
    uint64_t bytes = limits.bytesFor(progress.reading), seconds = limits.secondsFor(progress.reading);
    if (bytes && bytesInUse(statm) > bytes) end(s << (bytes >> 20) << " MiB of memory (--compile-memory gives it more)");
    if (seconds && secondsUsed() >= seconds) end(s << seconds << " s of processor time (--compile-seconds gives it more)");
  }
  close(statm);
}

} // namespace zero
