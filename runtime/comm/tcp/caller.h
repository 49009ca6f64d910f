// The part of the one that calls in what session.h describes.
#pragma once
#include "runtime/comm/tcp/session.h"
#include <functional>

namespace zero::runtime {

struct Greeting {
  enum class Outcome {
    Welcome,
    Closed,  // before a Welcome: the other one may have had too many callers, and can be called again
    Late,    // `readable` has given up
    Denied,  // the other one says that this one does not know the secret
    Refused, // `words` is the sentence
    Strange, // `words` is a phrase about the other one that goes on "a process that …"
  };
  Outcome outcome{};
  Session session;
  std::string words;
};

// Says who calls over a fresh connection, and shows that both know the secret. `hello.nonce` is drawn here. `readable` waits until the
// socket can be read; false gives up.
Greeting greet(const Socket &socket, const std::string &secret, Hello hello, const std::string &body, const std::function<bool()> &readable);

} // namespace zero::runtime
