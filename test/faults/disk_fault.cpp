// Preloaded into a run (LD_PRELOAD), it stands between runtime/storage and the system, and spoils what the disk answers to one transfer of
// the unnamed files that a rank keeps its state in.
//
//   DISK_FAULT=K:KIND     at the K-th completed transfer of this process, from 1; for ENOSPC at the first write from there on
//   DISK_FAULT_LOG=FILE   how many transfers there were, and `done` once the fault was made; written as it happens
//   DISK_FAULT_THREADS=1  io_uring is forbidden
//
// KIND: EIO, ENOSPC  the transfer was made and the answer is this error
//       nothing      it was made and the answer is that no byte was
//       part         it was made and the answer is 1000 bytes, which is no whole block
//       half         it was made and the answer is half of it, which can be gone on with
//       truncate     the file is cut to half of its length
//       delete       the folder is removed with all that is in it
//       ring         the ring that completed it takes no requests any more
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <fcntl.h>
#include <filesystem>
#include <liburing.h>
#include <map>
#include <mutex>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

namespace {

struct Plan {
  long at = 0;
  std::string kind;
  bool threads = std::getenv("DISK_FAULT_THREADS") != nullptr;
  Plan() {
    if (const char *text = std::getenv("DISK_FAULT")) {
      std::string all = text;
      at = std::atol(all.c_str());
      kind = all.substr(all.find(':') + 1);
    }
  }
};
Plan &plan() {
  static Plan plan;
  return plan;
}

std::mutex guard;
long count = 0;
bool done = false;
const void *dead = nullptr; // the ring that is

void log() {
  const char *name = std::getenv("DISK_FAULT_LOG");
  if (!name) return;
  int fd = ::open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  char text[64];
  int length = std::snprintf(text, sizeof text, "%ld %s\n", count, done ? "done" : "-");
  if (::write(fd, text, static_cast<size_t>(length)) != length) std::abort();
  ::close(fd);
}

// The first of the files that state lies in: nobody else has one without a name.
int stateFile(std::string &folder) {
  for (const auto &entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code failed;
    std::string target = std::filesystem::read_symlink(entry.path(), failed).string();
    if (failed || !target.ends_with(".state (deleted)")) continue;
    folder = std::filesystem::path(target).parent_path().string();
    return std::atoi(entry.path().filename().c_str());
  }
  return -1;
}

bool isState(int fd) {
  char link[64], target[4096];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = ::readlink(link, target, sizeof target);
  return length > 0 && std::string_view(target, static_cast<size_t>(length)).ends_with(".state (deleted)");
}

// What is answered to a transfer that was made with this result. `ring`: through which one it went, if any.
long answer(long result, bool writes, const void *ring) {
  std::lock_guard lock(guard);
  ++count;
  const std::string &kind = plan().kind;
  bool now = plan().at > 0 && count >= plan().at && !done && (kind != "ENOSPC" || writes) && result > 1000;
  if (now) {
    done = true;
    std::string folder;
    int fd = kind == "truncate" || kind == "delete" ? stateFile(folder) : -1;
    struct stat info = {};
    std::error_code ignored;
    if (kind == "EIO") result = -EIO;
    if (kind == "ENOSPC") result = -ENOSPC;
    if (kind == "nothing") result = 0;
    if (kind == "part") result = 1000;
    if (kind == "half") result = result / 8192 * 4096 ? result / 8192 * 4096 : result;
    if (kind == "truncate" && (::fstat(fd, &info) != 0 || ::ftruncate(fd, info.st_size / 8192 * 4096) != 0)) std::abort();
    if (kind == "delete") std::filesystem::remove_all(folder, ignored);
    if (kind == "ring") dead = ring;
  }
  if (now || count % 64 == 0) log();
  return result;
}

template <typename Function> Function next(const char *name) { return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name)); }

__attribute__((destructor)) void end() { log(); }

} // namespace

extern "C" {

int io_uring_queue_init(unsigned entries, io_uring *ring, unsigned flags) {
  if (plan().threads) return -EPERM;
  return next<decltype(&io_uring_queue_init)>("io_uring_queue_init")(entries, ring, flags);
}

// Completions lie in memory that the system has filled and the program has not looked at yet.
int io_uring_submit_and_wait(io_uring *ring, unsigned wanted) {
  static std::map<io_uring *, std::pair<std::map<uint64_t, bool>, unsigned>> rings; // of requests under way whether they write; seen so far
  std::unique_lock lock(guard);
  if (dead == ring) return -EBADF;
  auto &[writes, seen] = rings[ring];
  for (unsigned i = *ring->sq.khead; i != ring->sq.sqe_tail; ++i) {
    const io_uring_sqe &entry = ring->sq.sqes[i & *ring->sq.kring_mask];
    writes[entry.user_data] = entry.opcode == IORING_OP_WRITE || entry.opcode == IORING_OP_WRITE_FIXED;
  }
  lock.unlock();
  int result = next<decltype(&io_uring_submit_and_wait)>("io_uring_submit_and_wait")(ring, wanted);
  unsigned tail = io_uring_smp_load_acquire(ring->cq.ktail), head = *ring->cq.khead;
  if (static_cast<int>(head - seen) > 0) seen = head;
  for (; seen != tail; ++seen) {
    io_uring_cqe &complete = ring->cq.cqes[seen & *ring->cq.kring_mask];
    complete.res = static_cast<int>(answer(complete.res, writes[complete.user_data], ring));
  }
  return result;
}

ssize_t pread(int fd, void *memory, size_t bytes, off_t offset) {
  ssize_t result = next<decltype(&pread)>("pread")(fd, memory, bytes, offset);
  if (!plan().threads || !isState(fd)) return result;
  long changed = answer(result, false, nullptr);
  if (changed < 0) errno = static_cast<int>(-changed);
  return changed < 0 ? -1 : changed;
}

ssize_t pwrite(int fd, const void *memory, size_t bytes, off_t offset) {
  ssize_t result = next<decltype(&pwrite)>("pwrite")(fd, memory, bytes, offset);
  if (!plan().threads || !isState(fd)) return result;
  long changed = answer(result, true, nullptr);
  if (changed < 0) errno = static_cast<int>(-changed);
  return changed < 0 ? -1 : changed;
}
}
