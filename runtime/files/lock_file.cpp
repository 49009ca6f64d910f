#include "runtime/files/lock_file.h"
#include <cerrno>
#include <fcntl.h>
#include <mutex>
#include <set>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace zero::runtime {
namespace {

// One that is there is never opened as if to make it: of other users' files in folders for everybody a system may refuse that. To lock it
// it need only be readable; NFS locks what is open for writing alone, so that is tried first.
int openLock(const std::string &path) {
  constexpr int kFlags = O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
  for (;;) {
    int fd = ::open(path.c_str(), O_RDWR | kFlags);
    if (fd < 0 && errno == EACCES) fd = ::open(path.c_str(), O_RDONLY | kFlags);
    if (fd >= 0 || errno != ENOENT) return fd;
    fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | kFlags, 0666);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
}

// The names that this process is to remove. Never destroyed: the thread that waits for signals outlives main().
struct Held {
  std::mutex mutex;
  std::set<std::string> names;
};

Held &held() {
  static Held &all = *new Held;
  return all;
}

} // namespace

LockFile::LockFile(std::string path) : path_(std::move(path)) {
  for (;;) {
    file = std::make_unique<Descriptor>(openLock(path_));
    if (!*file) {
      refusal_ = errno;
      return;
    }
    if (::flock(file->get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      refusal_ = EWOULDBLOCK;
      return;
    }
    // Whoever held it before may have removed the name meanwhile.
    struct stat mine = {}, named = {};
    if (::fstat(file->get(), &mine) == 0 && ::lstat(path_.c_str(), &named) == 0 && mine.st_ino == named.st_ino &&
        mine.st_dev == named.st_dev)
      break;
  }
  std::lock_guard lock(held().mutex);
  held().names.insert(path_);
}

LockFile::~LockFile() {
  if (refusal_) return;
  std::lock_guard lock(held().mutex);
  if (held().names.erase(path_) > 0) ::unlink(path_.c_str());
}

void removeLockFiles() noexcept {
  std::lock_guard lock(held().mutex);
  for (const std::string &name : held().names) ::unlink(name.c_str());
  held().names.clear(); // whoever takes the lock next has a file of the same name
}

} // namespace zero::runtime
