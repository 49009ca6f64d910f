// Connections of every rank with every other one, as often as a communicator is made: each rank calls those below it and is called
// by those above it.
#pragma once
#include "runtime/comm/patience.h"
#include "runtime/comm/tcp/acceptor.h"
#include "runtime/comm/tcp/rendezvous.h"
#include <vector>

namespace zero::runtime {

class Meshes {
public:
  // `peers` and `meeting` stay where they are.
  Meshes(Meeting &meeting, const Peers &peers, int self);

  // Collective, in the same order everywhere: one connection to each rank, none to itself. While the first mesh is made, the
  // lines of the meeting say if a rank ends; later that is the watch's matter (watch.h).
  std::vector<Socket> connect();

  // No mesh will be made any more: stops listening.
  void close();

private:
  Socket call(int peer, uint32_t mesh);
  void requireRun(int peer) const;
  bool awaitAnswer(const Socket &socket, int peer, Patience::Clock::time_point begin);
  void answer(Arrival arrival, uint32_t mesh, std::vector<Socket> &links);

  struct Early {
    uint32_t mesh, rank;
    Socket socket;
  };

  Meeting &meeting;
  const Peers &peers;
  int self;
  Acceptor acceptor;
  Patience patience;
  uint32_t made = 0;
  std::vector<Early> early; // of ranks that are already at the next mesh
};

} // namespace zero::runtime
