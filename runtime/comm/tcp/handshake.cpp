#include "runtime/comm/tcp/handshake.h"
#include <algorithm>
#include <cerrno>
#include <fmt/format.h>

namespace zero::runtime {

std::string frame(Kind kind, const void *body, size_t bytes) {
  FrameHeader header;
  header.kind = kind;
  header.bytes = static_cast<uint32_t>(bytes);
  std::string result(reinterpret_cast<const char *>(&header), sizeof header);
  return result.append(static_cast<const char *>(body), bytes);
}

FrameReader::State FrameReader::read(const Socket &socket) {
  for (;;) {
    bool inHeader = have < sizeof header;
    char *to = inHeader ? reinterpret_cast<char *>(&header) + have : content.data() + (have - sizeof header);
    size_t want = inHeader ? sizeof header - have : content.size() - (have - sizeof header);
    if (!inHeader && want == 0) return State::Whole;
    ssize_t got = ::recv(socket.fd(), to, want, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return State::Incomplete;
    if (got <= 0) return State::Closed;
    have += static_cast<size_t>(got);
    // Who greets in another way is sent off at its first bytes: it may never send as many as a header has.
    if (inHeader && std::memcmp(&header, FrameHeader().magic.data(), std::min<size_t>(have, 8)) != 0) {
      what = "does not speak as zerorun does";
      return State::Stranger;
    }
    if (inHeader && have == sizeof header)
      if (State state = checkHeader(); state != State::Incomplete) return state;
  }
}

FrameReader::State FrameReader::checkHeader() {
  if (header.version != kVersion) {
    what = fmt::format("speaks version {} of zerorun's protocol, where this one speaks version {}; start the same zerorun everywhere",
                       header.version, kVersion);
    return State::OtherVersion;
  }
  if (header.kind < Kind::Hello || header.kind > Kind::Denied) {
    what = fmt::format("sent a message of the unknown kind {}", static_cast<uint32_t>(header.kind));
    return State::Stranger;
  }
  if (header.bytes > maxBytes) {
    what = fmt::format("announced a message of {} bytes, where at most {} can be", header.bytes, maxBytes);
    return State::Stranger;
  }
  content.resize(header.bytes);
  return State::Incomplete;
}

FrameReader::State await(const Socket &socket, FrameReader &reader, Deadline until) {
  for (;;) {
    FrameReader::State state = reader.read(socket);
    if (state != FrameReader::State::Incomplete || !awaitReadable(socket, until)) return state;
  }
}

void makePrintable(Peer &peer) {
  peer.host[sizeof peer.host - 1] = peer.machine[sizeof peer.machine - 1] = 0;
  for (char &c : peer.host)
    if (c && (c <= ' ' || c > '~')) c = '?';
}

} // namespace zero::runtime
