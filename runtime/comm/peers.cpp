#include "runtime/comm/peers.h"
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

namespace zero::runtime {

Peer Peers::self() {
  Peer peer;
  ::gethostname(peer.host, sizeof(peer.host) - 1);
  peer.process = ::getpid();
  struct stat space {};
  if (::stat("/proc/self/ns/pid", &space) == 0) peer.processSpace = space.st_ino;
  return peer;
}

std::string Peers::name(int rank) const {
  const Peer &peer = all[static_cast<size_t>(rank)];
  return fmt::format("rank {} (process {} on {})", rank, peer.process, peer.host);
}

int Peers::here() const {
  const char *host = all[static_cast<size_t>(own)].host;
  return static_cast<int>(std::count_if(all.begin(), all.end(), [&](const Peer &peer) { return std::strcmp(peer.host, host) == 0; }));
}

PeerState Peers::state(int rank) const {
  const Peer &peer = all[static_cast<size_t>(rank)], &me = all[static_cast<size_t>(own)];
  if (std::strcmp(peer.host, me.host) != 0 || peer.processSpace == 0 || peer.processSpace != me.processSpace) return PeerState::Unknown;
  if (::kill(static_cast<pid_t>(peer.process), 0) != 0 && errno == ESRCH) return PeerState::Ended;
  // "4711 (zerorun) T …": the name may hold anything, the state is the letter behind its last parenthesis.
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
