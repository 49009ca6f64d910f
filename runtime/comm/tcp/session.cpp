#include "runtime/comm/tcp/session.h"
#include "runtime/base/error.h"
#include <algorithm>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

namespace zero::runtime {
namespace {

std::string hmac(const std::string &key, const std::string &text) {
  std::string result(Session::kTag, 0);
  unsigned length = 0;
  if (!HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char *>(text.data()), text.size(),
            reinterpret_cast<unsigned char *>(result.data()), &length) ||
      length != Session::kTag)
    throw Error("this machine's OpenSSL cannot compute HMAC-SHA256, with which ranks know each other");
  return result;
}

template <typename T> std::string bytesOf(const T &value) { return {reinterpret_cast<const char *>(&value), sizeof value}; }

} // namespace

Nonce freshNonce() {
  Nonce nonce;
  if (RAND_bytes(nonce.data(), static_cast<int>(nonce.size())) != 1)
    throw Error("this machine has no random numbers, which ranks need to know each other");
  return nonce;
}

Session::Session(const std::string &secret, const Hello &hello, const Nonce &callee)
    : key(hmac(secret, "zerorun session" + bytesOf(hello) + bytesOf(callee))) {}

std::string Session::tag(From from, Kind kind, const void *body, size_t bytes) const {
  std::string text = bytesOf(from) + bytesOf(kind);
  return hmac(key, text.append(static_cast<const char *>(body), bytes));
}

std::string Session::seal(From from, Kind kind, const void *body, size_t bytes) const {
  std::string content(static_cast<const char *>(body), bytes);
  content += tag(from, kind, body, bytes);
  return frame(kind, content.data(), content.size());
}

std::string Session::refusal(const std::string &sentence) const {
  return seal(From::Callee, Kind::Refusal, sentence.data(), std::min<size_t>(sentence.size(), kMaxSentence));
}

std::optional<std::string> Session::open(From from, const FrameReader &frame) const {
  const std::string &content = frame.body();
  if (content.size() < kTag) return std::nullopt;
  size_t bytes = content.size() - kTag;
  std::string expected = tag(from, frame.kind(), content.data(), bytes);
  if (CRYPTO_memcmp(expected.data(), content.data() + bytes, kTag) != 0) return std::nullopt; // takes the same time for every difference
  return content.substr(0, bytes);
}

} // namespace zero::runtime
