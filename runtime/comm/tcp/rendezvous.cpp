#include "runtime/comm/tcp/rendezvous.h"
#include "runtime/comm/tcp/gather.h"
#include "runtime/comm/tcp/wait.h"
#include "runtime/plan/error.h"
#include <fmt/format.h>
#include <thread>

namespace zero::runtime {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

Socket callFirst(const Membership &membership) {
  std::string why;
  for (Wait wait(membership.limits);;) {
    // The name is looked up each time: a cluster may make it known only when rank 0's machine is there.
    for (const Address &address : resolve(membership.host, membership.port, why))
      if (Socket line = connectTo(address, Clock::now() + seconds(3), why)) return line;
    auto waited = [&] {
      return fmt::format("rank {} has waited {} for rank 0 at {}{}: {}", membership.rank, wait.duration(), membership.place(),
                         membership.portNote, why);
    };
    if (wait.over()) throw Error(waited() + ", and gives up; was rank 0 started, and are MASTER_ADDR and MASTER_PORT right?");
    wait.speak(waited);
    std::this_thread::sleep_for(milliseconds(100));
  }
}

Meeting readTable(const Membership &membership, const std::string &body, const Address &first) {
  auto world = static_cast<size_t>(membership.world);
  if (body.size() != sizeof(Token) + world * sizeof(TableEntry))
    throw Error(fmt::format("rank 0 at {} sent a list of {} bytes, which is not one of {} ranks", first.text(), body.size(), world));
  Meeting meeting;
  std::memcpy(&meeting.token, body.data(), sizeof(Token));
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

Meeting join(const Membership &membership) {
  Socket line = callFirst(membership);
  watchMachine(line);
  Address first = peerAddress(line);
  Socket listener = membership.listen(localAddress(line));
  Join greeting;
  greeting.rank = static_cast<uint32_t>(membership.rank);
  greeting.world = static_cast<uint32_t>(membership.world);
  greeting.port = localAddress(listener).port();
  greeting.peer = Peers::self();
  std::string text = frame(Kind::Join, greeting);
  // If sending fails, the answer says why or is missing. Rank 0 speaks of the ranks that are missing, and gives up before this does.
  sendAll(line, text.data(), text.size(), Clock::now() + seconds(3));
  FrameReader reader(kMaxFrame);
  std::string where = fmt::format("rank 0 at {}", first.text());
  switch (await(line, reader, Clock::now() + membership.limits.giveUp + seconds(10))) {
  case FrameReader::State::Whole:
    break;
  case FrameReader::State::Incomplete:
    throw Error(fmt::format("{} has not answered rank {}; is it a zerorun?", where, membership.rank));
  case FrameReader::State::Closed:
    throw Error(fmt::format("{} ended before all ranks had found each other", where));
  case FrameReader::State::Stranger:
  case FrameReader::State::OtherVersion:
    throw Error(fmt::format("what rank {} found as {} {}", membership.rank, where, reader.problem()));
  }
  if (reader.kind() == Kind::Refusal) throw Error(printable(reader.body()));
  if (reader.kind() != Kind::Table)
    throw Error(fmt::format("what rank {} found as {} sent something else than the list of ranks", membership.rank, where));
  Meeting meeting = readTable(membership, reader.body(), first);
  meeting.listener = std::move(listener);
  meeting.lines.push_back(std::move(line));
  return meeting;
}

} // namespace

std::string Membership::place() const {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", host, port);
}

Socket Membership::listen(const Address &local) const {
  std::string why;
  Socket listener = namesLoopback(host) ? listenAt(local.withPort(0), why) : listenEverywhere(0, why);
  if (!listener) throw Error(fmt::format("rank {} cannot listen for the other ranks: {}", rank, why));
  return listener;
}

Meeting meet(const Membership &membership) { return membership.rank == 0 ? gather(membership) : join(membership); }

} // namespace zero::runtime
