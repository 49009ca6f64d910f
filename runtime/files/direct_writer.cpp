#include "runtime/files/direct_writer.h"
#include "runtime/base/error.h"
#include <algorithm>
#include <cstring>

namespace zero::runtime {

DirectWriter::DirectWriter(const File &file)
    : file(file), buffer(static_cast<std::byte *>(std::aligned_alloc(kBlockBytes, kBufferBytes)), std::free), direct(file.setDirect(true)) {
  if (!buffer) throw Error("this process cannot get the memory it needs");
}

void DirectWriter::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    uint64_t part = std::min(bytes.size(), kBufferBytes - held);
    std::memcpy(buffer.get() + held, bytes.data(), part);
    held += part;
    bytes = bytes.subspan(part);
    if (held == kBufferBytes) flush(held);
  }
}

void DirectWriter::flush(uint64_t bytes) {
  // Some file systems take the flag and refuse the transfers.
  if (!direct || !file.tryWrite(done, buffer.get(), bytes)) {
    if (direct) direct = file.setDirect(false);
    file.write(done, buffer.get(), bytes);
  }
  done += bytes, held -= bytes;
  std::memmove(buffer.get(), buffer.get() + bytes, held);
}

void DirectWriter::finish() {
  if (uint64_t blocks = held / kBlockBytes * kBlockBytes) flush(blocks);
  if (direct) direct = file.setDirect(false); // for what is less than a block
  if (held) flush(held);
}

} // namespace zero::runtime
