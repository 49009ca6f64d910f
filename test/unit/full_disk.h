// A disk on which no file can grow beyond some bytes: a limit of this process, so that no test needs a disk of its own.
#pragma once
#include <csignal>
#include <sys/resource.h>

namespace zero::test {

class FullDisk {
public:
  explicit FullDisk(rlim_t bytes) {
    before = std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &limit);
    rlimit small{bytes, limit.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
  }
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &limit);
    std::signal(SIGXFSZ, before);
  }
  FullDisk(const FullDisk &) = delete;

private:
  rlimit limit{};
  void (*before)(int) = nullptr;
};

} // namespace zero::test
