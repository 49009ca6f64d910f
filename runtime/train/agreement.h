// What ranks decide together, so that none waits for one that has given up.
#pragma once
#include "runtime/comm/communicator.h"
#include "runtime/train/settings.h"
#include <functional>
#include <stdexcept>

namespace zero::runtime {

// Thrown on ranks that have nothing to say: another one prints the sentence. All ranks have agreed to stop.
class Stopped : public std::exception {};

// Thrown on the rank that speaks for all that stopped together.
class StoppedWith : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

// Runs `work`, which must not communicate, on every rank. If it throws anywhere, the first rank on which it did throws
// StoppedWith that sentence and all others Stopped.
void together(Communicator &communicator, const std::function<void()> &work);

// Collective. If a setting has another value on one rank than on another, rank 0 throws StoppedWith a sentence that names the setting
// and the ranks with their values, and all others throw Stopped.
void requireSame(Communicator &communicator, const Settings &mine);

// The largest of the ranks' values.
uint8_t largest(Communicator &communicator, uint8_t mine);

} // namespace zero::runtime
