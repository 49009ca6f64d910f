// What processes say to each other before they are ranks of one run: frames of a fixed form. Whoever can reach the port can send
// anything, so nothing in a frame is believed before it was checked.
#pragma once
#include "runtime/comm/peers.h"
#include "runtime/comm/tcp/socket.h"
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

namespace zero::runtime {

enum class Kind : uint32_t {
  Hello = 1, // to whoever listens: who calls whom and what for
  Challenge, // back: a nonce
  Join,      // to rank 0: I am that rank, and this is where I listen
  Link,      // between ranks: I am that rank
  Welcome,   // back
  Table,     // from rank 0: these are all the ranks
  Refusal,   // instead of it: the sentence why there will be no run
  Denied,    // to one that does not know the secret
};
constexpr uint32_t kVersion = 3;

struct FrameHeader {
  std::array<char, 8> magic{'z', 'e', 'r', 'o', 'r', 'u', 'n', '\n'};
  uint32_t version = kVersion; // in the order of bytes of the sender: a machine of another order shows here
  Kind kind{};
  uint32_t bytes = 0;
  uint32_t zero = 0;
};

using Nonce = std::array<uint8_t, 32>; // drawn anew for each connection by each of the two

struct Hello {
  Kind purpose{};                           // Join or Link
  uint32_t rank = 0, world = 0, callee = 0; // the caller's, and whom it calls
  uint32_t mesh = 0;                        // of a Link
  uint32_t zero = 0;
  Nonce nonce{};
};

struct Join {
  uint32_t port = 0; // where this rank listens for the others
  uint32_t zero = 0;
  Peer peer;
};

struct TableEntry {
  Peer peer;
  uint8_t address[16] = {};
  uint32_t family = 0; // 4, 6, or 0: on rank 0's machine, so where rank 0 was reached
  uint32_t port = 0;
};

// Of one run: part of the secret of its links, so that ranks of another run with the same secret, or with none, are strangers.
using Token = std::array<uint64_t, 2>;

constexpr uint32_t kMaxWorld = 65536, kMaxSentence = 4096;
constexpr uint32_t kMaxFrame = sizeof(Token) + kMaxWorld * sizeof(TableEntry);

std::string frame(Kind kind, const void *body, size_t bytes);
template <typename Body> std::string frame(Kind kind, const Body &body) {
  static_assert(std::is_trivially_copyable_v<Body>);
  return frame(kind, &body, sizeof body);
}

// Takes one frame from a socket, as much at a time as is there, and not a byte more.
class FrameReader {
public:
  enum class State { Incomplete, Whole, Closed, Stranger, OtherVersion };
  explicit FrameReader(uint32_t maxBytes) : maxBytes(maxBytes) {}

  State read(const Socket &socket);
  Kind kind() const { return header.kind; }
  const std::string &body() const { return content; }
  // Of a stranger or another version: a phrase that goes on "a process that …".
  const std::string &problem() const { return what; }

private:
  State checkHeader();

  uint32_t maxBytes;
  size_t have = 0; // of header and body together
  FrameHeader header;
  std::string content, what;
};

// Waits for a whole frame; Incomplete: it was too late.
FrameReader::State await(const Socket &socket, FrameReader &reader, Deadline until);

// A body as the structure that it should be; false: it has another length.
template <typename Body> bool read(const std::string &content, Body &body) {
  static_assert(std::is_trivially_copyable_v<Body>);
  if (content.size() != sizeof body) return false;
  std::memcpy(static_cast<void *>(&body), content.data(), sizeof body);
  return true;
}

void makePrintable(Peer &peer); // a host's name from the network

} // namespace zero::runtime
