// A large file, written once from its beginning to its end.
#pragma once
#include "runtime/files/file.h"
#include <cstdlib>
#include <memory>
#include <span>

namespace zero::runtime {

// Writes past the page cache, where the file system can: what goes through it is copied once more, takes memory from what else the machine
// does, and is written by the system at a part of the disk's speed when it is to be durable (1.5 GB of a checkpoint on a virtual disk: 4.4
// s, directly 0.5 s). It holds back what does not fill a block yet.
class DirectWriter {
public:
  static constexpr uint64_t kBufferBytes = uint64_t(4) << 20;

  // `file` is empty and outlives the writer.
  explicit DirectWriter(const File &file);

  // After what was written before.
  void write(std::span<const std::byte> bytes);
  void write(const void *data, uint64_t bytes) { write({static_cast<const std::byte *>(data), bytes}); }
  // What was held back is written too. To be called once, at the end.
  void finish();
  uint64_t written() const { return done + held; }

private:
  void flush(uint64_t bytes); // the first of the buffer

  const File &file;
  std::unique_ptr<std::byte, decltype(&std::free)> buffer;
  bool direct;
  uint64_t done = 0, held = 0; // bytes in the file, and in the buffer
};

} // namespace zero::runtime
