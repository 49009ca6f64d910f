// A file that many ranks write together.
#pragma once
#include "runtime/comm/communicator.h"
#include "runtime/files/partial_file.h"
#include <functional>
#include <memory>
#include <string>

namespace zero::runtime {

// A file that appears under its name only when all ranks have written their part. Rank 0 makes `PATH.partial`, all
// write to it by offset, publish() renames it. If publish() is not reached the partial file is removed. Behind a symbolic
// link the file it points to is replaced; a name that is no regular file is refused.
class SharedFile {
public:
  // Collective. `prepare` runs on rank 0 alone, on the new empty file.
  SharedFile(const std::string &path, Communicator &communicator, const std::function<void(const File &)> &prepare);
  ~SharedFile();
  const File &file() const { return own ? own->file() : *others; }
  void barrier(); // what any rank wrote before it can be read by all after it
  void publish(); // collective

private:
  std::string path;
  Communicator &communicator;
  std::unique_ptr<PartialFile> own; // rank 0's
  std::unique_ptr<File> others;     // any other rank's
  bool published = false;
};

} // namespace zero::runtime
