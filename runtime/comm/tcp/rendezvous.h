// How processes that know their number, one address and a secret become a run: rank 0 listens there, the others join it, and when all have
// come it tells everybody who and where all are. Nothing here knows what the ranks will do together.
#pragma once
#include "runtime/comm/tcp/acceptor.h"
#include <vector>

namespace zero::runtime {

struct TcpLimits {
  std::chrono::milliseconds speak{5000};    // until the first sentence about who is missing; then after 2, 4, 8, … times as long
  std::chrono::milliseconds giveUp{300000}; // until the start is given up
};

struct Membership {
  int rank = 0, world = 1;
  std::string host; // where rank 0 listens
  uint16_t port = 29500;
  std::string portNote; // why it is this port, if it is not the one that was asked for
  std::string secret;   // what all ranks know and nobody else; may be empty
  TcpLimits limits;

  std::string place() const;
  // A socket for calls of the other ranks: at this address of the machine if the host is a loopback one, else at all of them.
  Socket listen(const Address &own) const;
};

struct Meeting {
  std::string secret; // of the links between the ranks of this run
  std::vector<Peer> peers;
  std::vector<Address> addresses; // where each rank listens, as this rank can reach it
  Socket listener;                // this rank's own
  // The connections over which they met, of rank 0 to all others, of the others to rank 0 alone. They stay open: their end
  // says that a rank has ended.
  std::vector<Line> lines;
};

std::string linkSecret(const Membership &membership, const Token &token);

// Throws a sentence if the start fails. It then fails on all ranks that have come.
Meeting meet(const Membership &membership);

} // namespace zero::runtime
