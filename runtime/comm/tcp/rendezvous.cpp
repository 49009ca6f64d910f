#include "runtime/comm/tcp/rendezvous.h"
#include "runtime/base/error.h"
#include "runtime/comm/tcp/caller.h"
#include "runtime/comm/tcp/gather.h"
#include "runtime/comm/tcp/wait.h"
#include <fmt/format.h>
#include <thread>

namespace zero::runtime {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

Meeting readTable(const Membership &membership, const std::string &body, const Address &first) {
  auto world = static_cast<size_t>(membership.world);
  if (body.size() != sizeof(Token) + world * sizeof(TableEntry))
    throw Error(fmt::format("rank 0 at {} sent a list of {} bytes, which is not one of {} ranks", first.text(), body.size(), world));
  Meeting meeting;
  Token token;
  std::memcpy(&token, body.data(), sizeof(Token));
  meeting.secret = linkSecret(membership, token);
  std::vector<TableEntry> entries(world);
  std::memcpy(entries.data(), body.data() + sizeof(Token), world * sizeof(TableEntry));
  for (TableEntry &entry : entries) {
    if (entry.port == 0 || entry.port > 65535 || (entry.family != 0 && entry.family != 4 && entry.family != 6))
      throw Error(fmt::format("rank 0 at {} sent a list of ranks with an address that is none", first.text()));
    auto port = static_cast<uint16_t>(entry.port);
    makePrintable(entry.peer);
    meeting.peers.push_back(entry.peer);
    meeting.addresses.push_back(entry.family == 0 ? first.withPort(port) : Address::of(entry.address, entry.family == 6, port));
  }
  return meeting;
}

// How long one that has reached rank 0 waits for each of its words. Rank 0 knows what is missing, and gives up before this does.
TcpLimits afterFirst(TcpLimits limits) {
  limits.giveUp += seconds(10);
  return limits;
}

// Until rank 0 has said something; false: it is late.
bool awaitFirst(const Membership &membership, const Socket &line, Wait &wait, const char *what) {
  while (!awaitReadable(line, wait.next())) {
    if (wait.over()) return false;
    wait.speak([&] {
      return fmt::format("rank {} has waited {} for rank 0 at {} to {}", membership.rank, wait.duration(), peerAddress(line).text(), what);
    });
  }
  return true;
}

// Waits for the list of all ranks on a line over which rank 0 has welcomed this one.
Meeting awaitTable(const Membership &membership, Line line, Socket listener) {
  Address first = peerAddress(line.socket);
  std::string where = fmt::format("rank 0 at {}", first.text());
  FrameReader reader(kMaxFrame + Session::kTag);
  Wait wait(afterFirst(membership.limits));
  FrameReader::State state{};
  while ((state = reader.read(line.socket)) == FrameReader::State::Incomplete)
    if (!awaitFirst(membership, line.socket, wait, "say where the other ranks are")) break;
  switch (state) {
  case FrameReader::State::Whole:
    break;
  case FrameReader::State::Incomplete:
    throw Error(fmt::format("{} has not told rank {} where the other ranks are", where, membership.rank));
  default:
    throw Error(fmt::format("{} ended before all ranks had found each other", where));
  }
  std::optional<std::string> body = line.session.open(Session::From::Callee, reader);
  if (body && reader.kind() == Kind::Refusal) throw Error(*body);
  if (!body || reader.kind() != Kind::Table)
    throw Error(fmt::format("what rank {} found as {} sent something else than the list of ranks", membership.rank, where));
  Meeting meeting = readTable(membership, *body, first);
  meeting.listener = std::move(listener);
  meeting.lines.push_back(std::move(line));
  return meeting;
}

Greeting greetFirst(const Membership &membership, const Socket &line, const Socket &listener) {
  Hello hello;
  hello.purpose = Kind::Join;
  hello.rank = static_cast<uint32_t>(membership.rank);
  hello.world = static_cast<uint32_t>(membership.world);
  Join join;
  join.port = localAddress(listener).port();
  join.peer = Peers::self();
  std::string body(reinterpret_cast<const char *>(&join), sizeof join);
  Wait wait(afterFirst(membership.limits));
  return greet(line, membership.secret, hello, body, [&] { return awaitFirst(membership, line, wait, "answer"); });
}

// Why there will be no run with the process that was found as rank 0; nothing if it can be called again.
std::string problemOf(const Greeting &greeting, const Membership &membership, const std::string &where) {
  using Outcome = Greeting::Outcome;
  switch (greeting.outcome) {
  case Outcome::Welcome:
  case Outcome::Closed:
    return "";
  case Outcome::Late:
    return fmt::format("{} has not answered rank {}; is it a zerorun?", where, membership.rank);
  case Outcome::Denied:
    return fmt::format("{} says that rank {} does not know its secret; give all ranks the same {}", where, membership.rank,
                       membership.secret.empty() ? "ZERORUN_SECRET or ZERORUN_SECRET_FILE: this one has none" : "ZERORUN_SECRET");
  case Outcome::Refused:
    return greeting.words;
  case Outcome::Strange:
    return fmt::format("what rank {} found as {} {}", membership.rank, where, greeting.words);
  }
  return "";
}

Meeting join(const Membership &membership) {
  std::string why;
  for (Wait wait(membership.limits);;) {
    // The name is looked up each time: a cluster may make it known only when rank 0's machine is there.
    for (const Address &address : resolve(membership.host, membership.port, why)) {
      Line line{connectTo(address, Clock::now() + seconds(3), why), {}};
      if (!line.socket) continue;
      watchMachine(line.socket);
      // The others call where they have found rank 0: this end of the way may have another one of the loopback addresses.
      Address found = peerAddress(line.socket);
      Socket listener = membership.listen(found.loopback() ? found : localAddress(line.socket));
      Greeting greeting = greetFirst(membership, line.socket, listener);
      std::string problem = problemOf(greeting, membership, fmt::format("rank 0 at {}", address.text()));
      if (!problem.empty()) throw Error(problem);
      line.session = std::move(greeting.session);
      if (greeting.outcome == Greeting::Outcome::Welcome) return awaitTable(membership, std::move(line), std::move(listener));
      why = "it closed the connection";
    }
    auto waited = [&] {
      return fmt::format("rank {} has waited {} for rank 0 at {}{}: {}", membership.rank, wait.duration(), membership.place(),
                         membership.portNote, why);
    };
    if (wait.over()) throw Error(waited() + ", and gives up; was rank 0 started, and are MASTER_ADDR and MASTER_PORT right?");
    wait.speak(waited);
    std::this_thread::sleep_for(milliseconds(100));
  }
}

} // namespace

std::string Membership::place() const {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", host, port);
}

Socket Membership::listen(const Address &own) const {
  std::string why;
  Socket listener = namesLoopback(host) ? listenAt(own.withPort(0), why) : listenEverywhere(0, why);
  if (!listener) throw Error(fmt::format("rank {} cannot listen for the other ranks: {}", rank, why));
  return listener;
}

std::string linkSecret(const Membership &membership, const Token &token) {
  return membership.secret + std::string(reinterpret_cast<const char *>(&token), sizeof token);
}

Meeting meet(const Membership &membership) { return membership.rank == 0 ? gather(membership) : join(membership); }

} // namespace zero::runtime
