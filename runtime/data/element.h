// Element types of files, and their conversion into the types a plan's inputs and parameters have.
#pragma once
#include "runtime/plan/plan.pb.h"
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

namespace zero::runtime {

// What data files may hold; plans know fewer types (plan::DType).
enum class Element { F64, F32, F16, BF16, I64, I32, I16, I8, U64, U32, U16, U8, BOOL };

uint64_t sizeOf(Element);
const char *nameOf(Element); // as safetensors spells it
bool isFloat(Element);
Element elementOf(plan::DType); // throws on DTYPE_UNSPECIFIED
uint64_t sizeOf(plan::DType);

// Why values of `from` cannot become `to`, as the end of a sentence; empty if they can.
std::string refusal(Element from, plan::DType to);

// Converts `count` elements. Integers out of the target's range throw zero::Error with their position.
void convert(Element from, const std::byte *src, plan::DType to, std::byte *dst, uint64_t count);

// Reads element `index` of integer (or BOOL) data; U64 beyond int64 saturates.
int64_t integerAt(Element, const std::byte *data, uint64_t index);

float halfToFloat(uint16_t);
uint16_t floatToHalf(float); // round to nearest even
inline float bfloatToFloat(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
uint16_t floatToBfloat(float);
// The same of many, which need not be aligned.
void floatsToBfloats(const std::byte *from, std::byte *to, uint64_t count);
void bfloatsToFloats(const std::byte *from, std::byte *to, uint64_t count);

} // namespace zero::runtime
