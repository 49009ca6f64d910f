#include "runtime/device/cuda/cubin_cache.h"
#include "runtime/base/error.h"
#include "runtime/files/file.h"
#include <algorithm>
#include <array>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <openssl/sha.h>
#include <sys/stat.h>
#include <unistd.h>

namespace zero::runtime::cuda {
namespace {

namespace fs = std::filesystem;

constexpr const char *kEnding = ".cubin";

using Digest = std::array<unsigned char, SHA256_DIGEST_LENGTH>;

Digest digestOf(std::span<const std::byte> bytes) {
  Digest digest;
  SHA256(reinterpret_cast<const unsigned char *>(bytes.data()), bytes.size(), digest.data());
  return digest;
}

} // namespace

std::string CubinCache::usualFolder() {
  if (const char *named = std::getenv("ZERORUN_CACHE")) return named;
  if (const char *caches = std::getenv("XDG_CACHE_HOME"); caches && *caches == '/') return std::string(caches) + "/zerorun";
  if (const char *home = std::getenv("HOME"); home && *home == '/') return std::string(home) + "/.cache/zerorun";
  return "";
}

std::string CubinCache::pathOf(const std::string &key) const {
  std::string name;
  for (unsigned char byte : digestOf(std::as_bytes(std::span(key)))) name += fmt::format("{:02x}", byte);
  return folder + "/" + name + kEnding;
}

// A file is the digest of the code, and the code.
std::optional<std::vector<std::byte>> CubinCache::find(const std::string &key) const try {
  if (folder.empty()) return std::nullopt;
  std::string path = pathOf(key);
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) return std::nullopt;
  File file(descriptor, path);
  struct stat about {};
  Digest digest;
  if (::fstat(descriptor, &about) != 0 || !S_ISREG(about.st_mode) || about.st_uid != ::geteuid() || (about.st_mode & 022) != 0 ||
      about.st_size <= static_cast<off_t>(digest.size()) || static_cast<uint64_t>(about.st_size) > mostBytes)
    return std::nullopt;
  std::vector<std::byte> code(static_cast<size_t>(about.st_size) - digest.size());
  file.read(0, digest.data(), digest.size());
  file.read(digest.size(), code.data(), code.size());
  if (digestOf(code) != digest) return std::nullopt;
  ::futimens(descriptor, nullptr); // used now; if that is refused, it goes earlier
  return code;
} catch (const Error &) { // it cannot be read
  return std::nullopt;
}

// Not a PartialFile, which one writer holds and others may read.
void CubinCache::keep(const std::string &key, std::span<const std::byte> code) const noexcept try {
  if (folder.empty() || code.empty() || code.size() > mostBytes / 2) return;
  makeFolders(folder);
  std::string path = pathOf(key), partial = path + ".XXXXXX";
  int descriptor = ::mkostemp(partial.data(), O_CLOEXEC); // for this user alone
  if (descriptor < 0) return;
  try {
    File file(descriptor, partial);
    Digest digest = digestOf(code);
    file.write(0, digest.data(), digest.size());
    file.write(digest.size(), code.data(), code.size());
    renameOver(partial, path);
  } catch (const Error &) {
    ::unlink(partial.c_str());
  }
  makeRoom();
} catch (const std::exception &) { // it is not kept
}

// Unfinished files that killed runs have left count and go as well.
void CubinCache::makeRoom() const {
  struct Kept {
    fs::file_time_type used;
    uint64_t bytes;
    fs::path path;
  };
  std::vector<Kept> files;
  uint64_t all = 0;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder)) {
    std::error_code gone; // another run may be at it too
    if (entry.path().filename().string().find(kEnding) == std::string::npos || !entry.is_regular_file(gone)) continue;
    Kept kept{entry.last_write_time(gone), entry.file_size(gone), entry.path()};
    if (gone) continue;
    all += kept.bytes;
    files.push_back(std::move(kept));
  }
  std::ranges::sort(files, {}, &Kept::used);
  for (const Kept &oldest : files) {
    if (all <= mostBytes) return;
    std::error_code gone;
    fs::remove(oldest.path, gone);
    all -= oldest.bytes;
  }
}

} // namespace zero::runtime::cuda
