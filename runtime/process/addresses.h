// Limits on what this process may map: on addresses (`ulimit -v`), whether anything lies there or not, and on what can be written of them
// (`ulimit -d`).
#pragma once
#include <cstdint>
#include <exception>
#include <string>

namespace zero::runtime {

// How much more this process may map.
struct AvailableAddresses {
  uint64_t bytes;
  const char *flag; // of ulimit, the narrower one; null: there is no limit
  uint64_t limit;   // of what it has and these
};
AvailableAddresses availableAddresses();

// Before any thread is started. Where what is mapped is limited threads get smaller stacks (stacks.h), since whole ones count though little
// of them is used, and share one heap: of their own each would reserve 64 MiB.
void spareAddresses();

// Throws a sentence if `what` may not map so much.
void requireAddresses(const std::string &what, uint64_t bytes);

// What the exception says, to people: of one for want of memory also what limits it.
std::string sentenceOf(const std::exception &error);

} // namespace zero::runtime
