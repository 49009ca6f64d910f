// What a run was given, as texts under the names that a user knows: for ranks to compare, and for a checkpoint to remember.
#pragma once
#include "runtime/train/hyper.h"
#include <string>
#include <utility>
#include <vector>

namespace zero::runtime {

// Name and value, as in "--lr" and "0.001". An empty value: not given.
using Settings = std::vector<std::pair<std::string, std::string>>;

// Every flag that ranks must be given alike, in an order of its own. A path stands for itself with its last name if several ranks
// write one file, and otherwise only with whether it was given: machines may call the same file by other names.
Settings flagSettings(const TrainOptions &options);

// What decides how parameters are updated, defaults included.
Settings hyperSettings(const plan::Plan &plan, const TrainOptions &options, const Hyper &hyper);

// How many checkpoints stay where no flag says it: as many as those settings say, so that a resumed run removes none that were meant to
// stay, and else two.
uint64_t keptBy(const Settings &settings);

// "--lr is 0.002, where the checkpoint's run had 0.001" for each setting that both have with other values.
std::vector<std::string> changes(const Settings &before, const Settings &now);

} // namespace zero::runtime
