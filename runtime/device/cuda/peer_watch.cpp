#include "runtime/device/cuda/peer_watch.h"
#include "runtime/plan/error.h"

namespace zero::runtime::cuda {

PeerWatch::PeerWatch(const Peers *peers, int self, int world, const PeerWatchLimits &limits)
    : peers(peers), self(self), world(world), limits(limits), stopped(static_cast<size_t>(world)) {
  if (peers) patience.emplace(*peers, self, limits.patience);
}

void PeerWatch::look(Patience::Clock::time_point begin) {
  if (patience) patience->wait(begin, Patience::Clock::now(), "a collective of their GPUs", [&] { return suspects(begin); });
}

// Those that cannot take part as they are. A step may take long where all are well, so all others are suspects at the very last only.
Awaited PeerWatch::suspects(Patience::Clock::time_point begin) {
  Awaited found;
  for (int rank = 0; rank < world; ++rank) {
    if (rank == self) continue;
    PeerState state = peers->state(rank);
    int &looks = stopped[static_cast<size_t>(rank)];
    looks = state == PeerState::Stopped ? looks + 1 : 0;
    if (looks >= limits.stoppedLooks)
      throw Error(peers->name(rank) + " is stopped, and the GPU of rank " + std::to_string(self) + " has waited for its GPU for " +
                  std::to_string(looks) + " s; continue all ranks of a run within that time, or none");
    if (state == PeerState::Stopped || state == PeerState::Ended) found.ranks.insert(rank);
  }
  auto limit = limits.patience.giveUp;
  if (found.ranks.empty() && limit.count() > 0 && Patience::Clock::now() - begin >= limit)
    for (int rank = 0; rank < world; ++rank)
      if (rank != self) found.ranks.insert(rank);
  return found;
}

bool PeerWatch::missesAnyone() const {
  for (int rank = 0; peers && rank < world; ++rank)
    if (PeerState state = rank == self ? PeerState::Runs : peers->state(rank); state == PeerState::Ended || state == PeerState::Stopped)
      return true;
  return false;
}

} // namespace zero::runtime::cuda
