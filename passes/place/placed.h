//===- placed.h - an index of buffers that have their bytes ---------------------------------------------===//
#pragma once
#include "passes/place/bytes.h"
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <vector>

namespace zero::place {

/// Buffers by their first byte, in chunks, so that one more moves few others. Whose live ranges meet a given one is asked of a whole chunk
/// at once, in a loop without branches that compilers turn into vector code: most of a long program's buffers are live at another time.
class PlacedBuffers {
public:
  /// Live in the steps [first, last]. Behind those that begin at the same byte.
  void add(Bytes begin, Bytes end, int32_t first, int32_t last, bool next = false) {
    auto after = std::upper_bound(chunks.begin(), chunks.end(), begin.count,
                                  [](int64_t at, const std::unique_ptr<Chunk> &chunk) { return at < chunk->begin[0]; });
    if (after == chunks.begin()) after = chunks.empty() ? chunks.insert(after, std::make_unique<Chunk>()) + 1 : after + 1;
    Chunk *chunk = std::prev(after)->get();
    size_t at = size_t(std::upper_bound(chunk->begin.begin(), chunk->begin.begin() + chunk->size, begin.count) - chunk->begin.begin());
    if (chunk->size == kRoom) {
      auto upper = std::make_unique<Chunk>();
      chunk->moveUpperHalf(*upper);
      Chunk *lower = chunk;
      if (at > lower->size) at -= lower->size, chunk = upper.get();
      chunks.insert(after, std::move(upper));
    }
    chunk->insert(at, begin.count, end.count, first, last, next);
  }

  /// Those that are live in a step of [first, last], the lowest first: `see(begin, end)` says whether to go on.
  template <typename See> void visit(int32_t first, int32_t last, See see) const { visit(first, last, -1, see); }
  /// The same, and those that are not added as `next` and live in a step of [0, nextLast].
  template <typename See> void visit(int32_t first, int32_t last, int32_t nextLast, See see) const {
    for (const auto &chunk : chunks) {
      std::array<uint8_t, kRoom> meet;
      for (size_t i = 0; i < kRoom; ++i)
        meet[i] = ((chunk->first[i] <= last) & (first <= chunk->last[i])) | ((chunk->first[i] <= nextLast) & !chunk->next[i]);
      for (size_t word = 0; word < chunk->size; word += 8) {
        uint64_t eight;
        std::memcpy(&eight, &meet[word], 8);
        for (; eight; eight &= eight - 1) {
          size_t i = word + size_t(std::countr_zero(eight)) / 8;
          if (!see(Bytes(chunk->begin[i]), Bytes(chunk->end[i]))) return;
        }
      }
    }
  }

private:
  static constexpr size_t kRoom = 128;
  static_assert(std::endian::native == std::endian::little);

  struct Chunk {
    size_t size = 0;
    std::array<int32_t, kRoom> first{}, last;
    std::array<int64_t, kRoom> begin, end;
    std::array<uint8_t, kRoom> next;

    Chunk() { last.fill(-1), next.fill(1); } // places without a buffer meet no step

    void insert(size_t at, int64_t itsBegin, int64_t itsEnd, int32_t itsFirst, int32_t itsLast, uint8_t itsNext) {
      auto put = [&](auto &values, auto value) {
        std::copy_backward(values.begin() + at, values.begin() + size, values.begin() + size + 1);
        values[at] = value;
      };
      put(first, itsFirst), put(last, itsLast), put(begin, itsBegin), put(end, itsEnd), put(next, itsNext);
      ++size;
    }

    void moveUpperHalf(Chunk &to) {
      size_t half = size / 2;
      auto move = [&](auto &values, auto &others) { std::copy(values.begin() + half, values.begin() + size, others.begin()); };
      move(first, to.first), move(last, to.last), move(begin, to.begin), move(end, to.end), move(next, to.next);
      std::fill(last.begin() + half, last.end(), -1);
      std::fill(next.begin() + half, next.end(), 1);
      to.size = size - half, size = half;
    }
  };

  std::vector<std::unique_ptr<Chunk>> chunks;
};

} // namespace zero::place
