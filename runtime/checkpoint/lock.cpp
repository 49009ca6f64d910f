#include "runtime/checkpoint/lock.h"
#include "runtime/base/error.h"
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>

namespace zero::runtime {

DirectoryLock::DirectoryLock(const std::string &directory) : file((std::filesystem::path(directory) / "run.lock").string()) {
  if (file.refusal() == EWOULDBLOCK)
    throw Error(fmt::format("--checkpoint '{}' is being written by another run; wait for its end, or name another folder", directory));
  if (file.refusal())
    throw Error(fmt::format("--checkpoint '{}' cannot be written to: cannot create '{}': {}", directory, file.path(),
                            std::strerror(file.refusal())));
}

} // namespace zero::runtime
