#include "runtime/comm/patience.h"
#include "runtime/base/error.h"
#include "runtime/process/streams.h"
#include <fmt/format.h>

namespace zero::runtime {
namespace {

PatienceLimits usual;

std::string seconds(Patience::Clock::duration duration) { return fmt::format("{:.0f} s", std::chrono::duration<double>(duration).count()); }

// All ranks but those that are missing wait for the same ones; the first of them speaks for all.
bool speaks(int self, const std::set<int> &missing) {
  for (int rank = 0; rank < self; ++rank)
    if (!missing.contains(rank)) return false;
  return true;
}

} // namespace

void setPatience(const PatienceLimits &limits) { usual = limits; }
const PatienceLimits &usualPatience() { return usual; }

void Patience::look(Clock::time_point begin, Clock::time_point now, const char *what, const Missing &missing) {
  Awaited awaited = missing();
  if (begin + limits.look > nextLook) { // the first look of this wait
    spoken = endedLooks = 0, stoppedLooks.clear();
    progressed = begin, left = awaited.left;
  }
  if (!spoken) nextSentence = begin + limits.speak;
  nextLook = now + limits.look;
  if (awaited.left != left) progressed = now, left = awaited.left;
  if (limits.stopped > 0) giveUpStopped(awaited, what);
  if (awaited.ranks.empty()) return;
  bool first = speaks(self, awaited.ranks), ended = false;
  std::string names;
  for (int rank : awaited.ranks) {
    PeerState state = peers.state(rank);
    names += (names.empty() ? "" : ", ") + peers.name(rank);
    if (state == PeerState::Stopped) names += ", which is stopped";
    if (state != PeerState::Ended) continue;
    // Usually the launcher is about to end this rank too; ranks that do not speak leave it the time.
    if (++endedLooks > (first ? 2 : 6))
      throw Error(fmt::format("{} has ended while rank {} waited for it in {}", peers.name(rank), self, what));
    ended = true;
  }
  if (!ended) endedLooks = 0;
  if (limits.giveUp.count() > 0 && now - progressed >= limits.giveUp)
    throw TimedOut(fmt::format("rank {} has waited {} in {} for {}, and gives up; --timeout says how long a rank waits", self,
                               seconds(now - progressed), what, names));
  if (!first || now < nextSentence) return;
  complain(fmt::format("zerorun: rank {} has waited {} in {} for {}", self, seconds(now - begin), what, names));
  nextSentence = begin + limits.speak * (int64_t(2) << std::min(spoken++, 20));
}

void Patience::giveUpStopped(const Awaited &awaited, const char *what) {
  std::map<int, int> before = std::exchange(stoppedLooks, {});
  for (int rank : awaited.ranks) {
    if (peers.state(rank) != PeerState::Stopped) continue;
    if (int looks = stoppedLooks[rank] = before[rank] + 1; looks >= limits.stopped)
      throw Error(
          fmt::format("{} is stopped, and rank {} has waited {} for it in {}; continue all ranks of a run within that time, or none",
                      peers.name(rank), self, seconds(looks * limits.look), what));
  }
}

void Patience::sayDone(Clock::time_point begin, const char *what) {
  complain(fmt::format("zerorun: {} has gone on after {}", what, seconds(Clock::now() - begin)));
  spoken = 0;
}

} // namespace zero::runtime
