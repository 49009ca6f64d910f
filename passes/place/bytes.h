//===- bytes.h - a number of bytes, which is not a number of elements ------------------------------===//
#pragma once
#include <compare>
#include <cstdint>

namespace zero::place {

struct Bytes {
  int64_t count = 0;

  constexpr Bytes() = default;
  constexpr explicit Bytes(int64_t count) : count(count) {}
  constexpr auto operator<=>(const Bytes &) const = default;
  constexpr Bytes operator+(Bytes other) const { return Bytes(count + other.count); }
  constexpr Bytes operator-(Bytes other) const { return Bytes(count - other.count); }
  constexpr Bytes &operator+=(Bytes other) { return *this = *this + other; }
  constexpr Bytes &operator-=(Bytes other) { return *this = *this - other; }
  constexpr Bytes alignedTo(Bytes unit) const { return Bytes((count + unit.count - 1) / unit.count * unit.count); }
};

} // namespace zero::place
