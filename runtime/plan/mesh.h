// Ranks as coordinates: row-major over the plan's axes, the last of which changes fastest.
#pragma once
#include "runtime/plan/plan.pb.h"
#include <cstdint>
#include <string>
#include <vector>

namespace zero::plan {

// Axes as a bucket or a collective lists them; none listed: all.
using AxisList = google::protobuf::RepeatedField<uint32_t>;
std::vector<int> axesOf(const Plan &plan, const AxisList &axes);

// Ranks that differ along these axes alone.
uint64_t groupSize(const Plan &plan, const AxisList &axes);
// The place of a rank among them: which shard of a bucket it owns.
uint64_t placeOf(const Plan &plan, const AxisList &axes, uint64_t rank);

// Where the bytes of a Ref begin in its buffer on a rank; and whether that differs between ranks.
uint64_t offsetOf(const Plan &plan, const Ref &ref, uint64_t rank);
bool dependsOnRank(const Ref &ref);

// "'data' (4) and 'tensor' (2)".
std::string axesText(const Plan &plan);

} // namespace zero::plan
