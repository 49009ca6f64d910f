#include "runtime/comm/tcp/gather.h"
#include "runtime/base/error.h"
#include "runtime/comm/tcp/acceptor.h"
#include "runtime/comm/tcp/wait.h"
#include "runtime/process/random_bits.h"
#include <cerrno>
#include <fmt/format.h>
#include <thread>

namespace zero::runtime {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

Token randomToken() { return {randomBits(), randomBits()}; }

std::string nameOf(const Peer &peer) { return fmt::format("process {} on {}", peer.process, peer.host); }

Socket listenAsFirst(const Membership &membership) {
  std::string why;
  // A process of a run before may still be about to end.
  for (Clock::time_point until = Clock::now() + seconds(3);;) {
    int error = 0;
    if (namesLoopback(membership.host))
      for (const Address &address : resolve(membership.host, membership.port, why)) {
        if (Socket listener = listenAt(address, why)) return listener;
        if ((error = errno) == EADDRINUSE) break; // not the next one: the others would find the stranger first
      }
    else if (Socket listener = listenEverywhere(membership.port, why))
      return listener;
    else
      error = errno;
    if (error != EADDRINUSE || Clock::now() >= until)
      throw Error(fmt::format("rank 0 cannot listen at {}: {}{}; {}", membership.place(), why, membership.portNote,
                              error == EADDRINUSE ? "is another run there? Choose another MASTER_PORT" : "is MASTER_ADDR right?"));
    std::this_thread::sleep_for(milliseconds(100));
  }
}

class Host {
public:
  explicit Host(const Membership &membership)
      : membership(membership), door(listenAsFirst(membership)), acceptor(door, Kind::Join, 0, membership.secret, sizeof(Join)),
        entries(static_cast<size_t>(membership.world)),
        token(randomToken()), meeting{linkSecret(membership, token), {}, {}, membership.listen(localAddress(door)), {}} {
    meeting.lines.resize(entries.size());
    entries[0].peer = Peers::self();
    entries[0].port = localAddress(meeting.listener).port();
  }

  Meeting gather() {
    try {
      Wait wait(membership.limits);
      for (int missing = membership.world - 1; missing > 0;) {
        if (wait.over())
          throw Error(fmt::format("rank 0 has waited {} at {} for {} of {} ranks, and gives up; were they started?", wait.duration(),
                                  membership.place(), missingRanks(), membership.world));
        wait.speak([&] {
          return fmt::format("rank 0 has waited {} at {} for {} of {} ranks", wait.duration(), membership.place(), missingRanks(),
                             membership.world);
        });
        if (std::optional<Arrival> arrival = acceptor.next(wait.next())) missing -= admit(std::move(*arrival));
      }
      tellAll();
    } catch (const Error &error) {
      refuse(error.what());
      throw;
    }
    return std::move(meeting);
  }

private:
  // Whoever has arrived knows the secret: what it says ends the start if it cannot be.
  bool admit(Arrival arrival) {
    uint32_t rank = arrival.hello.rank, world = arrival.hello.world;
    Join join;
    std::string problem = read(arrival.body, join) ? impossible(arrival.hello, join) : "sent something else than a rank's greeting";
    if (!problem.empty()) {
      acceptor.sendOff(arrival.from, problem);
      return false;
    }
    makePrintable(join.peer);
    if (world != static_cast<uint32_t>(membership.world))
      answer(arrival, fmt::format("rank {} ({}) was started with WORLD_SIZE={}, but rank 0 with WORLD_SIZE={}", rank, nameOf(join.peer),
                                  world, membership.world));
    TableEntry &entry = entries[rank];
    if (rank == 0 || meeting.lines[rank].socket)
      answer(arrival, fmt::format("two processes were started with RANK={}: {} and {}", rank, nameOf(entry.peer), nameOf(join.peer)));
    if (!arrival.welcome()) return false; // it has gone, or is about to call again
    Address from = peerAddress(arrival.socket);
    entry.peer = join.peer;
    entry.port = join.port;
    entry.family = from.loopback() ? 0 : from.six() ? 6 : 4;
    from.bytes(entry.address);
    Line &line = meeting.lines[rank] = {std::move(arrival.socket), std::move(arrival.session)};
    watchMachine(line.socket);
    acceptor.watch(line, fmt::format("rank {} ({})", rank, nameOf(join.peer)));
    return true;
  }

  static std::string impossible(const Hello &hello, const Join &join) {
    if (hello.world < 2 || hello.world > kMaxWorld || hello.rank >= hello.world)
      return fmt::format("calls itself rank {} of {}", hello.rank, hello.world);
    if (join.port == 0 || join.port > 65535) return fmt::format("says it listens at port {}", join.port);
    return "";
  }

  [[noreturn]] static void answer(const Arrival &arrival, const std::string &sentence) {
    arrival.answer(arrival.session.refusal(sentence));
    throw Error(sentence);
  }

  void refuse(const std::string &sentence) {
    for (const Line &line : meeting.lines) {
      if (!line.socket) continue;
      std::string text = line.session.refusal(sentence);
      sendAll(line.socket, text.data(), text.size(), Clock::now() + seconds(1));
    }
  }

  void tellAll() {
    std::string body(reinterpret_cast<const char *>(&token), sizeof(Token));
    body.append(reinterpret_cast<const char *>(entries.data()), entries.size() * sizeof(TableEntry));
    for (size_t rank = 1; rank < entries.size(); ++rank) {
      const Line &line = meeting.lines[rank];
      std::string table = line.session.seal(Session::From::Callee, Kind::Table, body.data(), body.size());
      if (sendAll(line.socket, table.data(), table.size(), Clock::now() + seconds(10)) != Transfer::Done)
        throw Error(fmt::format("rank {} ({}) ended before all ranks had found each other", rank, nameOf(entries[rank].peer)));
    }
    for (const TableEntry &entry : entries) {
      meeting.peers.push_back(entry.peer);
      meeting.addresses.emplace_back(); // rank 0 is called by the others, and calls nobody
    }
  }

  std::string missingRanks() const {
    std::string text;
    int named = 0, more = 0;
    for (size_t rank = 1; rank < meeting.lines.size(); ++rank) {
      if (meeting.lines[rank].socket) continue;
      if (named++ < 8)
        text += fmt::format("{}{}", text.empty() ? "" : ", ", rank);
      else
        ++more;
    }
    return fmt::format("{} {}{}", named == 1 ? "rank" : "ranks", text, more ? fmt::format(" and {} more", more) : "");
  }

  const Membership &membership;
  Socket door;
  Acceptor acceptor;
  std::vector<TableEntry> entries;
  Token token;
  Meeting meeting;
};

} // namespace

Meeting gather(const Membership &membership) { return Host(membership).gather(); }

} // namespace zero::runtime
