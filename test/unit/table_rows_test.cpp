// Rows of a table by index, in memory and on disk, held against a table of single bytes.
#include "runtime/plan/validate.h"
#include "runtime/storage/ring_queue.h"
#include "runtime/storage/row_writer.h"
#include "runtime/storage/thread_queue.h"
#include "test/unit/run_fixtures.h"
#include <algorithm>
#include <random>

using namespace zero;
using namespace zero::runtime;
using zero::test::Folder;

namespace {

using Bytes = std::vector<std::byte>;

// Some rows of a table and a window of it, all by chance.
struct Case {
  TableRows table{};
  std::vector<int64_t> wanted;
  Bytes indices, window, rows;
  std::mt19937_64 random;

  uint64_t below(uint64_t limit) { return random() % limit; }
  Bytes noise(uint64_t bytes) {
    Bytes made((bytes + 7) / 8 * 8);
    for (uint64_t at = 0; at < bytes; at += 8) {
      uint64_t word = random();
      std::memcpy(&made[at], &word, 8);
    }
    made.resize(bytes);
    return made;
  }
  Case(uint64_t seed, uint64_t rowBytes, uint64_t tableRows, uint64_t count) : random(seed) {
    table = {below(2) ? plan::I64 : plan::I32, count, rowBytes, below(2) ? below(rowBytes * tableRows) : 0, 0};
    table.bytes = 1 + below(rowBytes * tableRows - table.begin);
    for (uint64_t i = 0; i < count; ++i) switch (below(8)) {
      case 0:
        wanted.push_back(-1 - static_cast<int64_t>(below(3)));
        break;
      case 1:
        wanted.push_back(table.indexType == plan::I64 ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int32_t>::max());
        break;
      case 2:
        wanted.push_back(table.indexType == plan::I64 ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int32_t>::min());
        break;
      default:
        wanted.push_back(static_cast<int64_t>(below(tableRows + 2)));
      }
    for (int64_t index : wanted) {
      auto narrow = static_cast<int32_t>(index);
      const auto *from =
          table.indexType == plan::I64 ? reinterpret_cast<const std::byte *>(&index) : reinterpret_cast<const std::byte *>(&narrow);
      indices.insert(indices.end(), from, from + plan::bytesOf(table.indexType));
    }
    window = noise(table.bytes), rows = noise(count * rowBytes);
  }

  // each(byte of the window, byte of the rows), in the order of the rows.
  void forBytes(const std::function<void(uint64_t, uint64_t)> &each) const {
    for (uint64_t row = 0; row < table.count; ++row)
      for (uint64_t at = 0; at < table.rowBytes; ++at) {
        auto place = static_cast<__int128>(wanted[row]) * static_cast<__int128>(table.rowBytes) + static_cast<__int128>(at) -
                     static_cast<__int128>(table.begin);
        if (place >= 0 && place < static_cast<__int128>(table.bytes)) each(static_cast<uint64_t>(place), row * table.rowBytes + at);
      }
  }
  Bytes windowAfterPut() const {
    Bytes expected = window;
    std::vector<bool> done(table.bytes);
    forBytes([&](uint64_t inWindow, uint64_t inRows) {
      if (!done[inWindow]) expected[inWindow] = rows[inRows];
      done[inWindow] = true;
    });
    return expected;
  }
};

TEST(TableRows, AreWhatSingleBytesAre) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Case c(seed, 4 * (1 + seed % 7), 1 + seed % 11, 1 + seed % 13);
    Bytes copied = c.rows, moved = c.rows, left = c.window, put = c.window, expectedRows = c.rows, expectedMoved = c.rows,
          expectedLeft = c.window;
    c.forBytes([&](uint64_t inWindow, uint64_t inRows) {
      expectedRows[inRows] = c.window[inWindow];
      expectedMoved[inRows] = std::exchange(expectedLeft[inWindow], std::byte(0));
    });
    copyRows(c.table, c.indices.data(), c.window.data(), copied.data());
    moveRows(c.table, c.indices.data(), left.data(), moved.data());
    putRows(c.table, c.indices.data(), c.rows.data(), put.data());
    EXPECT_EQ(copied, expectedRows) << seed;
    EXPECT_EQ(moved, expectedMoved) << seed;
    EXPECT_EQ(left, expectedLeft) << seed;
    EXPECT_EQ(put, c.windowAfterPut()) << seed;
  }
}

// A file of noise as memory, and in memory what it must be.
struct DiskTable {
  DiskTable(const std::string &folder, const MakeQueue &make, uint64_t bytes)
      : storage({folder}, 0, make), bytes(bytes), memory(static_cast<std::byte *>(std::aligned_alloc(kBlockBytes, bytes)), std::free) {
    storage.allocate(bytes);
  }
  void write(const Bytes &all) {
    std::ranges::copy(all, memory.get());
    storage.write(0, {memory.get(), bytes});
  }
  Bytes read() {
    storage.read(0, {memory.get(), bytes});
    return {memory.get(), memory.get() + bytes};
  }
  Storage storage;
  uint64_t bytes;
  std::unique_ptr<std::byte, decltype(&std::free)> memory;
};

TEST(TableRows, AreTheSameOnDisk) {
  for (const auto &make : {makeRingQueue, makeThreadQueue}) {
    Folder folder;
    constexpr uint64_t kAround = 2 * kBlockBytes; // blocks before and behind the window's
    DiskTable disk(folder / "disk", make, uint64_t(24) << 20);
    for (auto [rowBytes, tableRows, count] : std::vector<std::array<uint64_t, 3>>{
             {4, 5000, 40}, {3072, 7000, 3000}, {3072, 300, 600}, {1024, 9, 20}, {8192, 1000, 700}, {5004, 900, 300}, {1500000, 12, 9}}) {
      RowWriter writer(disk.storage, {count, rowBytes});
      for (uint64_t seed = 0; seed < 2; ++seed) {
        Case c(seed, rowBytes, tableRows, count);
        Bytes expected = c.noise(disk.bytes);
        std::ranges::copy(c.window, expected.begin() + kAround);
        disk.write(expected);
        DiskTraffic before = disk.storage.traffic();
        writer.put(c.table, c.indices.data(), c.rows.data(), kAround);
        DiskTraffic after = disk.storage.traffic();
        std::ranges::copy(c.windowAfterPut(), expected.begin() + kAround);
        EXPECT_TRUE(disk.read() == expected) << rowBytes << " " << seed;
        EXPECT_EQ(after.read - before.read, after.written - before.written);
        EXPECT_LE(after.written - before.written, count * (rowBytes / kBlockBytes + 2) * kBlockBytes);
      }
    }
  }
}

// Of other blocks of the same storage, on other lanes.
TEST(TableRows, ComeToDiskWhileOthersReadAndWrite) {
  Folder folder;
  DiskTable disk(folder / "disk", makeRingQueue, uint64_t(24) << 20);
  Case c(7, 3072, 3000, 2000);
  Bytes expected = c.noise(disk.bytes);
  const uint64_t half = uint64_t(12) << 20;
  std::ranges::copy(c.window, expected.begin());
  disk.write(expected);
  RowWriter writer(disk.storage, {c.table.count, c.table.rowBytes});
  std::unique_ptr<std::byte, decltype(&std::free)> read(static_cast<std::byte *>(std::aligned_alloc(kBlockBytes, half / 2)), std::free);
  {
    std::jthread reader([&] {
      for (int i = 0; i < 8; ++i) disk.storage.read(half, {read.get(), half / 2});
    });
    std::jthread other([&] {
      for (int i = 0; i < 8; ++i) disk.storage.write(half + half / 2, {disk.memory.get() + half + half / 2, half / 2});
    });
    writer.put(c.table, c.indices.data(), c.rows.data(), 0);
  }
  EXPECT_TRUE(std::equal(read.get(), read.get() + half / 2, expected.begin() + half));
  std::ranges::copy(c.windowAfterPut(), expected.begin());
  EXPECT_TRUE(disk.read() == expected);
}

} // namespace
