#include "runtime/comm/tcp/caller.h"

namespace zero::runtime {
namespace {

using Outcome = Greeting::Outcome;

void say(const Socket &socket, const std::string &text) {
  // If it fails, the answer says why or is missing.
  sendAll(socket, text.data(), text.size(), std::chrono::steady_clock::now() + std::chrono::seconds(3));
}

// Reads a whole frame, or says why there is none.
std::optional<Greeting> hear(const Socket &socket, FrameReader &reader, const std::function<bool()> &readable) {
  for (;;) {
    switch (reader.read(socket)) {
    case FrameReader::State::Whole:
      return std::nullopt;
    case FrameReader::State::Closed:
      return Greeting{Outcome::Closed, {}, {}};
    case FrameReader::State::Stranger:
    case FrameReader::State::OtherVersion:
      return Greeting{Outcome::Strange, {}, reader.problem()};
    case FrameReader::State::Incomplete:
      if (!readable()) return Greeting{Outcome::Late, {}, {}};
    }
  }
}

} // namespace

Greeting greet(const Socket &socket, const std::string &secret, Hello hello, const std::string &body, const std::function<bool()> &readable) {
  hello.nonce = freshNonce();
  say(socket, frame(Kind::Hello, hello));
  Nonce nonce;
  FrameReader challenge(sizeof nonce);
  if (auto failed = hear(socket, challenge, readable)) return *failed;
  if (challenge.kind() != Kind::Challenge || !read(challenge.body(), nonce))
    return {Outcome::Strange, {}, "sent something else than a challenge"};
  Session session(secret, hello, nonce);
  say(socket, session.seal(Session::From::Caller, hello.purpose, body.data(), body.size()));
  FrameReader answer(kMaxSentence + Session::kTag);
  if (auto failed = hear(socket, answer, readable)) return *failed;
  if (answer.kind() == Kind::Denied) return {Outcome::Denied, {}, {}};
  std::optional<std::string> content = session.open(Session::From::Callee, answer);
  if (!content) return {Outcome::Strange, {}, "does not know the secret of this run"};
  if (answer.kind() == Kind::Refusal) return {Outcome::Refused, {}, *content};
  if (answer.kind() != Kind::Welcome) return {Outcome::Strange, {}, "sent something else than a welcome"};
  return {Outcome::Welcome, std::move(session), {}};
}

} // namespace zero::runtime
