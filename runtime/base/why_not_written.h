// Why the system refuses to write, with what it leaves out.
#pragma once
#include <cerrno>
#include <cstring>
#include <string>

namespace zero::runtime {

inline std::string whyNotWritten(int reason) {
  std::string text = std::strerror(reason);
  return reason == EFBIG ? text + " for the limit on the size of files (ulimit -f), or for this file system" : text;
}

} // namespace zero::runtime
