// Lanes by the names that people and files have for them.
#pragma once
#include "runtime/plan/plan.pb.h"
#include <array>
#include <cstddef>
#include <cstdint>

namespace zero::plan {

inline constexpr std::array kLaneNames = {"compute",    "gather", "reduce",      "to_device",    "to_host",    "disk_read",
                                          "disk_write", "update", "update_read", "update_write", "update_host"};
static_assert(kLaneNames.size() == Lane_ARRAYSIZE);

/// "?" for a lane that plan.proto does not know.
inline const char *laneName(size_t lane) { return lane < kLaneNames.size() ? kLaneNames[lane] : "?"; }

} // namespace zero::plan
