// The files that hold what a rank keeps on disk: one in each folder it may use, each on a disk of its own if the user has several. They
// have no name from the moment they are open, so nothing of them is left however the process ends.
#pragma once
#include "runtime/files/descriptor.h"
#include "runtime/files/file.h"
#include "runtime/files/lock_file.h"
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace zero::runtime {

// Consecutive bytes lie on consecutive disks in turns of this: a large transfer keeps all of them busy, and one turn is a request that a
// disk serves at its full speed.
inline constexpr uint64_t kStripeBytes = uint64_t(1) << 20;

// Of a disk that takes no turns a request is as much as this: the system cuts it as the disk likes it, and what each request costs beside
// its bytes is paid once. (GPT-2 124M on a virtual disk: 4.5 GB/s with requests of a stripe, 5.1 with these.)
inline constexpr uint64_t kLargestRequestBytes = uint64_t(8) << 20;

// One rank at a time, of all runs, holds its number in a folder: two runs that shared a disk unknowingly would halve each other's speed and
// fill each other's room. The lock is the file DIR/rank-N.lock. Ranks of one run have different numbers and so share a folder; any two
// runs have a rank 0.
class RankLock {
public:
  RankLock(const std::string &folder, int rank); // throws a sentence if it is held

private:
  LockFile file;
};

class DiskFiles {
public:
  // Makes folders that are missing. Throws a sentence if one cannot be used. `direct`: past the page cache, where the file system can.
  DiskFiles(const std::vector<std::string> &folders, int rank, bool direct = true);

  // More room, which reads as zeros: returns where it begins, a multiple of kBlockBytes. It is taken from the file systems at once, where
  // they know how, so that no write fails for lack of it later; throws a sentence that says how much was wanted and how much is free.
  uint64_t allocate(uint64_t bytes);
  uint64_t size() const { return allocated; }

  // Where the bytes from an offset on lie, as far as they lie side by side: at most kStripeBytes, or kLargestRequestBytes of one disk
  // alone.
  struct Part {
    uint32_t file;
    uint64_t offset, bytes;
  };
  Part at(uint64_t offset, uint64_t bytes) const;
  // Throws a sentence if a file has lost some of its room since it was taken. Asked after every transfer, because a write after the loss
  // makes what is lost read as zeros, and what is made of them may be written there again.
  void requireWhole() const;

  std::vector<int> descriptors() const;
  const std::string &folder(uint32_t file) const { return files[file]->folder; }
  // Folders whose file system cannot transfer directly: their files go through the page cache.
  std::vector<std::string> buffered() const;

private:
  struct DiskFile {
    DiskFile(const std::string &folder, int rank, bool direct);
    void grow(uint64_t bytes);
    int reserve(uint64_t bytes);
    void requireWhole() const;
    void probe(); // after the first bytes are there

    std::string folder;
    RankLock lock;
    Descriptor file;
    bool direct;
    bool keepsBlocks = false; // what was reserved has blocks of its own for as long as the file is not cut
    uint64_t size = 0;
  };

  std::vector<std::unique_ptr<DiskFile>> files;
  uint64_t allocated = 0;
};

} // namespace zero::runtime
