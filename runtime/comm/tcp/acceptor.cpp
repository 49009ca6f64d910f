#include "runtime/comm/tcp/acceptor.h"
#include "runtime/base/error.h"
#include "runtime/process/streams.h"
#include <algorithm>
#include <cerrno>
#include <fmt/format.h>
#include <poll.h>

namespace zero::runtime {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMostGuests = 1024; // more than any start has at a time; beyond it the oldest one goes, and calls again if it is a rank
constexpr auto kGuestTime = std::chrono::seconds(10); // for each of its two messages
constexpr int kMostAccepted = 64;                     // in one go: those that are there are served in between
constexpr int kMaxComplaints = 10;

} // namespace

bool Arrival::answer(const std::string &frame) const {
  return sendAll(socket, frame.data(), frame.size(), Clock::now() + std::chrono::seconds(1)) == Transfer::Done;
}

// Guests may take no more than a quarter of the files that this process may open.
Acceptor::Acceptor(const Socket &listener, Kind purpose, int self, std::string secret, uint32_t bytes)
    : listener(listener), purpose(purpose), self(self), secret(std::move(secret)), bytes(bytes),
      mostGuests(std::clamp<size_t>(descriptorLimit() / 4, 16, kMostGuests)) {}

std::optional<Arrival> Acceptor::next(Deadline until) {
  for (;;) {
    std::vector<pollfd> entries{{listener.fd(), POLLIN, 0}};
    for (const Guest &guest : guests) entries.push_back({guest.socket.fd(), POLLIN, 0});
    for (const Watched &each : watched) entries.push_back({each.line->socket.fd(), POLLIN, 0});
    int found = ::poll(entries.data(), entries.size(), millisecondsUntil(nextDeadline(until)));
    if (found < 0) continue; // a signal
    for (size_t i = 0; i < watched.size(); ++i)
      if (entries[1 + guests.size() + i].revents) failed(watched[i]);
    for (size_t i = guests.size(); i-- > 0;) {
      if (!entries[1 + i].revents) continue;
      Stage stage = advance(guests[i]);
      if (stage == Stage::Stays) continue;
      Guest guest = std::move(guests[i]);
      guests.erase(guests.begin() + static_cast<std::ptrdiff_t>(i));
      if (stage == Stage::Arrives) {
        std::string body = *guest.session.open(Session::From::Caller, guest.reader);
        return Arrival{std::move(guest.socket), guest.from, std::move(guest.session), guest.hello, std::move(body)};
      }
    }
    dismissLate(); // after the reading: what has come while nobody looked counts
    if (entries[0].revents) takeNew();
    if (Clock::now() >= until) return std::nullopt;
  }
}

bool Acceptor::wait(const Socket &socket, Deadline until) const {
  for (;;) {
    std::vector<pollfd> entries{{socket.fd(), POLLIN, 0}};
    for (const Watched &each : watched) entries.push_back({each.line->socket.fd(), POLLIN, 0});
    int found = ::poll(entries.data(), entries.size(), millisecondsUntil(until));
    if (found < 0) continue;             // a signal
    if (entries[0].revents) return true; // first: who ends may end the others as well
    for (size_t i = 0; i < watched.size(); ++i)
      if (entries[1 + i].revents) failed(watched[i]);
    if (Clock::now() >= until) return false;
  }
}

Acceptor::Stage Acceptor::advance(Guest &guest) {
  switch (guest.reader.read(guest.socket)) {
  case FrameReader::State::Incomplete:
    return Stage::Stays;
  case FrameReader::State::Closed:
    return Stage::Goes;
  case FrameReader::State::OtherVersion: { // it learns the version from the header of the answer
    std::string answer = frame(Kind::Denied, nullptr, 0);
    sendAll(guest.socket, answer.data(), answer.size(), Clock::now());
    return dismiss(guest, guest.reader.problem());
  }
  case FrameReader::State::Stranger:
    return dismiss(guest, guest.reader.problem());
  case FrameReader::State::Whole:
    break;
  }
  if (!guest.challenged) return challenge(guest);
  if (guest.reader.kind() == purpose && guest.session.open(Session::From::Caller, guest.reader)) return Stage::Arrives;
  std::string answer = frame(Kind::Denied, nullptr, 0);
  sendAll(guest.socket, answer.data(), answer.size(), Clock::now());
  return dismiss(guest, fmt::format("calls itself rank {} but does not know the secret of this run", guest.hello.rank));
}

Acceptor::Stage Acceptor::challenge(Guest &guest) {
  if (guest.reader.kind() != Kind::Hello || !read(guest.reader.body(), guest.hello))
    return dismiss(guest, "sent something else than a greeting");
  const Hello &hello = guest.hello;
  if (hello.purpose != purpose || hello.callee != static_cast<uint32_t>(self))
    return dismiss(guest, fmt::format("calls rank {} where rank {} listens{}", hello.callee, self,
                                      hello.purpose != purpose ? ", and for something else" : ""));
  Nonce nonce = freshNonce();
  guest.session = Session(secret, hello, nonce);
  guest.challenged = true;
  guest.reader = FrameReader(bytes + Session::kTag);
  guest.until = Clock::now() + kGuestTime;
  std::string text = frame(Kind::Challenge, nonce);
  return sendAll(guest.socket, text.data(), text.size(), Clock::now()) == Transfer::Done ? Stage::Stays : Stage::Goes;
}

Acceptor::Stage Acceptor::dismiss(const Guest &guest, const std::string &problem) {
  sendOff(guest.from, problem);
  return Stage::Goes;
}

void Acceptor::dismissLate() {
  Deadline now = Clock::now();
  std::erase_if(guests, [&](const Guest &guest) {
    if (now < guest.until) return false;
    sendOff(guest.from, "has not greeted in time");
    return true;
  });
}

void Acceptor::takeNew() {
  for (int i = 0; i < kMostAccepted; ++i) {
    errno = 0;
    Socket socket = acceptFrom(listener);
    bool mine = !socket && errno == EMFILE, full = mine || (!socket && errno == ENFILE);
    if (full && guests.size() < (mine ? mostGuests : 1)) // the run itself has taken the rest: there is no room for its own ranks
      throw Error(kTooManyFiles);
    if (full || (socket && guests.size() >= mostGuests)) guests.erase(guests.begin());
    if (!socket) return;
    Address from = peerAddress(socket);
    guests.push_back({std::move(socket), from, FrameReader(sizeof(Hello)), Clock::now() + kGuestTime, false, {}, {}});
  }
}

Deadline Acceptor::nextDeadline(Deadline until) const {
  for (const Guest &guest : guests) until = std::min(until, guest.until);
  return until;
}

void Acceptor::sendOff(const Address &from, const std::string &problem) {
  if (++complaints > kMaxComplaints) return;
  complain(fmt::format("zerorun: sent off a process at {} that {}{}", from.storage.ss_family ? from.text() : "an unknown address", problem,
                       complaints == kMaxComplaints ? "; further ones are sent off without a word" : ""));
}

void Acceptor::failed(const Watched &from) {
  FrameReader reader(kMaxSentence + Session::kTag);
  if (await(from.line->socket, reader, Clock::now()) == FrameReader::State::Whole && reader.kind() == Kind::Refusal)
    if (std::optional<std::string> sentence = from.line->session.open(Session::From::Callee, reader)) throw Error(*sentence);
  throw Error(fmt::format("{} ended before all ranks had found each other", from.name));
}

} // namespace zero::runtime
