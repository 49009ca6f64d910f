// One run at a time writes to a folder of checkpoints: two would remove each other's.
#pragma once
#include "runtime/files/lock_file.h"
#include <string>

namespace zero::runtime {

class DirectoryLock {
public:
  // Throws a sentence if another process holds it, or if it cannot be made. It is the file DIR/run.lock.
  explicit DirectoryLock(const std::string &directory);

private:
  LockFile file;
};

} // namespace zero::runtime
