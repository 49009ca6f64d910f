#include "runtime/plan/mesh.h"
#include <algorithm>
#include <numeric>

namespace zero::plan {
namespace {

uint64_t sizeOf(const Plan &plan, int axis) { return plan.axes(axis).size(); }

uint64_t coordinateOf(const Plan &plan, int axis, uint64_t rank) {
  for (int other = plan.axes_size() - 1; other > axis; --other) rank /= sizeOf(plan, other);
  return rank % sizeOf(plan, axis);
}

} // namespace

std::vector<int> axesOf(const Plan &plan, const AxisList &axes) {
  if (!axes.empty()) return {axes.begin(), axes.end()};
  std::vector<int> all(static_cast<size_t>(plan.axes_size()));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

uint64_t groupSize(const Plan &plan, const AxisList &axes) {
  if (axes.empty()) return plan.world();
  uint64_t ranks = 1;
  for (uint32_t axis : axes) ranks *= sizeOf(plan, static_cast<int>(axis));
  return ranks;
}

uint64_t placeOf(const Plan &plan, const AxisList &axes, uint64_t rank) {
  if (axes.empty()) return rank;
  uint64_t place = 0;
  for (uint32_t axis : axes) place = place * sizeOf(plan, static_cast<int>(axis)) + coordinateOf(plan, static_cast<int>(axis), rank);
  return place;
}

uint64_t offsetOf(const Plan &plan, const Ref &ref, uint64_t rank) {
  uint64_t offset = ref.offset();
  for (int axis = ref.strides_size() - 1; axis >= 0; --axis) {
    offset += rank % sizeOf(plan, axis) * ref.strides(axis);
    rank /= sizeOf(plan, axis);
  }
  return offset;
}

bool dependsOnRank(const Ref &ref) {
  return std::any_of(ref.strides().begin(), ref.strides().end(), [](uint64_t stride) { return stride != 0; });
}

std::string axesText(const Plan &plan) {
  std::string text;
  for (int i = 0; i < plan.axes_size(); ++i)
    text += std::string(i == 0                      ? ""
                        : i + 1 == plan.axes_size() ? " and "
                                                    : ", ") +
            "'" + plan.axes(i).name() + "' (" + std::to_string(sizeOf(plan, i)) + ")";
  return text;
}

} // namespace zero::plan
