#include "runtime/device/cuda/peer_watch.h"

namespace zero::runtime::cuda {

PeerWatch::PeerWatch(const Peers *peers, int self, int world, const PatienceLimits &limits)
    : peers(peers), self(self), world(world), limits(limits) {
  if (peers) patience.emplace(*peers, self, limits);
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
    if (state == PeerState::Stopped || state == PeerState::Ended) found.ranks.insert(rank);
  }
  if (found.ranks.empty() && limits.giveUp.count() > 0 && Patience::Clock::now() - begin >= limits.giveUp)
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
