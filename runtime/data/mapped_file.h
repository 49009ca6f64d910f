// A file seen as read-only bytes: data sets and initial weights are never copied whole into memory.
#pragma once
#include <cstddef>
#include <span>
#include <string>

namespace zero::runtime {

// Throws a sentence if the path names a folder, a pipe, a socket or a device, without opening it: a pipe would wait for its other end.
void requireRegularFile(const std::string &path);

class MappedFile {
public:
  explicit MappedFile(const std::string &path); // throws zero::Error naming the file
  ~MappedFile();
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;

  const std::string &path() const { return path_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }

private:
  std::string path_;
  const std::byte *data_ = nullptr;
  size_t size_ = 0;
};

} // namespace zero::runtime
