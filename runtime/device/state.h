// What a rank keeps from step to step, for who needs it from outside: first values, checkpoints, results. It is named by the plan's Refs
// and comes and goes in pieces, because it may lie in the memory of a device or on a disk and be larger than what this process may take.
#pragma once
#include "runtime/files/file.h"
#include "runtime/plan/plan.pb.h"
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>

namespace zero::runtime {

// The most bytes that are in the caller's hands at once. A checkpoint has one checksum for as many (checkpoint/checksums.h).
inline constexpr uint64_t kPieceBytes = uint64_t(4) << 20;

// The most memory that an owner stages such pieces in where they lie on disk: one is in the caller's hands while another one is
// transferred, each with a block more because they need not begin with one.
inline constexpr uint64_t kStagingBytes = 2 * (kPieceBytes + kBlockBytes);

// Called with one piece after another of what is read or written; `first` counts from the beginning of that. All pieces but the last have
// kPieceBytes. The memory is the owner's and lent for the call: it may be the state's own, or a buffer that stands for it while the
// owner already fetches the next one or puts the last one away.
using TakePiece = std::function<void(uint64_t first, std::span<const std::byte> piece)>;
using FillPiece = std::function<void(uint64_t first, std::span<std::byte> piece)>;

class State {
public:
  virtual ~State() = default;

  // Bytes [offset, offset + bytes) of what this rank has at `from`. Allowed while no step runs that writes them.
  virtual void read(const plan::Ref &from, uint64_t offset, uint64_t bytes, const TakePiece &take) const = 0;
  // The same in the other direction: what the pieces are filled with is there when it returns. Not allowed while a step runs that touches
  // them. If `fill` throws, they hold anything.
  virtual void write(const plan::Ref &to, uint64_t offset, uint64_t bytes, const FillPiece &fill) = 0;

  // Of little size.
  void read(const plan::Ref &from, uint64_t offset, std::span<std::byte> to) const {
    read(from, offset, to.size(),
         [&](uint64_t first, std::span<const std::byte> piece) { std::memcpy(&to[first], piece.data(), piece.size()); });
  }
  void write(const plan::Ref &to, uint64_t offset, std::span<const std::byte> from) {
    write(to, offset, from.size(),
          [&](uint64_t first, std::span<std::byte> piece) { std::memcpy(piece.data(), &from[first], piece.size()); });
  }

  // One f32, such as a loss.
  float scalar(const plan::Ref &ref) const {
    float value;
    read(ref, 0, std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }
};

// Elements [at, at + count) of an f32 tensor of the state: body(first, values) with the elements from at + first on.
template <typename Body> void readFloats(const State &state, const plan::Ref &ref, uint64_t at, uint64_t count, Body &&body) {
  state.read(ref, at * sizeof(float), count * sizeof(float), [&](uint64_t first, std::span<const std::byte> piece) {
    body(first / sizeof(float), std::span(reinterpret_cast<const float *>(piece.data()), piece.size() / sizeof(float)));
  });
}
template <typename Body> void writeFloats(State &state, const plan::Ref &ref, uint64_t at, uint64_t count, Body &&body) {
  state.write(ref, at * sizeof(float), count * sizeof(float), [&](uint64_t first, std::span<std::byte> piece) {
    body(first / sizeof(float), std::span(reinterpret_cast<float *>(piece.data()), piece.size() / sizeof(float)));
  });
}

// For an owner whose bytes lie in this process: lends them as they are.
template <typename Byte, typename Lend> void lendPieces(Byte *bytes, uint64_t size, const Lend &lend) {
  for (uint64_t first = 0; first < size; first += kPieceBytes) lend(first, std::span(bytes + first, std::min(kPieceBytes, size - first)));
}

} // namespace zero::runtime
