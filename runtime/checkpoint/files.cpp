#include "runtime/checkpoint/files.h"
#include "runtime/plan/error.h"
#include "runtime/plan/paths.h"
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace zero::runtime {
namespace {
constexpr uint64_t kLargestCall = 1u << 30; // Linux moves at most 2 GiB per call
}

File::File(const std::string &path, Mode mode) : path_(path) {
  int flags = mode == Mode::Read ? O_RDONLY : mode == Mode::Update ? O_RDWR : O_RDWR | O_CREAT;
  fd = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
  if (fd < 0) throw Error(fmt::format("cannot {} '{}': {}", mode == Mode::Create ? "create" : "open", path, std::strerror(errno)));
  if (mode != Mode::Create) return;
  // Two runs that write one file would mix their parts. The lock is the system's and ends with the descriptor; file systems
  // that know no locks are trusted.
  std::string sentence;
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    sentence = fmt::format("'{}' is being written by another run", path);
  else if (::ftruncate(fd, 0) != 0)
    sentence = fmt::format("cannot empty '{}': {}", path, std::strerror(errno));
  if (sentence.empty()) return;
  ::close(fd);
  throw Error(sentence);
}

File::~File() { ::close(fd); }

uint64_t File::size() const {
  struct stat info = {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) throw Error(fmt::format("'{}' is not a regular file", path_));
  return static_cast<uint64_t>(info.st_size);
}

void File::read(uint64_t offset, void *data, uint64_t bytes) const {
  auto *at = static_cast<char *>(data);
  while (bytes > 0) {
    ssize_t done = ::pread(fd, at, std::min(bytes, kLargestCall), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) throw Error(fmt::format("cannot read '{}': {}", path_, std::strerror(errno)));
    if (done == 0) throw Error(fmt::format("'{}' ends at byte {}, but {} more bytes are needed there", path_, offset, bytes));
    at += done, offset += static_cast<uint64_t>(done), bytes -= static_cast<uint64_t>(done);
  }
}

void File::write(uint64_t offset, const void *data, uint64_t bytes) const {
  auto *at = static_cast<const char *>(data);
  while (bytes > 0) {
    ssize_t done = ::pwrite(fd, at, std::min(bytes, kLargestCall), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) throw Error(fmt::format("cannot write '{}': {}", path_, std::strerror(done < 0 ? errno : ENOSPC)));
    at += done, offset += static_cast<uint64_t>(done), bytes -= static_cast<uint64_t>(done);
  }
}

void File::reserve(uint64_t bytes) const {
  if (::ftruncate(fd, static_cast<off_t>(bytes)) != 0)
    throw Error(fmt::format("cannot make '{}' {} bytes long: {}", path_, bytes, std::strerror(errno)));
  // A full disk is better found now; file systems without fallocate find it at the write.
  if (bytes > 0 && ::fallocate(fd, 0, 0, static_cast<off_t>(bytes)) != 0 && errno == ENOSPC)
    throw Error(fmt::format("no room for the {} bytes of '{}': {}", bytes, path_, std::strerror(errno)));
}

void File::sync() const {
  if (::fsync(fd) != 0) throw Error(fmt::format("cannot make '{}' durable: {}", path_, std::strerror(errno)));
}

void syncDirectory(const std::string &directory) {
  int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) throw Error(fmt::format("cannot open the directory '{}': {}", directory, std::strerror(errno)));
  int failed = ::fsync(fd), reason = errno;
  ::close(fd);
  if (failed && reason != EINVAL) // some file systems cannot sync directories
    throw Error(fmt::format("cannot make '{}' durable: {}", directory, std::strerror(reason)));
}

void renameOver(const std::string &from, const std::string &to) {
  if (std::rename(from.c_str(), to.c_str()) != 0)
    throw Error(fmt::format("cannot rename '{}' to '{}': {}", from, to, std::strerror(errno)));
}

std::string parentOf(const std::string &path) {
  std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

SharedFile::SharedFile(const std::string &path, Communicator &communicator, const std::function<void(const File &)> &prepare)
    : path(plan::replaceable(path)), partial(this->path + ".partial"), communicator(communicator) {
  if (communicator.rank() == 0) {
    file_ = std::make_unique<File>(partial, File::Mode::Create);
    try {
      prepare(*file_);
    } catch (...) {
      std::remove(partial.c_str());
      throw;
    }
  }
  communicator.barrier();
  if (!file_) file_ = std::make_unique<File>(partial, File::Mode::Update);
}

SharedFile::~SharedFile() {
  if (!published) std::remove(partial.c_str()); // whichever rank failed: the others may not come to it
}

void SharedFile::barrier() {
  file_->sync();
  communicator.barrier();
}

void SharedFile::publish() {
  barrier();
  if (communicator.rank() == 0) {
    renameOver(partial, path);
    syncDirectory(parentOf(path));
  }
  published = true;
  communicator.barrier();
}

} // namespace zero::runtime
