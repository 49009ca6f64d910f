// TCP sockets, the little that is needed of them: all of them do not block, and no function waits without an end.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <sys/socket.h>
#include <utility>
#include <vector>

namespace zero::runtime {

using Deadline = std::chrono::steady_clock::time_point;

class Socket {
public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor(descriptor) {}
  Socket(Socket &&other) noexcept : descriptor(std::exchange(other.descriptor, -1)) {}
  Socket &operator=(Socket &&other) noexcept {
    std::swap(descriptor, other.descriptor);
    return *this;
  }
  ~Socket();
  int fd() const { return descriptor; }
  explicit operator bool() const { return descriptor >= 0; }

private:
  int descriptor = -1;
};

// What one thread makes readable for another one that waits at sockets (eventfd).
Socket makeEvent();
// What is said where this process may open no more of them.
inline constexpr const char *kTooManyFiles =
    "this process may not open as many files and connections as the run needs; raise the limit with ulimit -n";

// An IPv4 or IPv6 address with a port.
struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;

  static Address of(const uint8_t bytes[16], bool six, uint16_t port); // bytes of IPv4 first, then zeros
  void bytes(uint8_t out[16]) const;
  bool six() const { return storage.ss_family == AF_INET6; }
  uint16_t port() const;
  Address withPort(uint16_t port) const;
  bool loopback() const;
  std::string text() const; // "10.0.0.1:29500", "[::1]:29500"
};

Address localAddress(const Socket &socket);
Address peerAddress(const Socket &socket); // an IPv4 address also where IPv6 carries it

// All addresses of a name, in the order to try them; if there is none, `why` says so.
std::vector<Address> resolve(const std::string &host, uint16_t port, std::string &why);
// Whether others on the same machine only can mean it: a loopback address, or "localhost".
bool namesLoopback(const std::string &host);

// A listener at this address or, with nothing else than a port, at all addresses of this machine. No socket: `why` says the reason.
Socket listenAt(const Address &address, std::string &why);
Socket listenEverywhere(uint16_t port, std::string &why);
Socket acceptFrom(const Socket &listener); // no socket: nobody waits
Socket connectTo(const Address &address, Deadline until, std::string &why);

enum class Transfer { Done, Closed, Late };
Transfer sendAll(const Socket &socket, const void *data, size_t bytes, Deadline until);
// Waits until the socket can be read; false: it is late. Signals do not end the wait.
bool awaitReadable(const Socket &socket, Deadline until);

// Room for large messages at once, where the system would begin with little and learn from the reader's pace: a reader that must first
// get a processor is slow. Unlike a fixed size of the buffer this is not cut down to what the machine allows to fixed ones.
void makeRoom(const Socket &socket);

// Lets an idle connection to a machine that has vanished fail after about a quarter of a minute. Not for data: a rank that is
// busy with something else leaves its messages unread for as long as it needs, and the system would count that, too.
void watchMachine(const Socket &socket);
size_t descriptorLimit();

int millisecondsUntil(Deadline until); // for poll: rounded up, from 0

} // namespace zero::runtime
