// A lock on a file that is made for it: the system's (flock), which ends with the process, however that ends. Of a regular file it holds on
// NFS as well, between machines; of a folder it would not. The empty file is removed when the lock is given up; a process that is killed
// leaves it, and it means nothing then, to other users neither. File systems that know no locks are trusted.
#pragma once
#include "runtime/files/descriptor.h"
#include <memory>
#include <string>

namespace zero::runtime {

class LockFile {
public:
  explicit LockFile(std::string path); // takes it, if nobody has it
  ~LockFile();
  LockFile(const LockFile &) = delete;
  LockFile &operator=(const LockFile &) = delete;

  const std::string &path() const { return path_; }
  int refusal() const { return refusal_; } // 0: it is held; EWOULDBLOCK: by another; or why there is no such file

private:
  std::string path_;
  std::unique_ptr<Descriptor> file;
  int refusal_ = 0;
};

// The files of all locks that this process holds: called where it ends at once, without destructors. From any thread.
void removeLockFiles() noexcept;

} // namespace zero::runtime
