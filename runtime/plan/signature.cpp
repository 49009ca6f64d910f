#include "runtime/plan/signature.h"
#include "runtime/base/error.h"
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <openssl/x509.h>
#include <sys/stat.h>

namespace zero::plan {
namespace {

constexpr char kMagic[9] = "ZEROSIGN";

const unsigned char *raw(std::span<const std::byte> bytes) { return reinterpret_cast<const unsigned char *>(bytes.data()); }

template <auto release> struct Release {
  template <typename T> void operator()(T *object) const { release(object); }
};
using Key = std::unique_ptr<EVP_PKEY, Release<EVP_PKEY_free>>;
using Context = std::unique_ptr<EVP_MD_CTX, Release<EVP_MD_CTX_free>>;
using File = std::unique_ptr<FILE, Release<std::fclose>>;

File open(const std::string &path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a pipe is refused, not waited for
  struct stat info = {};
  File file(fd < 0 ? nullptr : ::fdopen(fd, "r"));
  if (!file) throw Error("cannot open the key '" + path + "': " + std::strerror(errno));
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) throw Error("cannot read the key '" + path + "': it is no regular file");
  return file;
}

bool isEd25519(const Key &key) { return key && EVP_PKEY_get_id(key.get()) == EVP_PKEY_ED25519; }

PublicKey publicPart(EVP_PKEY *key) {
  PublicKey part;
  size_t size = part.bytes.size();
  if (EVP_PKEY_get_raw_public_key(key, part.bytes.data(), &size) != 1 || size != part.bytes.size())
    throw Error("the cryptographic library does not give the public part of a key");
  return part;
}

Key keyOf(const PublicKey &key) { return Key(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, key.bytes.data(), key.bytes.size())); }

} // namespace

std::string PublicKey::fingerprint() const {
  Key key = keyOf(*this);
  unsigned char *der = nullptr;
  int size = key ? i2d_PUBKEY(key.get(), &der) : -1;
  if (size < 0) throw Error("the cryptographic library does not write a public key");
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(der, static_cast<size_t>(size), digest);
  OPENSSL_free(der);
  std::string text;
  for (unsigned char byte : digest) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

bool Signature::holds(std::span<const std::byte> content) const {
  Key public_ = keyOf(key);
  Context context(EVP_MD_CTX_new());
  return public_ && context && EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, public_.get()) == 1 &&
         EVP_DigestVerify(context.get(), bytes.data(), bytes.size(), raw(content), content.size()) == 1;
}

std::array<std::byte, Signature::kTrailer> Signature::trailer() const {
  std::array<std::byte, kTrailer> trailer;
  std::memcpy(trailer.data(), kMagic, 8);
  std::memcpy(trailer.data() + 8, key.bytes.data(), 32);
  std::memcpy(trailer.data() + 40, bytes.data(), 64);
  return trailer;
}

std::optional<Signature> readTrailer(std::span<const std::byte> bytes) {
  if (bytes.size() != Signature::kTrailer || std::memcmp(bytes.data(), kMagic, 8) != 0) return std::nullopt;
  Signature signature;
  std::memcpy(signature.key.bytes.data(), bytes.data() + 8, 32);
  std::memcpy(signature.bytes.data(), bytes.data() + 40, 64);
  return signature;
}

PublicKey readPublicKey(const std::string &path) {
  Key key(PEM_read_PUBKEY(open(path).get(), nullptr, nullptr, nullptr));
  if (!isEd25519(key))
    throw Error("'" + path + "' holds no public Ed25519 key in PEM form; `openssl pkey -in KEY -pubout -out " + path +
                "` makes it of the private one");
  return publicPart(key.get());
}

SigningKey::SigningKey(const std::string &path) {
  Key read(PEM_read_PrivateKey(open(path).get(), nullptr, nullptr, nullptr));
  if (!isEd25519(read))
    throw Error("'" + path + "' holds no private Ed25519 key in PEM form; `openssl genpkey -algorithm ed25519 -out " + path +
                "` makes one");
  own = publicPart(read.get());
  key = std::move(read);
}

Signature SigningKey::sign(std::span<const std::byte> content) const {
  Signature signature{own, {}};
  size_t size = signature.bytes.size();
  Context context(EVP_MD_CTX_new());
  if (!context || EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, static_cast<EVP_PKEY *>(key.get())) != 1 ||
      EVP_DigestSign(context.get(), signature.bytes.data(), &size, raw(content), content.size()) != 1)
    throw Error("the cryptographic library cannot sign");
  return signature;
}

} // namespace zero::plan
