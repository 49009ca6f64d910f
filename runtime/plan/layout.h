// Where the segments of a plan file lie (container.h has the layout). Private to the container.
#pragma once
#include "runtime/plan/signature.h"
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace zero::plan {

struct SegmentBytes {
  uint32_t kind;
  std::span<const std::byte> bytes;
};

struct Layout {
  std::vector<SegmentBytes> segments;
  std::span<const std::byte> content; // all of the file but its signature
  std::optional<Signature> signature; // not looked at yet
};

// Checks the form of all of the file and every checksum. Throws a sentence that begins with `name`.
Layout readLayout(std::span<const std::byte> file, const std::string &name);

// The bytes of a file without a signature.
std::vector<std::byte> compose(std::span<const SegmentBytes> segments);

} // namespace zero::plan
