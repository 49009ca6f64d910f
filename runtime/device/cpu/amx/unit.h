// The processor's unit for products of matrices (AMX): eight registers of 16 rows of 64 bytes each, and an instruction that multiplies two
// of them, 16 x 32 elements of bf16 by 32 x 16, and adds to a third, 16 x 16 sums in f32.
#pragma once

// What functions that use it are compiled for; they call only each other, so that nothing else of a program needs the unit.
#define ZERO_AMX [[gnu::target("amx-tile,amx-bf16,avx512bf16,avx512f,avx512bw,avx512vl,avx512dq")]]
#define ZERO_AMX_INLINE [[gnu::target("amx-tile,amx-bf16,avx512bf16,avx512f,avx512bw,avx512vl,avx512dq"), gnu::always_inline]] inline

namespace zero::runtime::amx {

// Whether the processor has it for bf16 and the system lets this process use it, which has to be asked for. The answer stays the same.
bool available();

// All registers as they are described above, for the thread that holds it; what they contain is dropped at the end, so that the system need
// not keep it for a thread that does something else.
class Unit {
public:
  Unit();
  ~Unit();
  Unit(const Unit &) = delete;
  Unit &operator=(const Unit &) = delete;
};

} // namespace zero::runtime::amx
