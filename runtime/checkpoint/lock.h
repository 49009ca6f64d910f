// One run at a time writes to a folder of checkpoints: two would remove each other's. The lock is the system's and ends
// with the process, however that ends; nothing is left in the folder.
#pragma once
#include "runtime/files/descriptor.h"
#include <string>

namespace zero::runtime {

class DirectoryLock {
public:
  // Throws a sentence if another process holds it. File systems that know no locks are trusted.
  explicit DirectoryLock(const std::string &directory);

private:
  Descriptor fd;
};

} // namespace zero::runtime
