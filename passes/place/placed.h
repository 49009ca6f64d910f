//===- placed.h - an index of buffers that have their bytes ---------------------------------------------===//
#pragma once
#include "passes/place/bytes.h"
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

namespace zero::place {

/// So many live ranges [first, last], side by side, each of which may be `next`.
struct LiveRanges {
  static constexpr size_t kRoom = 128;
  using Flags = std::array<uint8_t, kRoom>;
  std::array<int32_t, kRoom> first, last;
  Flags next;

  /// Which have a step of [from, to], or are not `next` and have one of [0, nextTo].
  Flags liveIn(int32_t from, int32_t to, int32_t nextTo) const;
};

/// Buffers by their first byte, in chunks, so that one more moves few others. Which are live with a given one is asked of a whole chunk
/// at once.
class BuffersByByte {
  static constexpr size_t kRoom = LiveRanges::kRoom; // of a chunk
  using Flags = LiveRanges::Flags;
  struct Chunk;

public:
  /// Live in the steps [first, last]. After those that begin at the same byte.
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

  /// Goes through those that are live in a step of [first, last], and those that are not added as `next` and live in a step of
  /// [0, nextLast], the lowest first.
  class Cursor {
  public:
    Cursor(const BuffersByByte &buffers, int32_t first, int32_t last, int32_t nextLast)
        : chunks(buffers.chunks), first(first), last(last), nextLast(nextLast) {
      load();
    }
    bool atEnd() const { return chunk == chunks.size(); }
    Bytes begin() const { return Bytes(chunks[chunk]->begin[at]); }
    Bytes end() const { return Bytes(chunks[chunk]->end[at]); }
    void advance() {
      eight &= eight - 1;
      find();
    }

  private:
    void load() {
      if (atEnd()) return;
      live = chunks[chunk]->liveIn(first, last, nextLast);
      word = 0;
      std::memcpy(&eight, live.data(), 8);
      find();
    }
    void find() { // from this word on
      while (!eight) {
        word += 8;
        if (word >= chunks[chunk]->size) {
          ++chunk;
          return load();
        }
        std::memcpy(&eight, &live[word], 8);
      }
      at = word + size_t(std::countr_zero(eight)) / 8;
    }

    const std::vector<std::unique_ptr<Chunk>> &chunks;
    int32_t first, last, nextLast;
    size_t chunk = 0, word = 0, at = 0;
    uint64_t eight = 0; // of `live`, from `word` on, without those that have been seen
    Flags live;
  };

  /// Those that are live in a step of [first, last], and those that are not added as `next` and live in a step of [0, nextLast], the lowest
  /// first: `see(begin, end)` says whether to go on, and so does the answer.
  template <typename See> bool visit(int32_t first, int32_t last, int32_t nextLast, See see) const {
    for (const auto &chunk : chunks) {
      Flags live = chunk->liveIn(first, last, nextLast);
      for (size_t word = 0; word < chunk->size; word += 8) {
        uint64_t eight;
        std::memcpy(&eight, &live[word], 8);
        for (; eight; eight &= eight - 1) {
          size_t i = word + size_t(std::countr_zero(eight)) / 8;
          if (!see(Bytes(chunk->begin[i]), Bytes(chunk->end[i]))) return false;
        }
      }
    }
    return true;
  }

private:
  static_assert(std::endian::native == std::endian::little);

  struct Chunk : LiveRanges {
    size_t size = 0;
    std::array<int64_t, kRoom> begin, end;

    Chunk() { first.fill(0), last.fill(-1), next.fill(1); } // places without a buffer are live in no step

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

/// Buffers that have their bytes. Most of a long program's are live at another time than one that is to be placed, so time is cut into
/// slices, at several scales, each with the buffers that are live in it; of neighbours half is the same, so that a short live range lies
/// within a short slice wherever it begins. Those that are live in many slices of a scale are kept apart.
class PlacedBuffers {
public:
  /// At most so many, of a program of so many steps.
  PlacedBuffers(size_t most, int64_t steps) {
    if (most > kFew)
      for (int64_t stride = kStride; stride < steps; stride *= 4) scales.emplace_back(stride, steps);
    scales.emplace_back(std::max<int64_t>(steps, 1), steps);
  }

  /// Live in the steps [first, last].
  void add(Bytes begin, Bytes end, int32_t first, int32_t last, bool next = false) {
    for (Scale &scale : scales) {
      int64_t from = std::max<int64_t>(first / scale.stride - 1, 0), to = last / scale.stride;
      if (to - from > kMany)
        scale.others.add(begin, end, first, last, next);
      else
        for (; from <= to; ++from) scale.slices[size_t(from)].add(begin, end, first, last, next);
    }
  }

  /// Those that are live in a step of [first, last], and those that are not added as `next` and live in a step of [0, nextLast], the lowest
  /// first: `see(begin, end)` says whether to go on.
  template <typename See> void visit(int32_t first, int32_t last, int32_t nextLast, See see) const {
    const Scale &scale = nextLast < 0 ? scaleFor(first, last) : scales.back();
    BuffersByByte::Cursor other(scale.others, first, last, nextLast);
    auto seeOthers = [&](Bytes below) {
      for (; !other.atEnd() && other.begin() < below; other.advance())
        if (!see(other.begin(), other.end())) return false;
      return true;
    };
    if (scale.slices[size_t(first / scale.stride)].visit(first, last, nextLast,
                                                         [&](Bytes begin, Bytes end) { return seeOthers(begin) && see(begin, end); }))
      seeOthers(Bytes(INT64_MAX));
  }

private:
  static constexpr size_t kFew = 2048;              // for which one slice will do
  static constexpr int64_t kStride = 64, kMany = 8; // steps, half of a slice; slices

  struct Scale {
    Scale(int64_t stride, int64_t steps) : stride(stride), slices(size_t(steps / stride + 1)) {}
    int64_t stride;
    std::vector<BuffersByByte> slices; // the steps [i, i + 2) * stride
    BuffersByByte others;              // of more than so many slices
  };

  const Scale &scaleFor(int32_t first, int32_t last) const {
    for (const Scale &scale : scales)
      if (last < (first / scale.stride + 2) * scale.stride) return scale;
    return scales.back();
  }

  std::vector<Scale> scales; // the last has one slice
};

} // namespace zero::place
