#include "runtime/data/element.h"
#include "runtime/base/error.h"
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <limits>

namespace zero::runtime {

uint64_t sizeOf(Element e) {
  switch (e) {
  case Element::F64:
  case Element::I64:
  case Element::U64:
    return 8;
  case Element::F32:
  case Element::I32:
  case Element::U32:
    return 4;
  case Element::F16:
  case Element::BF16:
  case Element::I16:
  case Element::U16:
    return 2;
  case Element::I8:
  case Element::U8:
  case Element::BOOL:
    return 1;
  }
  return 0;
}

const char *nameOf(Element e) {
  static constexpr const char *names[] = {"F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8", "BOOL"};
  return names[static_cast<size_t>(e)];
}

bool isFloat(Element e) { return e == Element::F64 || e == Element::F32 || e == Element::F16 || e == Element::BF16; }

Element elementOf(plan::DType type) {
  switch (type) {
  case plan::F32:
    return Element::F32;
  case plan::BF16:
    return Element::BF16;
  case plan::F16:
    return Element::F16;
  case plan::I64:
    return Element::I64;
  case plan::I32:
    return Element::I32;
  case plan::BOOL:
    return Element::BOOL;
  default:
    throw Error(fmt::format("the plan names element type {}, which this build does not know", static_cast<int>(type)));
  }
}

uint64_t sizeOf(plan::DType type) { return sizeOf(elementOf(type)); }

std::string refusal(Element from, plan::DType to) {
  bool target = isFloat(elementOf(to));
  if (isFloat(from) && !target) return fmt::format("{} values would lose their fraction as {}", nameOf(from), nameOf(elementOf(to)));
  return {};
}

// IEEE half to single: subnormals are scaled, infinities and NaN keep their payload.
float halfToFloat(uint16_t h) {
  uint32_t sign = static_cast<uint32_t>(h & 0x8000) << 16, exponent = (h >> 10) & 31, mantissa = h & 1023;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000 | mantissa << 13);
  if (exponent == 0) {
    float value = std::ldexp(static_cast<float>(mantissa), -24);
    return sign ? -value : value;
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
}

uint16_t floatToHalf(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
  if (rest > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00);  // NaN
  if (rest >= 0x477ff000) return static_cast<uint16_t>(sign | 0x7c00); // rounds beyond 65504
  if (rest < 0x38800000) {                                             // subnormal or zero: units of 2^-24
    float units = std::nearbyint(std::ldexp(std::bit_cast<float>(rest), 24));
    return static_cast<uint16_t>(sign | static_cast<uint32_t>(units));
  }
  uint32_t rounded = rest + 0xfff + (rest >> 13 & 1);
  return static_cast<uint16_t>(sign | (rounded - 0x38000000) >> 13);
}

namespace {

template <class T> T load(const std::byte *data, uint64_t index) {
  T value; // files need not be aligned
  std::memcpy(&value, data + index * sizeof(T), sizeof(T));
  return value;
}

double floatAt(Element e, const std::byte *data, uint64_t i) {
  switch (e) {
  case Element::F64:
    return load<double>(data, i);
  case Element::F32:
    return load<float>(data, i);
  case Element::F16:
    return halfToFloat(load<uint16_t>(data, i));
  case Element::BF16:
    return bfloatToFloat(load<uint16_t>(data, i));
  case Element::U64:
    return static_cast<double>(load<uint64_t>(data, i));
  default:
    return static_cast<double>(integerAt(e, data, i));
  }
}

int64_t integerWithin(Element from, const std::byte *src, uint64_t i, int64_t low, int64_t high) {
  int64_t value = integerAt(from, src, i);
  if (value < low || value > high || (from == Element::U64 && load<uint64_t>(src, i) > static_cast<uint64_t>(high)))
    throw Error(fmt::format("element {} is {}, beyond [{}, {}]", i,
                            from == Element::U64 ? fmt::to_string(load<uint64_t>(src, i)) : fmt::to_string(value), low, high));
  return value;
}

template <class T, class F> void each(std::byte *dst, uint64_t count, F value) {
  for (uint64_t i = 0; i < count; ++i) {
    T v = value(i);
    std::memcpy(dst + i * sizeof(T), &v, sizeof(T));
  }
}

} // namespace

int64_t integerAt(Element e, const std::byte *data, uint64_t i) {
  switch (e) {
  case Element::I64:
    return load<int64_t>(data, i);
  case Element::I32:
    return load<int32_t>(data, i);
  case Element::I16:
    return load<int16_t>(data, i);
  case Element::I8:
    return load<int8_t>(data, i);
  case Element::U64: {
    uint64_t value = load<uint64_t>(data, i);
    return value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) ? std::numeric_limits<int64_t>::max()
                                                                              : static_cast<int64_t>(value);
  }
  case Element::U32:
    return load<uint32_t>(data, i);
  case Element::U16:
    return load<uint16_t>(data, i);
  case Element::U8:
    return load<uint8_t>(data, i);
  case Element::BOOL:
    return load<uint8_t>(data, i) != 0;
  default:
    throw Error(fmt::format("{} values are not integers", nameOf(e)));
  }
}

void convert(Element from, const std::byte *src, plan::DType to, std::byte *dst, uint64_t count) {
  if (std::string why = refusal(from, to); !why.empty()) throw Error(why);
  // BOOL is normalised to 0 and 1 even from BOOL: kernels rely on it.
  if (from == elementOf(to) && to != plan::BOOL) {
    if (count) std::memcpy(dst, src, count * sizeOf(from));
    return;
  }
  switch (to) {
  case plan::F32:
    if (from == Element::F16) return each<float>(dst, count, [&](uint64_t i) { return halfToFloat(load<uint16_t>(src, i)); });
    if (from == Element::BF16) return bfloatsToFloats(src, dst, count);
    return each<float>(dst, count, [&](uint64_t i) { return static_cast<float>(floatAt(from, src, i)); });
  case plan::F16:
    return each<uint16_t>(dst, count, [&](uint64_t i) { return floatToHalf(static_cast<float>(floatAt(from, src, i))); });
  case plan::BF16:
    if (from == Element::F32) return floatsToBfloats(src, dst, count);
    return each<uint16_t>(dst, count, [&](uint64_t i) { return floatToBfloat(static_cast<float>(floatAt(from, src, i))); });
  case plan::I64:
    return each<int64_t>(dst, count, [&](uint64_t i) { return integerWithin(from, src, i, INT64_MIN, INT64_MAX); });
  case plan::I32:
    return each<int32_t>(dst, count, [&](uint64_t i) { return static_cast<int32_t>(integerWithin(from, src, i, INT32_MIN, INT32_MAX)); });
  case plan::BOOL:
    return each<uint8_t>(dst, count, [&](uint64_t i) { return static_cast<uint8_t>(integerAt(from, src, i) != 0); });
  default:
    throw Error("the plan names an element type this build does not know");
  }
}

} // namespace zero::runtime
