// What a rank does while a message does not come: it says for whom it waits, and gives up if that process has ended or if nothing
// has moved for too long. MPI itself does none of it: a rank whose peer was stopped or killed behind the launcher's back would
// wait in silence, and for ever.
#pragma once
#include "runtime/comm/communicator.h"
#include "runtime/comm/peers.h"
#include <chrono>
#include <functional>
#include <set>

namespace zero::runtime {

struct PatienceLimits {
  std::chrono::milliseconds look{1000};   // between two looks at the ranks waited for
  std::chrono::milliseconds speak{30000}; // until the first sentence; the next ones after 2, 4, 8, … times as long
  std::chrono::milliseconds giveUp{0};    // without progress, until TimedOut is thrown; 0: never
};

// What a collective still waits for.
struct Awaited {
  std::set<int> ranks;
  uint64_t left = 0; // bytes or messages: another number than before is progress
};

// For communicators made afterwards.
void setPatience(const PatienceLimits &limits);
const PatienceLimits &usualPatience();

class Patience {
public:
  using Clock = std::chrono::steady_clock;
  // Finds what is still missing; called only when the wait has become long.
  using Missing = std::function<Awaited()>;

  Patience(const Peers &peers, int self, const PatienceLimits &limits) : peers(peers), self(self), limits(limits) {}
  Patience(const Peers &peers, int self); // of the usual limits

  // From the waiting loop of one collective that began at `begin`. Throws if a rank waited for has ended, and TimedOut.
  void wait(Clock::time_point begin, Clock::time_point now, const char *what, const Missing &missing) {
    if (now - begin >= limits.look && now >= nextLook) look(begin, now, what, missing);
  }
  std::chrono::milliseconds interval() const { return limits.look; }
  // The collective is complete.
  void done(Clock::time_point begin, const char *what) {
    if (spoken) sayDone(begin, what);
  }

private:
  void look(Clock::time_point begin, Clock::time_point now, const char *what, const Missing &missing);
  void sayDone(Clock::time_point begin, const char *what);

  const Peers &peers;
  int self;
  PatienceLimits limits;
  Clock::time_point nextLook{}, nextSentence{}, progressed{};
  uint64_t left = 0;  // at the last look
  int endedLooks = 0; // looks in a row that found a rank ended
  int spoken = 0;     // sentences about the wait under way
};

} // namespace zero::runtime
