// Takes connections and waits until one of them has greeted with a whole frame. One that says nothing holds nobody up, and one
// that says something else is sent off with a line on stderr.
#pragma once
#include "runtime/comm/tcp/handshake.h"
#include <optional>
#include <vector>

namespace zero::runtime {

struct Arrival {
  Socket socket;
  FrameReader reader;
  bool otherVersion = false;
};

class Acceptor {
public:
  // `maxBytes`: of a greeting.
  Acceptor(const Socket &listener, uint32_t maxBytes) : listener(listener), maxBytes(maxBytes) {}

  // The next greeting, which may be of another version; nothing if there is none until then.
  std::optional<Arrival> next(Deadline until);

  // A connection on which nobody speaks unless the start has failed: next() then throws the reason.
  void watch(const Socket &socket, std::string name) { watched.push_back({&socket, std::move(name)}); }

  void unwatch() { watched.clear(); }

  // Says that an arrival will not be served.
  void sendOff(const Socket &socket, const std::string &problem);

private:
  struct Watched {
    const Socket *socket;
    std::string name;
  };
  void takeNew();
  [[noreturn]] static void failed(const Watched &from);

  const Socket &listener;
  uint32_t maxBytes;
  std::vector<Arrival> waiting; // have not said enough yet
  std::vector<Watched> watched;
  int complaints = 0;
};

} // namespace zero::runtime
