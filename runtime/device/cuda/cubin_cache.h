// What the driver made of PTX, kept for the next run: compiling the kernels of a large plan takes it seconds to minutes. It is a cache:
// what cannot be read, or is not whole, is as if it were not there, and what cannot be written is not kept.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace zero::runtime::cuda {

class CubinCache {
public:
  static constexpr uint64_t kMostBytes = uint64_t(512) << 20; // of all files: those that were not used for longest go

  // The folder that ZERORUN_CACHE names (nothing is kept if it is empty), or zerorun in XDG_CACHE_HOME, or in .cache of the home.
  static std::string usualFolder();

  explicit CubinCache(std::string folder, uint64_t mostBytes = kMostBytes) : folder(std::move(folder)), mostBytes(mostBytes) {}

  // `key`: all that the code depends on. Only files of this user that nobody else can write are read, since they are run.
  std::optional<std::vector<std::byte>> find(const std::string &key) const;
  // Under its name when it is whole, whoever writes it at the same time.
  void keep(const std::string &key, std::span<const std::byte> code) const noexcept;

private:
  std::string pathOf(const std::string &key) const;
  void makeRoom() const;

  std::string folder; // empty: none
  uint64_t mostBytes;
};

} // namespace zero::runtime::cuda
