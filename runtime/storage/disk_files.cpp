#include "runtime/storage/disk_files.h"
#include "runtime/base/error.h"
#include "runtime/files/file.h"
#include "runtime/base/why_not_written.h"
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace zero::runtime {
namespace {

std::string prepared(const std::string &folder) {
  try {
    makeFolders(folder);
  } catch (const Error &error) {
    throw Error(fmt::format("--disk-path '{}' cannot be used: {}", folder, error.what()));
  }
  if (kindOf(folder) != std::filesystem::file_type::directory)
    throw Error(fmt::format("--disk-path '{}' is no folder; give one on the disk that shall be used", folder));
  return folder;
}

// Takes its name away at once: from here on only the descriptor keeps the file. What a process left that was killed between the two calls
// is in nobody's use, because the rank's number is locked.
int openUnnamed(const std::string &folder, int rank) {
  std::string path = fmt::format("{}/rank-{}.state", folder, rank);
  ::unlink(path.c_str());
  int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0)
    throw Error(
        fmt::format("cannot create a file in --disk-path '{}': {}; name a folder that can be written to", folder, std::strerror(errno)));
  ::unlink(path.c_str());
  return fd;
}

Error lockRefused(const std::string &path, int reason) {
  struct stat named = {};
  if (::lstat(path.c_str(), &named) == 0 && named.st_uid != ::geteuid())
    return Error(
        fmt::format("cannot open '{}' in --disk-path: {}; it belongs to another user, and may be removed if no run of theirs is at "
                    "work there; or name another folder",
                    path, std::strerror(reason)));
  return Error(fmt::format("cannot create '{}' in --disk-path: {}; name a folder that can be written to", path, std::strerror(reason)));
}

// File systems that write in place. Others (btrfs, NFS) may count other blocks after every write.
bool writesInPlace(int fd) {
  struct statfs info = {};
  return ::fstatfs(fd, &info) == 0 && (info.f_type == EXT4_SUPER_MAGIC || info.f_type == XFS_SUPER_MAGIC || info.f_type == TMPFS_MAGIC);
}

// File systems that have no size do not tell.
uint64_t freeIn(int fd) {
  struct statvfs info = {};
  if (::fstatvfs(fd, &info) != 0) return 0;
  return info.f_blocks ? uint64_t(info.f_bavail) * info.f_frsize : UINT64_MAX;
}

} // namespace

RankLock::RankLock(const std::string &folder, int rank) : file(fmt::format("{}/rank-{}.lock", folder, rank)) {
  if (file.refusal() == EWOULDBLOCK)
    throw Error(fmt::format("--disk-path '{}' is used by another run, whose rank {} is at work there; wait for its end, or name another "
                            "folder",
                            folder, rank));
  if (file.refusal()) throw lockRefused(file.path(), file.refusal());
}

DiskFiles::DiskFile::DiskFile(const std::string &folder, int rank, bool direct)
    : folder(prepared(folder)), lock(folder, rank), file(openUnnamed(folder, rank)) {
  // Not in open(): file systems that refuse it there create the file nevertheless.
  this->direct = direct && ::fcntl(file.get(), F_SETFL, O_DIRECT) == 0;
}

// Returns an errno, or 0.
int DiskFiles::DiskFile::reserve(uint64_t bytes) {
  for (;;) {
    if (::fallocate(file.get(), 0, static_cast<off_t>(size), static_cast<off_t>(bytes - size)) == 0) {
      keepsBlocks = writesInPlace(file.get());
      return 0;
    }
    if (errno == EOPNOTSUPP || errno == ENOSYS) return ::ftruncate(file.get(), static_cast<off_t>(bytes)) == 0 ? 0 : errno;
    if (errno != EINTR) return errno;
  }
}

void DiskFiles::DiskFile::requireWhole() const {
  constexpr uint64_t kUnit = 512; // of st_blocks
  struct stat info = {};
  if (::fstat(file.get(), &info) != 0)
    throw Error(fmt::format("cannot look at this rank's file in --disk-path '{}': {}", folder, std::strerror(errno)));
  uint64_t length = static_cast<uint64_t>(info.st_size), blocks = static_cast<uint64_t>(info.st_blocks) * kUnit;
  if (length >= size && (!keepsBlocks || blocks >= size)) return;
  throw Error(
      fmt::format("this rank's file in --disk-path '{}' has lost {} of its {} bytes while it was in use: it was cut short, or the disk "
                  "is failing; what was kept there is gone: resume from the last checkpoint",
                  folder, size - std::min(length, keepsBlocks ? blocks : length), size));
}

void DiskFiles::DiskFile::grow(uint64_t bytes) {
  if (bytes == size) return;
  uint64_t wanted = bytes - size, free = freeIn(file.get());
  int failed = wanted > free ? ENOSPC : reserve(bytes); // asked in vain, the system fills the disk for everybody before it refuses
  if (failed == ENOSPC || failed == EDQUOT)
    throw Error(fmt::format("no room for what this rank keeps on disk: {} bytes were wanted in --disk-path '{}', where {} are free; give a "
                            "folder on a larger disk, or several disks (--disk-path A,B)",
                            wanted, folder, free));
  if (failed == EFBIG)
    throw Error(fmt::format("cannot reserve {} bytes in --disk-path '{}': {}; raise that limit, or give several disks (--disk-path A,B)",
                            wanted, folder, whyNotWritten(failed)));
  if (failed)
    throw Error(fmt::format("cannot reserve {} bytes in --disk-path '{}': {}; name a folder on another file system", wanted, folder,
                            std::strerror(failed)));
  bool first = size == 0;
  size = bytes;
  if (first && direct) probe();
}

// Some file systems accept the flag and refuse the transfers, or want larger blocks.
void DiskFiles::DiskFile::probe() {
  std::unique_ptr<void, decltype(&std::free)> zeros(std::aligned_alloc(kBlockBytes, kBlockBytes), std::free);
  if (!zeros) throw Error("this process cannot get the memory it needs");
  std::memset(zeros.get(), 0, kBlockBytes);
  if (::pwrite(file.get(), zeros.get(), kBlockBytes, 0) >= 0 || errno != EINVAL) return; // other errors are found by who writes
  direct = false;
  if (::fcntl(file.get(), F_SETFL, 0) != 0)
    throw Error(fmt::format("cannot use the file in --disk-path '{}': {}", folder, std::strerror(errno)));
}

DiskFiles::DiskFiles(const std::vector<std::string> &folders, int rank, bool direct) {
  std::error_code failed;
  for (size_t i = 0; i < folders.size(); ++i) {
    if (folders[i].empty()) throw Error("--disk-path names an empty folder; expected DIR[,DIR…]");
    for (size_t j = 0; j < i; ++j)
      if (std::filesystem::equivalent(folders[i], folders[j], failed))
        throw Error(fmt::format("--disk-path names the folder '{}' twice; give each disk once", folders[i]));
    files.push_back(std::make_unique<DiskFile>(folders[i], rank, direct));
  }
}

uint64_t DiskFiles::allocate(uint64_t bytes) {
  uint64_t first = allocated, total = allocated + (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
  uint64_t stripes = total / kStripeBytes, rest = total % kStripeBytes, disks = files.size();
  for (uint64_t disk = 0; disk < disks; ++disk)
    files[disk]->grow((stripes / disks + (disk < stripes % disks)) * kStripeBytes + (disk == stripes % disks ? rest : 0));
  allocated = total;
  return first;
}

DiskFiles::Part DiskFiles::at(uint64_t offset, uint64_t bytes) const {
  if (files.size() == 1) return {0, offset, std::min(bytes, kLargestRequestBytes)};
  uint64_t stripe = offset / kStripeBytes, within = offset % kStripeBytes;
  return {static_cast<uint32_t>(stripe % files.size()), stripe / files.size() * kStripeBytes + within,
          std::min(bytes, kStripeBytes - within)};
}

void DiskFiles::requireWhole() const {
  for (const auto &file : files) file->requireWhole();
}

std::vector<int> DiskFiles::descriptors() const {
  std::vector<int> all;
  for (const auto &file : files) all.push_back(file->file.get());
  return all;
}

std::vector<std::string> DiskFiles::buffered() const {
  std::vector<std::string> folders;
  for (const auto &file : files)
    if (!file->direct) folders.push_back(file->folder);
  return folders;
}

} // namespace zero::runtime
