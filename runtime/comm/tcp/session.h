// What two processes that know the secret of a run say to each other over one connection, so that each knows it is the other: every
// message carries an HMAC-SHA256 under a key that no other connection has. Messages are not encrypted. A caller begins:
//
//   caller → Hello      who calls whom, what for, and a nonce of its own        nothing of it is secret or believed
//   callee → Challenge  a nonce of its own
//   caller → Join, Link with an HMAC over both nonces and all of Hello           the caller knows the secret
//   callee → Welcome    with an HMAC, too; or Denied or a Refusal                the callee knows it as well
//
// A recorded handshake is worth nothing later, or elsewhere: nonces are fresh, and rank, world and purpose are under the HMAC.
#pragma once
#include "runtime/comm/tcp/handshake.h"
#include <optional>
#include <string>

namespace zero::runtime {

Nonce freshNonce();

class Session {
public:
  static constexpr uint32_t kTag = 32; // bytes of an HMAC, after each message
  enum class From : uint8_t { Caller = 'C', Callee = 'S' };

  Session() = default;
  // `secret`: of the run; may be empty. `callee`: the nonce of the one that was called.
  Session(const std::string &secret, const Hello &hello, const Nonce &callee);

  // A frame of this body and its HMAC.
  std::string seal(From from, Kind kind, const void *body, size_t bytes) const;
  std::string refusal(const std::string &sentence) const; // from the callee
  // The body of a whole frame; nothing if it is not from there, or was changed.
  std::optional<std::string> open(From from, const FrameReader &frame) const;

private:
  std::string tag(From from, Kind kind, const void *body, size_t bytes) const;

  std::string key;
};

} // namespace zero::runtime
