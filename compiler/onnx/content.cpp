//===- content.cpp - what the numbers of an initializer tell -------------------------------------===//
#include "compiler/onnx/content.h"
#include "compiler/onnx/origin.h"
#include "llvm/ADT/APFloat.h"
#include <cmath>

namespace zero::onnx {

Content::Content(const TensorProto &t, Weights &weights) : t(t) {
  if (!t.hasData || !isFloat(t.type)) return;
  raw = weights.bytes(t);
  width = sizeOf(t.type);
  if (raw.size() != t.bytes()) width = 0;
}

float Content::at(uint64_t i) const {
  const char *p = raw.data() + i * width;
  uint16_t half;
  double d;
  float f;
  switch (t.type) {
  case Type::Float:
    std::memcpy(&f, p, 4);
    return f;
  case Type::Double:
    std::memcpy(&d, p, 8);
    return float(d);
  default:
    std::memcpy(&half, p, 2);
    break;
  }
  if (t.type == Type::BFloat16) {
    uint32_t bits = uint32_t(half) << 16;
    std::memcpy(&f, &bits, 4);
    return f;
  }
  return llvm::APFloat(llvm::APFloat::IEEEhalf(), llvm::APInt(16, half)).convertToFloat();
}

bool Content::isConstant() const { return known() && std::memcmp(raw.data(), raw.data() + width, raw.size() - width) == 0; }

bool Content::isSigns() const {
  if (!known() || isConstant()) return false;
  for (uint64_t i = 0; i < size(); ++i)
    if (float v = at(i); v != 0 && v != 1 && v != -1) return false;
  return true;
}

bool Content::isZeroRow() const { return t.dims.size() == 2 && t.dims.back() == int64_t(t.elements) && isConstant() && at(0) == 0; }

bool Content::isMadeUp() const {
  StringRef base = t.name.rtrim("0123456789");
  return t.name.starts_with("onnx::") || t.name.starts_with("/") || (base.consume_back("_") && base == "val") || isFilled();
}

bool Content::isFilled() const {
  StringRef base = t.name.rtrim("0123456789");
  if (base.size() < t.name.size() && !base.consume_back("_")) return false;
  base.consume_front("new_");
  base.consume_back("_like");
  return (base == "zeros" || base == "ones" || base == "full" || base == "fill") && isConstant();
}

bool Content::isOfModule() const { return isModuleName(t.name); }

bool Content::isWeight() const { return isOfModule() && t.name.ends_with(".weight"); }

bool Content::isMask() const {
  if (!known()) return false;
  for (uint64_t i = 0; i < size(); ++i)
    if (std::fabs(at(i)) >= 1e4f) return true;
  return false;
}

bool Content::isTriangle() const {
  size_t rank = t.dims.size();
  if (!known() || rank < 2 || t.dims[rank - 1] != t.dims[rank - 2] || t.dims.back() < 3 || isConstant()) return false;
  uint64_t n = uint64_t(t.dims.back());
  for (uint64_t i = 0; i < size(); ++i)
    if (i % n > i / n % n && at(i) != 0) return false;
  return true;
}

bool Content::isPlaces() const { return t.dims.size() > 2 && t.dims.back() <= 3 && !isWeight(); }

bool Content::isCopies() const {
  if (!known() || t.dims.empty() || t.dims[0] < 2) return false;
  size_t slice = raw.size() / size_t(t.dims[0]);
  return std::memcmp(raw.data(), raw.data() + slice, raw.size() - slice) == 0;
}

bool Content::isCopiesFor(int64_t samples) const {
  if (!known() || t.dims.size() < 3 || samples < 2 || isConstant()) return false;
  for (size_t dim : {0, 1}) {
    if (t.dims[dim] != samples) continue;
    size_t outer = dim ? size_t(t.dims[0]) : 1, slice = raw.size() / outer / size_t(samples);
    bool equal = true;
    for (const char *p = raw.data(); equal && p < raw.data() + raw.size(); p += slice * size_t(samples))
      equal = std::memcmp(p, p + slice, slice * size_t(samples - 1)) == 0;
    if (equal) return true;
  }
  return false;
}

bool Content::isStateFor(int64_t samples) const {
  return known() && t.dims.size() > 2 && t.dims[0] == samples && !isOfModule() && isConstant() && at(0) == 0;
}

bool Content::isUnit() const {
  if (!known() || t.dims.size() != 1 || t.elements < 2) return false;
  double sum = 0;
  for (uint64_t i = 0; i < size(); ++i) sum += double(at(i)) * double(at(i));
  return std::fabs(sum - 1) < 1e-5;
}

bool Content::isSinusoid() const {
  if (!known() || t.dims.size() < 2 || t.dims.back() < 2 || isSigns()) return false;
  uint64_t row = uint64_t(t.dims.back()), half = row / 2;
  bool halves = row % 2 == 0, pairs = halves, start = true, zero = false, first = false, changes = false;
  auto one = [&](float s, float c) { return std::fabs(s * s + c * c - 1) < 1e-3f; };
  for (uint64_t i = 0; i < size() && (halves || pairs || start); i += row) {
    bool empty = true; // the row of a padding token
    for (uint64_t k = 0; k < row; ++k) {
      float v = at(i + k);
      empty &= v == 0;
      start &= std::fabs(v) <= 1.0001f && (i > 0 || v == 0 || v == 1);
      zero |= i == 0 && v == 0;
      first |= i == 0 && v == 1;
      changes |= v != at(k);
    }
    for (uint64_t k = 0; k < half && !empty; ++k) {
      halves &= one(at(i + k), at(i + half + k));
      pairs &= one(at(i + 2 * k), at(i + 2 * k + 1));
    }
  }
  return changes && (halves || pairs || (start && zero && first));
}

bool Content::maybeRotary() const {
  if (rank() < 2 || !known() || isConstant()) return rank() > 1 && !known();
  float scale = 0; // of cosines
  for (uint64_t i = 0; i < size(); ++i) {
    float v = at(i);
    if (!(std::fabs(v) <= 1.5f)) return false;
    if (i >= uint64_t(t.dims.back()) || v == 0) continue;
    if (scale && v != scale) return false;
    scale = v;
  }
  return true;
}

bool Content::equals(const Content &other, bool transposed) const {
  if (!known() || !other.known() || t.type != other.t.type || raw.size() != other.raw.size()) return false;
  if (!transposed) return t.dims == other.t.dims && std::memcmp(raw.data(), other.raw.data(), raw.size()) == 0;
  if (t.dims.size() != 2 || other.t.dims.size() != 2 || t.dims[0] != other.t.dims[1] || t.dims[1] != other.t.dims[0]) return false;
  uint64_t rows = uint64_t(t.dims[0]), columns = uint64_t(t.dims[1]);
  auto same = [&](uint64_t r, uint64_t c) {
    return std::memcmp(raw.data() + (r * columns + c) * width, other.raw.data() + (c * rows + r) * width, width) == 0;
  };
  for (uint64_t i = 0; i < 16; ++i) // most pairs differ here already, so big models are not read through
    if (!same(i * 7919 % rows, i * 104729 % columns)) return false;
  for (uint64_t r = 0; r < rows; ++r)
    for (uint64_t c = 0; c < columns; ++c)
      if (!same(r, c)) return false;
  return true;
}

} // namespace zero::onnx
