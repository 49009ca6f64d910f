// The signature of a plan file: Ed25519 by libcrypto, over every byte before the trailer that holds it.
//
//   bytes 0..7    "ZEROSIGN"
//   bytes 8..39   public key, as RFC 8032 writes it
//   bytes 40..103 signature of all bytes of the file before the trailer
//
// Keys are PEM files as `openssl genpkey -algorithm ed25519 -out KEY` and `openssl pkey -in KEY -pubout -out PUBKEY` make them.
// A key that comes with the file says who claims to have signed it; only a reader's own copy of that key says who has.
#pragma once
#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace zero::plan {

struct PublicKey {
  std::array<unsigned char, 32> bytes{};
  bool operator==(const PublicKey &) const = default;
  // SHA-256 of the key in DER form, 64 hexadecimal digits: what `openssl pkey -pubin -in PUBKEY -outform DER | sha256sum` prints.
  std::string fingerprint() const;
};

struct Signature {
  static constexpr size_t kTrailer = 104; // bytes
  PublicKey key;
  std::array<unsigned char, 64> bytes{};
  bool holds(std::span<const std::byte> content) const;
  std::array<std::byte, kTrailer> trailer() const;
};

// The signature in the last bytes of a file; none if they are something else.
std::optional<Signature> readTrailer(std::span<const std::byte> bytes);

// Both throw a sentence that names the file if it cannot be read or holds another kind of key.
PublicKey readPublicKey(const std::string &path);

class SigningKey {
public:
  explicit SigningKey(const std::string &path);
  Signature sign(std::span<const std::byte> content) const;

private:
  std::shared_ptr<void> key; // of libcrypto
  PublicKey own;
};

} // namespace zero::plan
