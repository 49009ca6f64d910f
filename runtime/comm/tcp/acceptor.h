// Takes connections and waits until one of them has shown that it knows the secret of this run. Whoever can reach the port may connect,
// say anything or nothing, and as often as it likes: it gets no more than a place among a limited number, a few seconds and a few bytes,
// and is sent off with a line on stderr.
#pragma once
#include "runtime/comm/tcp/session.h"
#include <optional>
#include <vector>

namespace zero::runtime {

// Who has called, and is who it says; it waits for a Welcome or a refusal.
struct Arrival {
  Socket socket;
  Address from;
  Session session;
  Hello hello;
  std::string body; // of its Join or Link

  bool answer(const std::string &frame) const; // false: it has gone
  bool welcome() const { return answer(session.seal(Session::From::Callee, Kind::Welcome, nullptr, 0)); }
};

// A connection over which ranks have met.
struct Line {
  Socket socket;
  Session session;
};

class Acceptor {
public:
  // `purpose`: of the calls that are taken. `self`: the rank that is called. `bytes`: of a body.
  Acceptor(const Socket &listener, Kind purpose, int self, std::string secret, uint32_t bytes);

  // The next one to arrive; nothing if there is none until then.
  std::optional<Arrival> next(Deadline until);

  // A line on which nobody speaks unless the start has failed: next() and wait() then throw the reason.
  void watch(const Line &line, std::string name) { watched.push_back({&line, std::move(name)}); }
  void unwatch() { watched.clear(); }
  // Waits until the socket, if it is one, can be read; false: it is late.
  bool wait(const Socket &socket, Deadline until) const;

  // Says that a connection will not be served.
  void sendOff(const Address &from, const std::string &problem);
  // Drops all that have not arrived.
  void close() { guests.clear(); }

private:
  struct Guest {
    Socket socket;
    Address from; // asked at once: who has hung up has none
    FrameReader reader;
    Deadline until;
    bool challenged = false;
    Hello hello;
    Session session;
  };
  struct Watched {
    const Line *line;
    std::string name;
  };
  enum class Stage { Stays, Goes, Arrives };
  Stage advance(Guest &guest);
  Stage challenge(Guest &guest);
  Stage dismiss(const Guest &guest, const std::string &problem);
  void dismissLate();
  void takeNew();
  Deadline nextDeadline(Deadline until) const;
  [[noreturn]] static void failed(const Watched &from);

  const Socket &listener;
  Kind purpose;
  int self;
  std::string secret;
  uint32_t bytes;
  size_t mostGuests;
  std::vector<Guest> guests; // in the order in which they came
  std::vector<Watched> watched;
  int complaints = 0;
};

} // namespace zero::runtime
