#include "runtime/files/lock_file.h"
#include <cerrno>
#include <fcntl.h>
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
      return;
  }
}

LockFile::~LockFile() {
  if (refusal_ == 0) ::unlink(path_.c_str());
}

} // namespace zero::runtime
