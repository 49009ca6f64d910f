// What ranks do together, so that none waits for one that has given up.
#pragma once
#include "runtime/comm/communicator.h"
#include <functional>
#include <vector>

namespace zero::runtime {

// All ranks have agreed to stop, and another one reports why.
class ReportedElsewhere : public std::exception {};

// All ranks have agreed to stop, and this one reports why.
class CollectiveError : public Error {
public:
  using Error::Error;
};

// Collective. Runs `work`, which must not communicate, on every rank. If it throws anywhere, the first rank on which it did throws
// CollectiveError with that sentence, and all others throw ReportedElsewhere.
void collectively(Communicator &communicator, const std::function<void()> &work);

// Collective: the byte of each rank.
std::vector<uint8_t> everyones(Communicator &communicator, uint8_t mine);

} // namespace zero::runtime
