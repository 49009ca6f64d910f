// What ranks decide together, so that none waits for one that has given up.
#pragma once
#include "runtime/comm/communicator.h"
#include "runtime/train/settings.h"
#include <functional>
#include <stdexcept>

namespace zero::runtime {

// All ranks have agreed to stop, and another one reports why.
class ReportedElsewhere : public std::exception {};

// All ranks have agreed to stop, and this one reports why.
class CollectiveError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

// Collective. Runs `work`, which must not communicate, on every rank. If it throws anywhere, the first rank on which it did throws
// CollectiveError with that sentence, and all others throw ReportedElsewhere.
void collectively(Communicator &communicator, const std::function<void()> &work);

// Collective. If a setting has another value on one rank than on another, rank 0 throws CollectiveError with a sentence that names the
// setting and the ranks with their values, and all others throw ReportedElsewhere.
void requireSame(Communicator &communicator, const Settings &mine);

// The largest of the ranks' values.
uint8_t largest(Communicator &communicator, uint8_t mine);

} // namespace zero::runtime
