// Damages a protobuf message and keeps its framing whole: every length stays right, so that the damage reaches the code
// after the parser. Bytes changed blindly almost always end at the first length that no longer fits.
#pragma once
#include <cstddef>
#include <cstdint>

namespace zero::fuzz {

// Changes `data` (`size` bytes, room for `most`) in place and returns its new size. One change in four is blind. The same
// seed makes the same change.
size_t mutateMessage(uint8_t *data, size_t size, size_t most, unsigned seed);

} // namespace zero::fuzz
