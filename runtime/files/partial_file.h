// A file that appears under its name only when it is whole.
#pragma once
#include "runtime/files/file.h"

namespace zero::runtime {

// Written as `PATH.partial`, which one run at a time holds; publish() renames it. If that is not reached the partial file is removed, and
// what a killed run has left the next one writes over. `path` is no link, and nothing but a regular file may be there.
class PartialFile {
public:
  explicit PartialFile(const std::string &path);
  ~PartialFile();
  PartialFile(const PartialFile &) = delete;
  PartialFile &operator=(const PartialFile &) = delete;

  static std::string nameOf(const std::string &path) { return path + ".partial"; }
  const File &file() const { return file_; }
  void publish(); // on disk under its name, and so in its folder, when it returns

private:
  std::string path;
  File file_;
  bool published = false;
};

} // namespace zero::runtime
