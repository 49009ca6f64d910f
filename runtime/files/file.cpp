#include "runtime/files/file.h"
#include "runtime/base/error.h"
#include "runtime/base/why_not_written.h"
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

// Two runs that write one file would mix their parts. The lock is the system's and ends with the descriptor; file systems
// that know no locks are trusted. False if the file has lost its name meanwhile: the run that held it has renamed or removed it.
bool takeOver(int fd, const std::string &path) {
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) throw Error(fmt::format("'{}' is being written by another run", path));
  struct stat mine = {}, named = {};
  if (::fstat(fd, &mine) != 0) throw Error(fmt::format("cannot open '{}': {}", path, std::strerror(errno)));
  if (::lstat(path.c_str(), &named) != 0 || named.st_ino != mine.st_ino || named.st_dev != mine.st_dev) return false;
  if (!S_ISREG(mine.st_mode)) throw Error(fmt::format("'{}' is no regular file; remove it", path));
  if (mine.st_nlink > 1) throw Error(fmt::format("'{}' is another name of a file that would be lost; remove it", path));
  if (::ftruncate(fd, 0) != 0) throw Error(fmt::format("cannot empty '{}': {}", path, std::strerror(errno)));
  return true;
}

} // namespace

File::File(const std::string &path, Mode mode) : path_(path) {
  int flags = mode == Mode::Read ? O_RDONLY | O_NONBLOCK : // a pipe is refused, not waited for
                  mode == Mode::Update ? O_RDWR | O_NOFOLLOW
                                       : O_RDWR | O_CREAT | O_NOFOLLOW;
  for (bool ready = false; !ready;) {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
    if (fd < 0 && errno == ELOOP && mode != Mode::Read)
      throw Error(fmt::format("'{}' is a symbolic link, which is not followed here; remove it", path));
    if (fd < 0) throw Error(fmt::format("cannot {} '{}': {}", mode == Mode::Create ? "create" : "open", path, std::strerror(errno)));
    try {
      ready = mode != Mode::Create || takeOver(fd, path);
      if (mode == Mode::Read) size(); // of a regular file
    } catch (...) {
      ::close(fd);
      throw;
    }
    if (!ready) ::close(fd);
  }
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
  if (!tryWrite(offset, data, bytes)) throw Error(fmt::format("cannot write '{}': {}", path_, std::strerror(EINVAL)));
}

bool File::tryWrite(uint64_t offset, const void *data, uint64_t bytes) const {
  auto *at = static_cast<const char *>(data);
  while (bytes > 0) {
    ssize_t done = ::pwrite(fd, at, std::min(bytes, kLargestCall), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0 && errno == EINVAL && at == data) return false;
    if (done <= 0) throw Error(fmt::format("cannot write '{}': {}", path_, whyNotWritten(done < 0 ? errno : ENOSPC)));
    at += done, offset += static_cast<uint64_t>(done), bytes -= static_cast<uint64_t>(done);
  }
  return true;
}

bool File::setDirect(bool wanted) const { return ::fcntl(fd, F_SETFL, wanted ? O_DIRECT : 0) == 0 && wanted; }

void File::reserve(uint64_t bytes) const {
  if (::ftruncate(fd, static_cast<off_t>(bytes)) != 0)
    throw Error(fmt::format("cannot make '{}' {} bytes long: {}", path_, bytes, whyNotWritten(errno)));
  // A full disk or quota is better found now; file systems without fallocate find it at the write.
  if (bytes > 0 && ::fallocate(fd, 0, 0, static_cast<off_t>(bytes)) != 0 && (errno == ENOSPC || errno == EDQUOT))
    throw Error(fmt::format("no room for the {} bytes of '{}': {}", bytes, path_, std::strerror(errno)));
}

void File::sync() const {
  if (::fsync(fd) != 0) throw Error(fmt::format("cannot make '{}' durable: {}", path_, std::strerror(errno)));
}

void File::forget() const { ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); }

std::filesystem::file_type kindOf(const std::filesystem::path &path) {
  std::error_code failed;
  std::filesystem::file_type kind = std::filesystem::status(path, failed).type();
  if (kind == std::filesystem::file_type::none) throw Error(fmt::format("cannot look at '{}': {}", path.string(), failed.message()));
  return kind;
}

bool isThere(const std::filesystem::path &path) { return kindOf(path) != std::filesystem::file_type::not_found; }

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

std::string readText(const std::string &path) {
  File file(path, File::Mode::Read);
  std::string text(file.size(), '\0');
  file.read(0, text.data(), text.size());
  return text;
}

std::string parentOf(const std::string &path) {
  std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

std::vector<std::string> makeFolders(const std::string &path) {
  namespace fs = std::filesystem;
  std::vector<std::string> missing, made;
  for (fs::path folder = fs::absolute(path).lexically_normal(); folder.has_relative_path() && !isThere(folder);
       folder = folder.parent_path())
    if (folder.has_filename()) missing.push_back(folder.string()); // not the empty name after a last slash
  for (auto folder = missing.rbegin(); folder != missing.rend(); ++folder) {
    if (::mkdir(folder->c_str(), 0777) == 0)
      made.insert(made.begin(), *folder);
    else if (errno != EEXIST)
      throw Error(fmt::format("cannot create the folder '{}': {}", *folder, std::strerror(errno)));
    syncDirectory(parentOf(*folder));
  }
  return made;
}

} // namespace zero::runtime
