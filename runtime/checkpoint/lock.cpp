#include "runtime/checkpoint/lock.h"
#include "runtime/plan/error.h"
#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

namespace zero::runtime {

DirectoryLock::DirectoryLock(const std::string &directory) : fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (fd && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw Error(fmt::format("--checkpoint '{}' is being written by another run; wait for its end, or name another folder", directory));
}

} // namespace zero::runtime
