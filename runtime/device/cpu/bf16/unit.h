// What a processor has for products of bf16 with sums in f32: a unit for products of matrices (AMX), which has eight registers of 16 rows
// of 64 bytes each, and an instruction that multiplies two of them, 16 x 32 elements by 32 x 16, and adds to a third, 16 x 16 sums; or
// instructions on vectors (AVX-512 BF16), which multiply pairs of elements and add to 16 sums.
#pragma once
#include <cstdint>

// What functions that use them are compiled for; they call only each other, so that nothing else of a program needs the instructions.
#define ZERO_BF16 [[gnu::target("avx512bf16,avx512f,avx512bw,avx512vl,avx512dq")]]
#define ZERO_BF16_INLINE [[gnu::target("avx512bf16,avx512f,avx512bw,avx512vl,avx512dq"), gnu::always_inline]] inline
#define ZERO_AMX [[gnu::target("amx-tile,amx-bf16,avx512bf16,avx512f,avx512bw,avx512vl,avx512dq")]]

namespace zero::runtime::bf16 {

enum class Unit : uint8_t { Matrices, Vectors };

// Whether the processor has it and the system lets this process use it, which has to be asked for. The answer stays the same.
bool has(Unit unit);
// Whether it has vectors that multiply bf16 at half the rate of f32, as Intel's processors with AMX have (measured on two cores of Emerald
// Rapids, whose AMX a virtual machine may hide: 0.16 TFLOP/s in bf16, 0.3 in f32).
bool hasSlowVectors();

// All registers of the matrix unit as they are described above, for the thread that holds it; what they contain is dropped at the end, so
// that the system need not keep it for a thread that does something else. Of vectors nothing needs to be held.
class Held {
public:
  explicit Held(Unit unit);
  ~Held();
  Held(const Held &) = delete;
  Held &operator=(const Held &) = delete;

private:
  Unit unit;
};

} // namespace zero::runtime::bf16
