// Whole reads and writes at offsets, with sentences; and a file that many ranks write together.
#pragma once
#include "runtime/comm/communicator.h"
#include <cstdint>
#include <string>

namespace zero::runtime {

// A file descriptor that closes itself.
class File {
public:
  enum class Mode { Read, Update, Create }; // Create: empties the file; refused while another run holds it so
  File(const std::string &path, Mode mode);
  ~File();
  File(const File &) = delete;
  File &operator=(const File &) = delete;

  const std::string &path() const { return path_; }
  uint64_t size() const;
  void read(uint64_t offset, void *data, uint64_t bytes) const;        // throws if the file ends before
  void write(uint64_t offset, const void *data, uint64_t bytes) const; // throws if the disk is full
  void reserve(uint64_t bytes) const;                                  // the size it will have
  void sync() const;

private:
  std::string path_;
  int fd = -1;
};

// Makes a rename or a new entry in this directory durable.
void syncDirectory(const std::string &directory);
void renameOver(const std::string &from, const std::string &to);
std::string parentOf(const std::string &path); // "." for a bare name

// A file that appears under its name only when all ranks have written their part. Rank 0 makes `PATH.partial`, all
// write to it by offset, publish() renames it. If publish() is not reached the partial file is removed. Behind a symbolic
// link the file it points to is replaced; a name that is no regular file is refused.
class SharedFile {
public:
  // Collective. `prepare` runs on rank 0 alone, on the new empty file.
  SharedFile(const std::string &path, Communicator &communicator, const std::function<void(const File &)> &prepare);
  ~SharedFile();
  const File &file() const { return *file_; }
  void barrier(); // what any rank wrote before it can be read by all after it
  void publish(); // collective

private:
  std::string path, partial;
  Communicator &communicator;
  std::unique_ptr<File> file_;
  bool published = false;
};

} // namespace zero::runtime
