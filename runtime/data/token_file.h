// A stream of tokens cut into samples: .txt (bytes), .bin (uint16), .u32.bin (uint32). Labels are the tokens one
// position later.
#pragma once
#include "runtime/data/dataset.h"

namespace zero::runtime {

std::unique_ptr<Dataset> openTokenFile(const plan::Plan &plan, const std::string &path);

} // namespace zero::runtime
