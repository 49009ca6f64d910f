// A file descriptor that closes itself.
#pragma once
#include <unistd.h>

namespace zero::runtime {

class Descriptor {
public:
  explicit Descriptor(int fd) : fd(fd) {} // negative: none, as open() has it that fails
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;

  explicit operator bool() const { return fd >= 0; }
  int get() const { return fd; }

private:
  int fd;
};

} // namespace zero::runtime
