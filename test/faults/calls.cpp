#include "test/faults/calls.h"
#include <algorithm>
#include <fcntl.h>
#include <filesystem>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

namespace zero::faults {
namespace {

using Place = FileCall::Place;

constexpr Place path(int at) { return {.path = at}; }
constexpr Place pathAt(int directory, int at) { return {.path = at, .directory = directory}; }
constexpr Place descriptor(int at) { return {.descriptor = at}; }

constexpr FileCall kCalls[] = {
    {SYS_open, "open", path(0), {}, false, false, -1, 1},
    {SYS_openat, "openat", pathAt(0, 1), {}, false, false, -1, 2},
    {SYS_creat, "creat", path(0), {}, true, true},
    {SYS_close, "close", descriptor(0), {}, false, false},
    {SYS_read, "read", descriptor(0), {}, false, false, 2},
    {SYS_pread64, "pread", descriptor(0), {}, false, false, 2},
    {SYS_readv, "readv", descriptor(0), {}, false, false, 2},
    {SYS_preadv, "preadv", descriptor(0), {}, false, false, 2},
    {SYS_write, "write", descriptor(0), {}, true, true, 2},
    {SYS_pwrite64, "pwrite", descriptor(0), {}, true, true, 2},
    {SYS_writev, "writev", descriptor(0), {}, true, true, 2},
    {SYS_pwritev, "pwritev", descriptor(0), {}, true, true, 2},
    {SYS_copy_file_range, "copy_file_range", descriptor(2), descriptor(0), true, true, 4},
    {SYS_sendfile, "sendfile", descriptor(0), descriptor(1), true, true, 3},
    {SYS_mmap, "mmap", descriptor(4), {}},
    {SYS_fsync, "fsync", descriptor(0), {}, true, false},
    {SYS_fdatasync, "fdatasync", descriptor(0), {}, true, false},
    {SYS_sync_file_range, "sync_file_range", descriptor(0), {}, true, false},
    {SYS_ftruncate, "ftruncate", descriptor(0), {}, true, false},
    {SYS_truncate, "truncate", path(0), {}, true, false},
    {SYS_fallocate, "fallocate", descriptor(0), {}, true, true},
    {SYS_flock, "flock", descriptor(0), {}},
    {SYS_stat, "stat", path(0), {}},
    {SYS_lstat, "lstat", path(0), {}},
    {SYS_fstat, "fstat", descriptor(0), {}},
    {SYS_newfstatat, "newfstatat", {.path = 1, .directory = 0, .descriptor = 0}, {}},
    {SYS_statx, "statx", {.path = 1, .directory = 0, .descriptor = 0}, {}},
    {SYS_access, "access", path(0), {}},
    {SYS_faccessat, "faccessat", pathAt(0, 1), {}},
    {SYS_faccessat2, "faccessat2", pathAt(0, 1), {}},
    {SYS_readlink, "readlink", path(0), {}},
    {SYS_readlinkat, "readlinkat", pathAt(0, 1), {}},
    {SYS_statfs, "statfs", path(0), {}},
    {SYS_fstatfs, "fstatfs", descriptor(0), {}},
    {SYS_getdents64, "getdents64", descriptor(0), {}},
    {SYS_mkdir, "mkdir", path(0), {}, true, true},
    {SYS_mkdirat, "mkdirat", pathAt(0, 1), {}, true, true},
    {SYS_rmdir, "rmdir", path(0), {}, true, false},
    {SYS_unlink, "unlink", path(0), {}, true, false},
    {SYS_unlinkat, "unlinkat", pathAt(0, 1), {}, true, false},
    {SYS_rename, "rename", path(1), path(0), true, false},
    {SYS_renameat, "renameat", pathAt(2, 3), pathAt(0, 1), true, false},
    {SYS_renameat2, "renameat2", pathAt(2, 3), pathAt(0, 1), true, false},
    {SYS_link, "link", path(1), path(0), true, true},
    {SYS_linkat, "linkat", pathAt(2, 3), pathAt(0, 1), true, true},
    {SYS_symlink, "symlink", path(1), {}, true, true},
    {SYS_symlinkat, "symlinkat", pathAt(1, 2), {}, true, true},
    {SYS_chmod, "chmod", path(0), {}, true, false},
    {SYS_fchmod, "fchmod", descriptor(0), {}, true, false},
    {SYS_fchmodat, "fchmodat", pathAt(0, 1), {}, true, false},
};

std::string linkText(const std::string &link) {
  char text[4096];
  ssize_t length = ::readlink(link.c_str(), text, sizeof text);
  return length < 0 ? "" : std::string(text, static_cast<size_t>(length));
}

std::string openFile(pid_t thread, int fd) {
  std::string of = "/proc/" + std::to_string(thread);
  return linkText(fd == AT_FDCWD ? of + "/cwd" : of + "/fd/" + std::to_string(fd));
}

// A string of the stopped thread's memory, read up to the end of each page: what follows may not be mapped.
std::string stringAt(pid_t thread, uint64_t address) {
  constexpr uint64_t kPage = 4096;
  std::string text;
  while (text.size() < kPage) {
    char part[kPage];
    size_t size = kPage - address % kPage;
    iovec mine{part, size}, theirs{reinterpret_cast<void *>(address), size};
    ssize_t done = process_vm_readv(thread, &mine, 1, &theirs, 1, 0);
    if (done <= 0) break;
    size_t end = std::find(part, part + done, '\0') - part;
    text.append(part, end);
    if (end < static_cast<size_t>(done)) break;
    address += static_cast<uint64_t>(done);
  }
  return text;
}

std::string nameOf(pid_t thread, const Place &place, const uint64_t *args) {
  std::string name = place.path >= 0 ? stringAt(thread, args[place.path]) : "";
  if (name.empty()) return place.descriptor >= 0 ? openFile(thread, static_cast<int>(args[place.descriptor])) : "";
  if (name[0] != '/') name = openFile(thread, place.directory < 0 ? AT_FDCWD : static_cast<int>(args[place.directory])) + "/" + name;
  name = std::filesystem::path(name).lexically_normal().string();
  return name.size() > 1 && name.ends_with('/') ? name.substr(0, name.size() - 1) : name;
}

bool under(const std::string &name, std::span<const std::string> folders) {
  return std::any_of(folders.begin(), folders.end(), [&](const std::string &folder) {
    return name.starts_with(folder) && (name.size() == folder.size() || name[folder.size()] == '/');
  });
}

} // namespace

std::span<const FileCall> fileCalls() { return kCalls; }

const FileCall *findCall(uint64_t number) {
  auto found =
      std::find_if(std::begin(kCalls), std::end(kCalls), [&](const FileCall &c) { return static_cast<uint64_t>(c.number) == number; });
  return found == std::end(kCalls) ? nullptr : found;
}

bool touches(pid_t thread, const FileCall &call, const uint64_t *args, std::span<const std::string> folders, Seen &seen) {
  seen = {&call, "", "", call.changes, call.fills};
  for (const Place &place : {call.first, call.second}) {
    std::string name = nameOf(thread, place, args);
    if (under(name, folders)) (seen.path.empty() ? seen.path : seen.other) = name;
  }
  if (call.flags >= 0) {
    uint64_t flags = args[call.flags];
    bool makes = flags & O_CREAT && ::access(seen.path.c_str(), F_OK) != 0;
    seen.changes = makes || flags & O_TRUNC;
    seen.fills = makes;
  }
  return !seen.path.empty();
}

} // namespace zero::faults
