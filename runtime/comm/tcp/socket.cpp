#include "runtime/comm/tcp/socket.h"
#include "runtime/base/error.h"
#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

namespace zero::runtime {
namespace {

const auto *v4(const Address &address) { return reinterpret_cast<const sockaddr_in *>(&address.storage); }
const auto *v6(const Address &address) { return reinterpret_cast<const sockaddr_in6 *>(&address.storage); }
auto *generic(const Address &address) { return reinterpret_cast<const sockaddr *>(&address.storage); }
auto *generic(Address &address) { return reinterpret_cast<sockaddr *>(&address.storage); }

void setOption(int fd, int level, int name, int value) { ::setsockopt(fd, level, name, &value, sizeof value); }

std::string reason() { return std::strerror(errno); }

Socket makeSocket(int family) {
  Socket socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (socket) setOption(socket.fd(), IPPROTO_TCP, TCP_NODELAY, 1); // a message must not wait for the next one
  return socket;
}

Socket listening(Socket socket, const Address &address, std::string &why) {
  setOption(socket.fd(), SOL_SOCKET, SO_REUSEADDR, 1); // connections of a run before may linger
  if (::bind(socket.fd(), generic(address), address.length) == 0 && ::listen(socket.fd(), 4096) == 0) return socket;
  why = reason();
  return {};
}

bool awaitEvent(int fd, short events, Deadline until) {
  for (;;) {
    pollfd entry{fd, events, 0};
    int found = ::poll(&entry, 1, millisecondsUntil(until));
    if (found > 0) return true;
    if (found == 0 || errno != EINTR) return false;
  }
}

} // namespace

Socket::~Socket() {
  if (descriptor >= 0) ::close(descriptor);
}

Socket makeEvent() {
  Socket event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event) throw Error(errno == EMFILE ? kTooManyFiles : "cannot make what wakes a thread that waits for other ranks: " + reason());
  return event;
}

Address Address::of(const uint8_t bytes[16], bool six, uint16_t port) {
  Address address;
  address.length = six ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  address.storage.ss_family = six ? AF_INET6 : AF_INET;
  if (six)
    std::memcpy(&reinterpret_cast<sockaddr_in6 *>(&address.storage)->sin6_addr, bytes, 16);
  else
    std::memcpy(&reinterpret_cast<sockaddr_in *>(&address.storage)->sin_addr, bytes, 4);
  return address.withPort(port);
}

void Address::bytes(uint8_t out[16]) const {
  std::memset(out, 0, 16);
  if (six())
    std::memcpy(out, &v6(*this)->sin6_addr, 16);
  else
    std::memcpy(out, &v4(*this)->sin_addr, 4);
}

uint16_t Address::port() const { return ntohs(six() ? v6(*this)->sin6_port : v4(*this)->sin_port); }

Address Address::withPort(uint16_t port) const {
  Address result = *this;
  (six() ? reinterpret_cast<sockaddr_in6 *>(&result.storage)->sin6_port : reinterpret_cast<sockaddr_in *>(&result.storage)->sin_port) =
      htons(port);
  return result;
}

bool Address::loopback() const {
  return six() ? IN6_IS_ADDR_LOOPBACK(&v6(*this)->sin6_addr) : ntohl(v4(*this)->sin_addr.s_addr) >> 24 == 127;
}

std::string Address::text() const {
  char name[INET6_ADDRSTRLEN] = "?";
  ::inet_ntop(storage.ss_family, six() ? static_cast<const void *>(&v6(*this)->sin6_addr) : &v4(*this)->sin_addr, name, sizeof name);
  return six() ? fmt::format("[{}]:{}", name, port()) : fmt::format("{}:{}", name, port());
}

Address localAddress(const Socket &socket) {
  Address address;
  address.length = sizeof address.storage;
  ::getsockname(socket.fd(), generic(address), &address.length);
  return address;
}

Address peerAddress(const Socket &socket) {
  Address address;
  address.length = sizeof address.storage;
  ::getpeername(socket.fd(), generic(address), &address.length);
  if (!address.six() || !IN6_IS_ADDR_V4MAPPED(&v6(address)->sin6_addr)) return address;
  uint8_t bytes[16] = {};
  std::memcpy(bytes, v6(address)->sin6_addr.s6_addr + 12, 4);
  return Address::of(bytes, false, address.port());
}

std::vector<Address> resolve(const std::string &host, uint16_t port, std::string &why) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  std::vector<Address> addresses;
  int status = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (status != 0) {
    why = status == EAI_SYSTEM ? reason() : gai_strerror(status);
    return addresses;
  }
  for (addrinfo *each = found; each; each = each->ai_next) {
    if (each->ai_family != AF_INET && each->ai_family != AF_INET6) continue;
    Address address;
    std::memcpy(&address.storage, each->ai_addr, each->ai_addrlen);
    address.length = each->ai_addrlen;
    addresses.push_back(address.withPort(port));
  }
  ::freeaddrinfo(found);
  if (addresses.empty()) why = "it has no address";
  return addresses;
}

bool namesLoopback(const std::string &host) {
  if (host == "localhost") return true;
  addrinfo hints{}, *found = nullptr;
  hints.ai_flags = AI_NUMERICHOST;
  if (::getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return false;
  Address address;
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  ::freeaddrinfo(found);
  return address.loopback();
}

Socket listenAt(const Address &address, std::string &why) {
  Socket socket = makeSocket(address.storage.ss_family);
  if (socket) return listening(std::move(socket), address, why);
  why = reason();
  return {};
}

Socket listenEverywhere(uint16_t port, std::string &why) {
  const uint8_t any[16] = {};
  Socket socket = makeSocket(AF_INET6);
  if (!socket) return listenAt(Address::of(any, false, port), why); // a machine without IPv6
  setOption(socket.fd(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  return listening(std::move(socket), Address::of(any, true, port), why);
}

Socket acceptFrom(const Socket &listener) {
  Socket socket(::accept4(listener.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket) setOption(socket.fd(), IPPROTO_TCP, TCP_NODELAY, 1);
  return socket;
}

Socket connectTo(const Address &address, Deadline until, std::string &why) {
  Socket socket = makeSocket(address.storage.ss_family);
  if (!socket && errno == EMFILE) throw Error(kTooManyFiles); // no other try helps
  if (!socket) {
    why = reason();
    return {};
  }
  int error = ::connect(socket.fd(), generic(address), address.length) == 0 ? 0 : errno;
  if (error == EINPROGRESS || error == EINTR) {
    socklen_t length = sizeof error;
    if (!awaitEvent(socket.fd(), POLLOUT, until))
      error = ETIMEDOUT;
    else
      ::getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &length);
  }
  // Where nobody listens at a port that the system gives out, it can connect a socket with itself.
  if (error == 0 && localAddress(socket).text() == peerAddress(socket).text()) error = ECONNREFUSED;
  if (error == 0) return socket;
  why = std::strerror(error);
  return {};
}

Transfer sendAll(const Socket &socket, const void *data, size_t bytes, Deadline until) {
  const char *at = static_cast<const char *>(data);
  while (bytes > 0) {
    ssize_t done = ::send(socket.fd(), at, bytes, MSG_NOSIGNAL);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0 && errno != EAGAIN) return Transfer::Closed;
    if (done < 0 && !awaitEvent(socket.fd(), POLLOUT, until)) return Transfer::Late;
    if (done > 0) at += done, bytes -= static_cast<size_t>(done);
  }
  return Transfer::Done;
}

bool awaitReadable(const Socket &socket, Deadline until) { return awaitEvent(socket.fd(), POLLIN, until); }

void makeRoom(const Socket &socket) {
  setOption(socket.fd(), SOL_SOCKET, SO_RCVLOWAT, 2 << 20); // the buffer grows to hold as much
  setOption(socket.fd(), SOL_SOCKET, SO_RCVLOWAT, 1);
}

void watchMachine(const Socket &socket) {
  setOption(socket.fd(), SOL_SOCKET, SO_KEEPALIVE, 1);
  setOption(socket.fd(), IPPROTO_TCP, TCP_KEEPIDLE, 5);
  setOption(socket.fd(), IPPROTO_TCP, TCP_KEEPINTVL, 2);
  setOption(socket.fd(), IPPROTO_TCP, TCP_KEEPCNT, 5);
  setOption(socket.fd(), IPPROTO_TCP, TCP_USER_TIMEOUT, 15000); // where something was sent, nobody probes
}

size_t descriptorLimit() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 1024;
}

int millisecondsUntil(Deadline until) {
  auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1000000000));
}

} // namespace zero::runtime
