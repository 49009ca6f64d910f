#include "runtime/comm/tcp/tcp_communicator.h"
#include "runtime/base/error.h"
#include <algorithm>
#include <cerrno>
#include <fmt/format.h>
#include <sys/uio.h>
#include <thread>
#include <unistd.h>

namespace zero::runtime {
namespace {

// Moved in one go: small enough that both directions of a connection, and all connections, take turns.
constexpr uint64_t kPiece = 1 << 20;

using std::chrono::microseconds;

// How a rank waits: at first at the ready, then looking again and again, and when nothing has moved for long, asleep. To sleep each time
// would leave it to the system when this rank gets a processor again, after all that compute.
constexpr microseconds kSpin{50}, kNap{20}, kAwake{5000};

// Between two looks a rank naps. On a slow link each look finds little, and takes a processor away from computation: so it naps until so
// many bytes, or all that are left, should have moved, at the speed of those before, but no longer than kLongNap.
constexpr uint64_t kWorthLooking = 256 << 10;
constexpr microseconds kLongNap{500};

class Pace {
public:
  explicit Pace(uint64_t bytes) : all(bytes), left(bytes), atFirst(bytes) {}

  void reached(uint64_t bytes, Patience::Clock::time_point now) {
    if (left == all) first = now, atFirst = bytes; // what buffers held, or had room for, tells nothing of the link
    left = bytes, last = now;
  }
  microseconds nap() const {
    if (left == atFirst) return kNap;
    double rate = double(atFirst - left) / std::chrono::duration<double, std::micro>(last - first).count();
    return microseconds(int64_t(std::clamp(double(std::min(left, kWorthLooking)) / rate, double(kNap.count()), double(kLongNap.count()))));
  }

private:
  uint64_t all, left, atFirst;
  Patience::Clock::time_point first, last;
};

// Takes `done` bytes off a message, of its length first.
template <typename Part> void advance(Part &part, uint64_t done) {
  uint64_t ofLength = std::min(done, part.lengthLeft);
  part.lengthLeft -= ofLength;
  part.data += done - ofLength;
  part.left -= done - ofLength;
}

// What is left of a message: of its length, and a piece of its data.
template <typename Part> msghdr piecesOf(Part &part, iovec (&pieces)[2]) {
  pieces[0] = {reinterpret_cast<char *>(&part.length) + (sizeof part.length - part.lengthLeft), part.lengthLeft};
  pieces[1] = {part.data, std::min(part.left, kPiece)};
  msghdr message{};
  message.msg_iov = part.lengthLeft ? pieces : pieces + 1;
  message.msg_iovlen = part.lengthLeft ? 2 : 1;
  return message;
}

} // namespace

TcpCommunicator::TcpCommunicator(std::vector<Socket> connections, const Peers &peers, int self)
    : MessageCommunicator(self, static_cast<int>(connections.size())), links(std::move(connections)), exchanges(links.size()),
      wake(makeEvent()), peers(peers), patience(peers, self) {
  for (const Socket &link : links) {
    if (link) makeRoom(link);
    entries.push_back({link.fd(), 0, 0});
  }
  entries.push_back({wake.fd(), POLLIN, 0});
}

void TcpCommunicator::interrupt() {
  MessageCommunicator::interrupt();
  uint64_t one = 1;
  [[maybe_unused]] ssize_t ignored = ::write(wake.fd(), &one, sizeof one);
}

void TcpCommunicator::receive(void *data, uint64_t bytes, int peer) {
  Exchange &exchange = exchanges[static_cast<size_t>(peer)];
  exchange.in = {static_cast<char *>(data), bytes, 0, sizeof(uint64_t)};
  exchange.expected = bytes;
}

void TcpCommunicator::send(const void *data, uint64_t bytes, int peer) {
  exchanges[static_cast<size_t>(peer)].out = {static_cast<char *>(const_cast<void *>(data)), bytes, bytes, sizeof(uint64_t)};
}

void TcpCommunicator::begin(const char *what) {
  for (int peer = 0; peer < size; ++peer)
    if (exchanges[static_cast<size_t>(peer)].out.pending()) give(peer, what);
}

void TcpCommunicator::complete(const char *what) {
  auto begin = Patience::Clock::now(), moved = begin;
  Pace pace(left());
  int found = 1; // all is tried at first without asking
  for (size_t peer = 0; peer < exchanges.size(); ++peer) entries[peer].revents = POLLIN | POLLOUT;
  for (;;) {
    checkInterrupted(what);
    if (found > 0 && !moveAll(what)) break;
    auto now = Patience::Clock::now();
    if (found > 0) moved = now, pace.reached(left(), now);
    patience.wait(begin, now, what, [this] { return awaited(); });
    bool sleeps = now - moved >= kAwake;
    found = ::poll(entries.data(), entries.size(), sleeps ? static_cast<int>(patience.interval().count()) : 0);
    if (found > 0 || sleeps) continue;
    if (now - begin < kSpin)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(pace.nap());
  }
  patience.done(begin, what);
}

// Moves what the last poll() found movable; false: nothing is left.
bool TcpCommunicator::moveAll(const char *what) {
  bool pending = false;
  for (int peer = 0; peer < size; ++peer) {
    pollfd &entry = entries[static_cast<size_t>(peer)];
    if (entry.revents && peer != self) move(peer, what);
    const Exchange &exchange = exchanges[static_cast<size_t>(peer)];
    entry.events = static_cast<short>((exchange.in.pending() ? POLLIN : 0) | (exchange.out.pending() ? POLLOUT : 0));
    entry.fd = entry.events ? links[static_cast<size_t>(peer)].fd() : -1; // what is done is not asked about
    pending |= entry.events != 0;
  }
  return pending;
}

void TcpCommunicator::move(int peer, const char *what) {
  Exchange &exchange = exchanges[static_cast<size_t>(peer)];
  if (exchange.out.pending()) give(peer, what);
  if (exchange.in.pending()) take(peer, what);
}

void TcpCommunicator::give(int peer, const char *what) {
  Part &out = exchanges[static_cast<size_t>(peer)].out;
  iovec pieces[2];
  msghdr message = piecesOf(out, pieces);
  ssize_t done = ::sendmsg(links[static_cast<size_t>(peer)].fd(), &message, MSG_NOSIGNAL);
  if (done >= 0)
    advance(out, static_cast<uint64_t>(done));
  else if (errno != EAGAIN && errno != EINTR)
    lost(peer, what);
}

void TcpCommunicator::take(int peer, const char *what) {
  Exchange &exchange = exchanges[static_cast<size_t>(peer)];
  iovec pieces[2];
  msghdr message = piecesOf(exchange.in, pieces);
  ssize_t done = ::recvmsg(links[static_cast<size_t>(peer)].fd(), &message, 0);
  if (done < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (done <= 0) lost(peer, what);
  advance(exchange.in, static_cast<uint64_t>(done));
  if (exchange.in.lengthLeft == 0 && exchange.in.length != exchange.expected)
    throw Error(fmt::format("{} sent {} bytes in {} in which rank {} expects {}; do all ranks run the same plan?", peers.name(peer),
                            exchange.in.length, what, self, exchange.expected));
}

// If that process has ended, the watch is about to end this one, with one sentence for all ranks.
void TcpCommunicator::lost(int peer, const char *what) {
  for (int i = 0; i < 50; ++i) {
    checkInterrupted(what);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  throw Error(fmt::format("the connection of rank {} to {} broke in {}", self, peers.name(peer), what));
}

uint64_t TcpCommunicator::left() const {
  uint64_t bytes = 0;
  for (const Exchange &exchange : exchanges)
    bytes += exchange.in.left + exchange.in.lengthLeft + exchange.out.left + exchange.out.lengthLeft;
  return bytes;
}

Awaited TcpCommunicator::awaited() const {
  std::set<int> senders, receivers;
  for (int peer = 0; peer < size; ++peer) {
    const Exchange &exchange = exchanges[static_cast<size_t>(peer)];
    if (exchange.in.pending())
      senders.insert(peer);
    else if (exchange.out.pending())
      receivers.insert(peer);
  }
  return {senders.empty() ? receivers : senders, left()};
}

} // namespace zero::runtime
