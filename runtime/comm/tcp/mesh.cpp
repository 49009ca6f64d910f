#include "runtime/comm/tcp/mesh.h"
#include "runtime/plan/error.h"
#include <algorithm>
#include <fmt/format.h>
#include <thread>

namespace zero::runtime {
namespace {

using Clock = Patience::Clock;
constexpr const char *kWhat = "connecting";

} // namespace

Meshes::Meshes(const Meeting &meeting, const Peers &peers, int self)
    : meeting(meeting), peers(peers), self(self), acceptor(meeting.listener, sizeof(Link)), patience(peers, self) {}

std::vector<Socket> Meshes::connect() {
  auto world = static_cast<int>(meeting.peers.size());
  uint32_t mesh = made++;
  // Until the first mesh stands, nothing else says that a rank has ended.
  if (mesh == 0)
    for (const Socket &line : meeting.lines)
      if (line) acceptor.watch(line, peers.name(self == 0 ? static_cast<int>(&line - meeting.lines.data()) : 0));
  std::vector<Socket> links(static_cast<size_t>(world));
  for (int peer = 0; peer < self; ++peer) links[static_cast<size_t>(peer)] = call(peer, mesh);
  for (Early &each : early)
    if (each.link.mesh == mesh) links[each.link.rank] = std::move(each.socket);
  std::erase_if(early, [&](const Early &each) { return each.link.mesh == mesh; });
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
      patience.wait(begin, Clock::now(), kWhat, missing);
  }
  patience.done(begin, kWhat);
  acceptor.unwatch();
  return links;
}

Socket Meshes::call(int peer, uint32_t mesh) {
  const Address &address = meeting.addresses[static_cast<size_t>(peer)];
  std::string why;
  for (auto until = Clock::now() + std::chrono::seconds(30); Clock::now() < until;) {
    if (Socket socket = connectTo(address, until, why)) {
      Link greeting{meeting.token, mesh, static_cast<uint32_t>(self)};
      std::string text = frame(Kind::Link, greeting);
      if (sendAll(socket, text.data(), text.size(), until) == Transfer::Done) return socket;
      why = "it closed the connection";
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  throw Error(fmt::format("rank {} cannot connect to {} at {}: {}; each rank must be able to reach all others, at any port", self,
                          peers.name(peer), address.text(), why));
}

void Meshes::answer(Arrival arrival, uint32_t mesh, std::vector<Socket> &links) {
  Link link;
  if (!arrival.reader.as(link)) return acceptor.sendOff(arrival.socket, "sent something else than a greeting between ranks");
  if (link.token != meeting.token) return acceptor.sendOff(arrival.socket, "is a rank of another run");
  bool taken = link.rank < links.size() && link.mesh == mesh && links[link.rank];
  if (link.rank <= static_cast<uint32_t>(self) || link.rank >= links.size() || link.mesh < mesh || taken)
    return acceptor.sendOff(arrival.socket, fmt::format("calls as rank {} for connection {}, which is not awaited", link.rank, link.mesh));
  if (link.mesh == mesh)
    links[link.rank] = std::move(arrival.socket);
  else
    early.push_back({link, std::move(arrival.socket)});
}

} // namespace zero::runtime
