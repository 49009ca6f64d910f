// What a rank does while a message does not come: it says for whom it waits, and gives up if that process has ended or if nothing
// has moved for too long. MPI itself does none of it: a rank whose peer was stopped or killed behind the launcher's back would
// wait in silence, and for ever.
#pragma once
#include "runtime/comm/communicator.h"
#include "runtime/comm/peers.h"
#include <chrono>
#include <functional>
#include <map>
#include <set>

namespace zero::runtime {

struct PatienceLimits {
  std::chrono::milliseconds look{1000};   // between two looks at the ranks waited for
  std::chrono::milliseconds speak{30000}; // until the first sentence; the next ones after 2, 4, 8, … times as long
  std::chrono::milliseconds giveUp{0};    // without progress, until TimedOut is thrown; 0: never
  // Looks in a row that find a rank stopped: then it is given up; 0: never. Looks and not a time, since those who look may have been
  // stopped with it: then one of them is continued first.
  int stopped = 0;
};

// What a collective still waits for.
struct Awaited {
  std::set<int> ranks;
  uint64_t left = 0; // bytes or messages: another number than before is progress
};

// Of all waits that begin afterwards, those of communicators that are there included.
void setPatience(const PatienceLimits &limits);
const PatienceLimits &usualPatience();

class Patience {
public:
  using Clock = std::chrono::steady_clock;
  // Finds what is still missing; called only when the wait has become long.
  using Missing = std::function<Awaited()>;

  // `limits` outlive it, and may change meanwhile.
  Patience(const Peers &peers, int self, const PatienceLimits &limits = usualPatience()) : peers(peers), self(self), limits(limits) {}
  Patience(const Peers &, int, PatienceLimits &&) = delete;

  // From the waiting loop of one collective that began at `begin`. Throws if a rank waited for has ended or is stopped for too long, and
  // TimedOut.
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
  void giveUpStopped(const Awaited &awaited, const char *what);
  void sayDone(Clock::time_point begin, const char *what);

  const Peers &peers;
  int self;
  const PatienceLimits &limits;
  Clock::time_point nextLook{}, nextSentence{}, progressed{};
  uint64_t left = 0;               // at the last look
  int endedLooks = 0;              // looks in a row that found a rank ended
  std::map<int, int> stoppedLooks; // of each rank, looks in a row that found it stopped
  int spoken = 0;                  // sentences about the wait under way
};

} // namespace zero::runtime
