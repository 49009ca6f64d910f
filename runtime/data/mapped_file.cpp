#include "runtime/data/mapped_file.h"
#include "runtime/base/error.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace zero::runtime {

namespace {

std::string notRegular(const std::string &path, mode_t mode) {
  const char *kind = S_ISDIR(mode)    ? "a folder"
                     : S_ISFIFO(mode) ? "a pipe"
                     : S_ISSOCK(mode) ? "a socket"
                     : S_ISREG(mode)  ? nullptr
                                      : "a device";
  return kind ? fmt::format("'{}' is {}, but a regular file is needed, which can be read at any place", path, kind) : "";
}

} // namespace

void requireRegularFile(const std::string &path) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0) throw Error(fmt::format("cannot open '{}': {}", path, std::strerror(errno)));
  if (std::string why = notRegular(path, info.st_mode); !why.empty()) throw Error(why);
}

MappedFile::MappedFile(const std::string &path) : path_(path) {
  requireRegularFile(path);
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); // what took the file's place since does not block either
  if (fd < 0) throw Error(fmt::format("cannot open '{}': {}", path, std::strerror(errno)));
  struct stat info = {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    throw Error(fmt::format("'{}' is not a regular file", path));
  }
  size_ = static_cast<size_t>(info.st_size);
  if (size_ > 0) { // an empty file cannot be mapped, and needs not be
    void *mapped = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd, 0);
    int reason = errno;
    ::close(fd);
    if (mapped == MAP_FAILED) throw Error(fmt::format("cannot map the {} bytes of '{}': {}", size_, path, std::strerror(reason)));
    data_ = static_cast<const std::byte *>(mapped);
  } else {
    ::close(fd);
  }
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte *>(data_), size_);
}

} // namespace zero::runtime
