// Large files past the page cache, whatever their length, and where the file system has no such way.
#include "runtime/files/direct_writer.h"
#include "test/unit/run_fixtures.h"
#include <fcntl.h>
#include <random>
#include <sys/mman.h>

using namespace zero::runtime;
using namespace zero::test;

namespace {

std::vector<std::byte> numbers(uint64_t bytes) {
  std::mt19937 random(7);
  std::vector<std::byte> all(bytes);
  for (std::byte &byte : all) byte = std::byte(random());
  return all;
}

std::vector<std::byte> contentOf(const File &file) {
  std::vector<std::byte> found(file.size());
  file.read(0, found.data(), found.size());
  return found;
}

// Written in parts of the given lengths, in turns.
void write(const File &file, std::span<const std::byte> all, std::span<const uint64_t> lengths) {
  DirectWriter writer(file);
  for (uint64_t at = 0, turn = 0; at < all.size(); ++turn) {
    uint64_t part = std::min(lengths[turn % lengths.size()], all.size() - at);
    writer.write(all.subspan(at, part));
    at += part;
    EXPECT_EQ(writer.written(), at);
  }
  writer.finish();
}

TEST(DirectWriter, WritesAnyLength) {
  Folder folder;
  for (uint64_t bytes : {uint64_t(0), uint64_t(1), uint64_t(4095), uint64_t(4096), uint64_t(4097), DirectWriter::kBufferBytes - 1,
                         DirectWriter::kBufferBytes, 2 * DirectWriter::kBufferBytes + 4096 + 17}) {
    std::vector<std::byte> all = numbers(bytes);
    for (std::vector<uint64_t> lengths : {std::vector<uint64_t>{bytes + 1}, {uint64_t(1) << 20, 3, 70001}}) {
      File file(folder / "f", File::Mode::Create);
      file.reserve(bytes);
      write(file, all, lengths);
      EXPECT_EQ(contentOf(file), all) << bytes;
    }
  }
}

// A file system that refuses the flag, or takes it and refuses the transfers.
TEST(DirectWriter, GoesThroughThePageCacheWhereItMust) {
  std::vector<std::byte> all = numbers(DirectWriter::kBufferBytes + 5000);
  File inMemory(::memfd_create("f", MFD_CLOEXEC), "memory");
  write(inMemory, all, std::vector<uint64_t>{all.size()});
  EXPECT_EQ(contentOf(inMemory), all);

  Folder folder;
  File file(folder / "f", File::Mode::Create);
  if (!file.setDirect(true)) GTEST_SKIP() << "the file system of the temporary folder has no direct transfers";
  EXPECT_FALSE(file.tryWrite(0, all.data() + 1, 4097)); // no block, from no block
  EXPECT_EQ(file.size(), 0u);
  EXPECT_FALSE(file.setDirect(false));
  file.write(0, all.data() + 1, 4097);
  EXPECT_EQ(file.size(), 4097u);
}

} // namespace
