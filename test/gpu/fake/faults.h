// Errors on demand: ZERO_FAKE_FAIL=FUNCTION:N[:later].
#pragma once
#include <cstdint>

namespace zero::fake {

enum class Fault { None, Now, Later };

// What is to happen to this call of `function`, which is counted.
Fault faultOf(const char *function);

// A number in the environment.
uint64_t setting(const char *name, uint64_t otherwise);

} // namespace zero::fake
