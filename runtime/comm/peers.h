// Who the other ranks are, so that a rank that waits can say for whom, and whether that process still lives.
#pragma once
#include "runtime/comm/neighbours.h"
#include <bitset>
#include <cstdint>
#include <string>
#include <vector>

namespace zero::runtime {

struct Peer {
  char host[64] = {};
  char machine[40] = {}; // the same text for all that runs on one started system, its containers included; empty if it does not say
  int64_t process = 0;
  uint64_t processSpace = 0;      // process numbers of two ranks can be compared on one machine and if the spaces are equal
  std::bitset<1024> processors{}; // of the machine that it may run on, as launchers bind it; none: not known, or there are more
};

enum class PeerState { Unknown, Runs, Stopped, Ended };

class Peers {
public:
  static Peer self();
  Peers(std::vector<Peer> all, int self) : all(std::move(all)), own(self) {}

  std::string name(int rank) const; // "rank 3 (process 4711 on node7)"
  Neighbours neighbours() const;
  PeerState state(int rank) const; // Unknown for one on another machine

private:
  bool isHere(int rank) const;
  double processors() const;

  std::vector<Peer> all;
  int own;
};

} // namespace zero::runtime
