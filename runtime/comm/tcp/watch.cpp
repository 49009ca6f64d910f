#include "runtime/comm/tcp/watch.h"
#include "runtime/comm/patience.h"
#include "runtime/files/lock_file.h"
#include "runtime/process/start_thread.h"
#include "runtime/process/streams.h"
#include <cerrno>
#include <cstdint>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>
#include <utility>

namespace zero::runtime {
namespace {

// What a rank says of its end: that it ends the run, that it does so because another one has ended, that it is done.
constexpr char kAbort = 'A', kLost = 'L', kGoodbye = 'B';
// Between the end of a rank and a sentence about it, for the word of one that has said more.
constexpr auto kGrace = std::chrono::milliseconds(500);

} // namespace

Watch::Watch(std::vector<Socket> connections, const Peers &peers, int self)
    : links(std::move(connections)), away(links.size()), peers(peers), self(self), wake(makeEvent()), silent(links.size()),
      present(static_cast<int>(links.size()) - 1) {
  silent[static_cast<size_t>(self)] = true;
  for (const Socket &link : links)
    if (link) watchMachine(link);
  thread = startThread("the thread that watches over the other ranks", [this] { run(); });
}

Watch::~Watch() {
  uint64_t one = 1;
  [[maybe_unused]] ssize_t ignored = ::write(wake.fd(), &one, sizeof one);
  thread.join();
}

void Watch::sayLast(const std::string &line) {
  std::lock_guard lock(speaking);
  if (!std::exchange(spoken, true)) complain(line);
}

void Watch::abort() {
  aborting = true; // those that are told end before this process does
  tell(kAbort);
}

void Watch::leave() {
  tell(kGoodbye);
  Patience patience(peers, self);
  auto missing = [&] {
    Awaited awaited;
    for (size_t rank = 0; rank < away.size(); ++rank)
      if (static_cast<int>(rank) != self && !away[rank]) awaited.ranks.insert(static_cast<int>(rank));
    awaited.left = awaited.ranks.size();
    return awaited;
  };
  for (auto begin = Clock::now(); present.load() > 0; std::this_thread::sleep_for(std::chrono::milliseconds(1)))
    patience.wait(begin, Clock::now(), "the end of the run", missing);
}

void Watch::tell(char word) {
  for (const Socket &link : links)
    if (link) ::send(link.fd(), &word, 1, MSG_NOSIGNAL);
}

void Watch::run() {
  for (;;) {
    std::vector<pollfd> entries{{wake.fd(), POLLIN, 0}};
    for (size_t peer = 0; peer < links.size(); ++peer) entries.push_back({silent[peer] ? -1 : links[peer].fd(), POLLIN, 0});
    int found = ::poll(entries.data(), entries.size(), lost < 0 ? -1 : millisecondsUntil(speakAt));
    if (found < 0) continue; // a signal
    if (entries[0].revents) return;
    for (size_t peer = 0; peer < links.size(); ++peer)
      if (entries[peer + 1].revents) listen(static_cast<int>(peer));
    if (lost >= 0 && Clock::now() >= speakAt) {
      tell(kLost);
      endRun(whyLost());
    }
  }
}

void Watch::listen(int peer) {
  char word = 0;
  ssize_t got = ::recv(links[static_cast<size_t>(peer)].fd(), &word, 1, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  // A rank that ends by the word of another one may be noticed before that word is.
  if (got == 1 && (word == kAbort || word == kLost))
    endRun(word == kAbort || lost < 0 ? peers.name(peer) + " ended the run and has said why" : whyLost());
  silent[static_cast<size_t>(peer)] = true;
  if (got == 1 && word == kGoodbye) {
    away[static_cast<size_t>(peer)] = true;
    present.fetch_sub(1);
  } else {
    ended(peer, got < 0 && errno != ECONNRESET);
  }
}

void Watch::ended(int peer, bool silently) {
  if (lost >= 0 || aborting) return;
  lost = peer;
  vanished = silently;
  speakAt = Clock::now() + kGrace;
}

std::string Watch::whyLost() const {
  return fmt::format("{} {}, so the run ends", peers.name(lost), vanished ? "cannot be reached any more" : "has ended");
}

void Watch::endRun(const std::string &why) {
  sayLast(fmt::format("zerorun: rank {}: {}", self, why));
  // Other threads are in the middle of something, and may hold the locks of the streams: nothing is flushed.
  removeLockFiles();
  ::_exit(1);
}

} // namespace zero::runtime
