#include "runtime/comm/tcp/mesh.h"
#include "runtime/base/error.h"
#include "runtime/comm/tcp/caller.h"
#include <algorithm>
#include <fmt/format.h>
#include <thread>

namespace zero::runtime {
namespace {

using Clock = Patience::Clock;
constexpr const char *kWhat = "connecting";

} // namespace

Meshes::Meshes(Meeting &meeting, const Peers &peers, int self)
    : meeting(meeting), peers(peers), self(self), acceptor(meeting.listener, Kind::Link, self, meeting.secret, 0), patience(peers, self) {}

std::vector<Socket> Meshes::connect() {
  auto world = static_cast<int>(meeting.peers.size());
  uint32_t mesh = made++;
  // Until the first mesh stands, nothing else says that a rank has ended.
  if (mesh == 0)
    for (const Line &line : meeting.lines)
      if (line.socket) acceptor.watch(line, peers.name(self == 0 ? static_cast<int>(&line - meeting.lines.data()) : 0));
  std::vector<Socket> links(static_cast<size_t>(world));
  for (int peer = 0; peer < self; ++peer) links[static_cast<size_t>(peer)] = call(peer, mesh);
  for (Early &each : early)
    if (each.mesh == mesh) links[each.rank] = std::move(each.socket);
  std::erase_if(early, [&](const Early &each) { return each.mesh == mesh; });
  auto missing = [&] {
    std::set<int> ranks;
    for (int rank = self + 1; rank < world; ++rank)
      if (!links[static_cast<size_t>(rank)]) ranks.insert(rank);
    return ranks;
  };
  auto begin = Clock::now();
  while (!missing().empty()) {
    if (std::optional<Arrival> arrival = acceptor.next(Clock::now() + patience.interval()))
      answer(std::move(*arrival), mesh, links);
    else
      patience.wait(begin, Clock::now(), kWhat, [&] { return Awaited{missing(), missing().size()}; });
  }
  patience.done(begin, kWhat);
  acceptor.unwatch();
  return links;
}

void Meshes::close() {
  acceptor.close();
  meeting.listener = Socket();
}

Socket Meshes::call(int peer, uint32_t mesh) {
  const Address &address = meeting.addresses[static_cast<size_t>(peer)];
  Hello hello;
  hello.purpose = Kind::Link;
  hello.rank = static_cast<uint32_t>(self), hello.callee = static_cast<uint32_t>(peer);
  hello.world = static_cast<uint32_t>(meeting.peers.size());
  hello.mesh = mesh;
  std::string why;
  auto begin = Clock::now();
  for (auto until = begin + std::chrono::seconds(30); Clock::now() < until;) {
    if (Socket socket = connectTo(address, std::min<Deadline>(until, Clock::now() + std::chrono::seconds(3)), why)) {
      auto called = Clock::now();
      Greeting greeting = greet(socket, meeting.secret, hello, "", [&] { return awaitAnswer(socket, peer, begin); });
      if (greeting.outcome == Greeting::Outcome::Welcome) {
        patience.done(begin, kWhat);
        return socket;
      }
      if (greeting.outcome != Greeting::Outcome::Closed) {
        why = greeting.words.empty() ? "it is not the process that rank 0 named" : greeting.words;
        break;
      }
      why = "it closed the connection";
      until += Clock::now() - called; // the time in which it was busy does not count
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (mesh == 0) requireRun(peer);
  }
  throw Error(fmt::format("rank {} cannot connect to {} at {}: {}; each rank must be able to reach all others, at any port", self,
                          peers.name(peer), address.text(), why));
}

// Who ends while the first mesh is made has refused the call or hung up, and will not come back.
void Meshes::requireRun(int peer) const {
  if (peers.state(peer) == PeerState::Ended) throw Error(fmt::format("{} ended before all ranks had found each other", peers.name(peer)));
  acceptor.wait(Socket(), Clock::now());
}

// The other one answers when it has come as far itself, which may take long.
bool Meshes::awaitAnswer(const Socket &socket, int peer, Clock::time_point begin) {
  while (!acceptor.wait(socket, Clock::now() + patience.interval()))
    patience.wait(begin, Clock::now(), kWhat, [&] { return Awaited{{peer}, 1}; });
  return true;
}

void Meshes::answer(Arrival arrival, uint32_t mesh, std::vector<Socket> &links) {
  const Hello &hello = arrival.hello;
  auto waits = [&](const Early &each) { return each.mesh == hello.mesh && each.rank == hello.rank; };
  bool taken = std::any_of(early.begin(), early.end(), waits) || (hello.rank < links.size() && hello.mesh == mesh && links[hello.rank]);
  if (hello.rank <= static_cast<uint32_t>(self) || hello.rank >= links.size() || hello.mesh < mesh || taken)
    return acceptor.sendOff(arrival.from, fmt::format("calls as rank {} for connection {}, which is not awaited", hello.rank, hello.mesh));
  if (!arrival.welcome()) return; // it has gone, or is about to call again
  if (hello.mesh == mesh)
    links[hello.rank] = std::move(arrival.socket);
  else
    early.push_back({hello.mesh, hello.rank, std::move(arrival.socket)});
}

} // namespace zero::runtime
