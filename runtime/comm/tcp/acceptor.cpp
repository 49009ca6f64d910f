#include "runtime/comm/tcp/acceptor.h"
#include "runtime/plan/error.h"
#include <cerrno>
#include <fmt/format.h>
#include <poll.h>

namespace zero::runtime {
namespace {

constexpr size_t kMaxWaiting = 1024; // more than any start has at a time; beyond it the oldest one goes
constexpr int kMaxComplaints = 10;

} // namespace

std::optional<Arrival> Acceptor::next(Deadline until) {
  for (;;) {
    std::vector<pollfd> entries{{listener.fd(), POLLIN, 0}};
    for (const Arrival &arrival : waiting) entries.push_back({arrival.socket.fd(), POLLIN, 0});
    for (const Watched &each : watched) entries.push_back({each.socket->fd(), POLLIN, 0});
    int found = ::poll(entries.data(), entries.size(), millisecondsUntil(until));
    if (found < 0 && errno == EINTR) continue;
    if (found <= 0) return std::nullopt;
    for (size_t i = 0; i < watched.size(); ++i)
      if (entries[1 + waiting.size() + i].revents) failed(watched[i]);
    for (size_t i = waiting.size(); i-- > 0;) {
      if (!entries[1 + i].revents) continue;
      FrameReader::State state = waiting[i].reader.read(waiting[i].socket);
      if (state == FrameReader::State::Incomplete) continue;
      Arrival arrival = std::move(waiting[i]);
      waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(i));
      arrival.otherVersion = state == FrameReader::State::OtherVersion;
      if (state == FrameReader::State::Whole || arrival.otherVersion) return arrival;
      if (state == FrameReader::State::Stranger) sendOff(arrival.socket, arrival.reader.problem());
    }
    if (entries[0].revents) takeNew();
  }
}

void Acceptor::takeNew() {
  errno = 0;
  Socket socket = acceptFrom(listener);
  if (!socket && (errno == EMFILE || errno == ENFILE))
    throw Error("this process may not open as many files and connections as the run needs; raise the limit with ulimit -n");
  if (!socket) return;
  if (waiting.size() == kMaxWaiting) waiting.erase(waiting.begin());
  waiting.push_back({std::move(socket), FrameReader(maxBytes), false});
}

void Acceptor::sendOff(const Socket &socket, const std::string &problem) {
  if (++complaints > kMaxComplaints) return;
  fmt::print(stderr, "zerorun: sent off a process at {} that {}{}\n", peerAddress(socket).text(), problem,
             complaints == kMaxComplaints ? "; further ones are sent off without a word" : "");
}

void Acceptor::failed(const Watched &from) {
  FrameReader reader(kMaxSentence);
  if (await(*from.socket, reader, Deadline::clock::now()) == FrameReader::State::Whole && reader.kind() == Kind::Refusal)
    throw Error(printable(reader.body()));
  throw Error(fmt::format("{} ended before all ranks had found each other", from.name));
}

} // namespace zero::runtime
