// Messages over one mesh of connections. In each direction of each connection messages follow each other, every one after its
// length, so that ranks that do not agree notice it.
#pragma once
#include "runtime/comm/collectives.h"
#include "runtime/comm/patience.h"
#include "runtime/comm/tcp/socket.h"
#include <poll.h>
#include <vector>

namespace zero::runtime {

class TcpCommunicator final : public MessageCommunicator {
public:
  TcpCommunicator(std::vector<Socket> links, const Peers &peers, int self);
  void interrupt() override;

private:
  // What is still to be moved of a message in one direction.
  struct Part {
    char *data = nullptr;
    uint64_t left = 0;       // bytes of data
    uint64_t length = 0;     // what goes before the data: its number of bytes
    uint64_t lengthLeft = 0; // bytes of it
    bool pending() const { return lengthLeft + left > 0; }
  };
  struct Exchange {
    Part in, out;
    uint64_t expected = 0; // of the message that comes in
  };

  void receive(void *data, uint64_t bytes, int peer) override;
  void send(const void *data, uint64_t bytes, int peer) override;
  void begin(const char *what) override;
  void complete(const char *what) override;

  bool moveAll(const char *what);
  void move(int peer, const char *what); // as much as can be moved at once
  void take(int peer, const char *what);
  void give(int peer, const char *what);
  [[noreturn]] void lost(int peer, const char *what);
  uint64_t left() const; // bytes, of all exchanges
  Awaited awaited() const;

  std::vector<Socket> links;
  std::vector<Exchange> exchanges;
  std::vector<pollfd> entries; // of each peer, and after them of `wake`
  Socket wake;                 // readable once interrupted
  const Peers &peers;
  Patience patience;
};

} // namespace zero::runtime
