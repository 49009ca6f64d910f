// --no-decay and --lr-scale: which parameters are updated with other hyper-parameters than the rest.
#pragma once
#include "runtime/train/hyper.h"
#include <string>
#include <vector>

namespace zero::runtime {

struct HyperGroup {
  double lrScale = 1;
  bool decays = true;
  bool operator==(const HyperGroup &) const = default;
};

struct HyperGroups {
  std::vector<HyperGroup> list{HyperGroup{}}; // the first is that of parameters which no flag names
  std::vector<uint32_t> of;                   // for each of the plan's parameters, an index of the list; empty if it is always 0
  std::vector<std::string> report;            // what applies to how many, a line each
};

// Regular expressions (ECMAScript's) are searched for in the names of trained parameters and of what is tied to them; of several
// --lr-scale that name a parameter the last counts. Throws a sentence for an expression that is none, or is found nowhere.
HyperGroups resolveGroups(const plan::Plan &plan, const TrainOptions &options, const Hyper &hyper);

// The HYPER input of a group for update number `update` at the learning rate `lr` of the schedule.
std::array<float, 16> hyperInput(const Hyper &hyper, const HyperGroup &group, double lr, uint64_t update);

} // namespace zero::runtime
