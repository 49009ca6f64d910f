#include "runtime/comm/peers.h"
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <sched.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

namespace zero::runtime {

Peer Peers::self() {
  Peer peer;
  ::gethostname(peer.host, sizeof(peer.host) - 1);
  std::ifstream("/proc/sys/kernel/random/boot_id").get(peer.machine, sizeof peer.machine); // 36 letters
  peer.process = ::getpid();
  struct stat space {};
  if (::stat("/proc/self/ns/pid", &space) == 0) peer.processSpace = space.st_ino;
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) == 0)
    for (size_t i = 0; i < peer.processors.size(); ++i) peer.processors[i] = CPU_ISSET(i, &allowed);
  return peer;
}

std::string Peers::name(int rank) const {
  const Peer &peer = all[static_cast<size_t>(rank)];
  return fmt::format("rank {} (process {} on {})", rank, peer.process, peer.host);
}

// Names say little: clusters have machines that are all called localhost, and a machine has containers with names of their own.
bool Peers::isHere(int rank) const {
  const Peer &peer = all[static_cast<size_t>(rank)], &me = all[static_cast<size_t>(own)];
  if (peer.machine[0] && me.machine[0]) return std::strcmp(peer.machine, me.machine) == 0;
  return std::strcmp(peer.host, me.host) == 0;
}

Neighbours Peers::neighbours() const {
  Neighbours found{0, 0, 0, processors()};
  for (int rank = 0; rank < static_cast<int>(all.size()); ++rank) {
    if (!isHere(rank)) continue;
    ++found.all;
    found.before += rank < own;
    // Containers have process numbers of their own. Other groups may lie within one that has the limit.
    found.container += all[static_cast<size_t>(rank)].processSpace == all[static_cast<size_t>(own)].processSpace;
  }
  return found;
}

double Peers::processors() const {
  double mine = 0;
  for (size_t i = 0; i < Peer().processors.size(); ++i) {
    int sharers = 0;
    for (int rank = 0; rank < static_cast<int>(all.size()); ++rank) sharers += isHere(rank) && all[static_cast<size_t>(rank)].processors[i];
    if (all[static_cast<size_t>(own)].processors[i]) mine += 1.0 / sharers;
  }
  return mine;
}

PeerState Peers::state(int rank) const {
  const Peer &peer = all[static_cast<size_t>(rank)], &me = all[static_cast<size_t>(own)];
  if (!isHere(rank) || peer.processSpace == 0 || peer.processSpace != me.processSpace) return PeerState::Unknown;
  if (::kill(static_cast<pid_t>(peer.process), 0) != 0 && errno == ESRCH) return PeerState::Ended;
  // "4711 (zerorun) T …": the name may hold anything, the state is the letter after its last parenthesis.
  std::ifstream file(fmt::format("/proc/{}/stat", peer.process));
  std::string text;
  std::getline(file, text);
  size_t close = text.rfind(") ");
  char letter = close == std::string::npos || close + 2 >= text.size() ? '?' : text[close + 2];
  if (letter == 'Z' || letter == 'X') return PeerState::Ended;
  if (letter == 'T' || letter == 't') return PeerState::Stopped;
  return letter == '?' ? PeerState::Unknown : PeerState::Runs;
}

} // namespace zero::runtime
