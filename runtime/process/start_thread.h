// Threads that the system may refuse.
#pragma once
#include "runtime/base/error.h"
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace zero {

// A started thread (std::thread or std::jthread), or a sentence that names what it was for.
template <class Thread = std::thread, class Work> Thread startThread(const std::string &purpose, Work &&work) {
  try {
    return Thread(std::forward<Work>(work));
  } catch (const std::system_error &error) {
    throw Error("cannot start " + purpose + ": " + error.code().message() +
                "; give a smaller --threads, or raise the limit on processes and threads (ulimit -u, pids.max of the control group) or on "
                "memory (ulimit -v)");
  }
}

} // namespace zero
