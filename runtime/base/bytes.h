// Numbers of bytes in sentences.
#pragma once
#include <cstdint>
#include <fmt/format.h>
#include <string>

namespace zero::runtime {

inline std::string inMiB(uint64_t bytes) { return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20)); }

} // namespace zero::runtime
