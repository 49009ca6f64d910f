// Numbers too small to have all their digits. An optimizer's moments become such where a row of a table, or an expert, has no gradient any
// more: each step makes them smaller, and they never become 0. A processor computes with them many times slower (AdamW of such rows took 5
// to 9 times as long, on an Intel Xeon).
#pragma once
#ifdef __SSE__
#include <xmmintrin.h>
#endif

namespace zero::runtime {

// From now on results of this thread, and of threads that it starts, that would be subnormal are 0. What is read keeps its value: numbers
// of 16 bits are widened through such. Other processors than x86 go on as they are.
inline void flushSubnormals() {
#ifdef __SSE__
  _mm_setcsr(_mm_getcsr() | _MM_FLUSH_ZERO_ON);
#endif
}

} // namespace zero::runtime
