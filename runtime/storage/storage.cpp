#include "runtime/storage/storage.h"
#include "runtime/base/error.h"
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace zero::runtime {
namespace {

const char *adviceFor(int reason) {
  switch (reason) {
  case EIO:
    return "the disk may be failing (dmesg says more); resume from the last checkpoint with --disk-path on another disk";
  case ENOSPC:
  case EDQUOT:
    return "the file system needs room beside what was reserved; free some, or give a folder on another disk with --disk-path";
  default:
    return "give a folder on another disk with --disk-path";
  }
}

} // namespace

Storage::Channel::Channel(std::unique_ptr<RequestQueue> made) : queue(std::move(made)), requests(queue->depth()) {
  for (uint32_t slot = queue->depth(); slot-- > 0;) free.push_back(slot);
}

Storage::Storage(const std::vector<std::string> &folders, int rank, const MakeQueue &make, bool direct)
    : files(folders, rank, direct), make(make), reads(make(files.descriptors())), writes(make(files.descriptors())) {}

void Storage::openScattered() {
  if (!scattered) scattered.emplace(make(files.descriptors()));
}

void Storage::registerMemory(std::span<const std::span<std::byte>> memory) {
  for (Channel *channel : {&reads, &writes}) channel->queue->registerMemory(memory);
}

std::vector<std::string> Storage::notes() const {
  std::vector<std::string> notes;
  for (const Channel *channel : {&reads, &writes})
    if (std::string remark = channel->queue->remark(); !remark.empty() && notes.empty()) notes.push_back(remark);
  if (std::vector<std::string> folders = files.buffered(); !folders.empty())
    notes.push_back(
        fmt::format("the file system of --disk-path '{}' knows no direct transfers: they go through the page cache, which takes "
                    "memory and processor time",
                    fmt::join(folders, "' and '")));
  return notes;
}

// Whether nothing is left of the request; otherwise it is what is left, to be submitted again, or `failure` says why not.
bool Storage::completed(Request &request, int64_t result, std::string &failure) const {
  if (result == request.bytes) return true;
  if (result == -EINTR || result == -EAGAIN) return false;
  std::string what = fmt::format("{} bytes at offset {} of this rank's file in --disk-path '{}'", request.bytes, request.offset,
                                 files.folder(request.file));
  const char *verb = request.writes ? "write" : "read";
  if (result < 0) {
    auto reason = static_cast<int>(-result);
    failure = fmt::format("cannot {} {}: {}; {}", verb, what, std::strerror(reason), adviceFor(reason));
  } else if (auto done = static_cast<uint32_t>(result); done == 0 || done % kBlockBytes != 0) {
    failure =
        fmt::format("cannot {} {}: the transfer ended after {} of them; the file may have been changed, or the disk be failing (dmesg "
                    "says more); {}",
                    verb, what, done, adviceFor(0));
  } else {
    request.offset += done, request.memory += done, request.bytes -= done;
  }
  return false;
}

void Storage::requireInside(const Part &part) const {
  auto [offset, memory, bytes] = part;
  if ((offset | bytes | reinterpret_cast<uintptr_t>(memory)) % kBlockBytes != 0 || bytes > files.size() || offset > files.size() - bytes)
    throw Error(fmt::format("bytes {} to {} of {} on disk were asked for, not in blocks of {}: this is an error in zerorun", offset,
                            offset + bytes, files.size(), kBlockBytes));
}

void Storage::transfer(Channel &channel, bool writing, std::span<const Part> parts) {
  uint64_t bytes = 0;
  for (const Part &part : parts) requireInside(part), bytes += part.bytes;
  std::lock_guard lock(channel.mutex);
  std::string failure; // the first
  uint64_t next = 0;   // byte of the first of `parts`, the next that no request is about yet
  auto anyLeft = [&] {
    for (; !parts.empty() && next == parts.front().bytes; next = 0) parts = parts.subspan(1);
    return !parts.empty();
  };
  while (anyLeft() || channel.free.size() < channel.requests.size()) {
    while (anyLeft() && !channel.free.empty()) {
      uint32_t slot = channel.free.back();
      channel.free.pop_back();
      const Part &from = parts.front();
      DiskFiles::Part part = files.at(from.offset + next, from.bytes - next);
      channel.requests[slot] = {writing, part.file, part.offset, from.memory + next, static_cast<uint32_t>(part.bytes)};
      channel.queue->submit(slot, channel.requests[slot]);
      next += part.bytes;
    }
    // Three quarters of what may be under way keep a disk busy, and at the end all is waited for.
    auto underWay = static_cast<uint32_t>(channel.requests.size() - channel.free.size());
    auto [slot, result] = channel.queue->wait(anyLeft() ? (underWay + 3) / 4 : underWay);
    std::string reason;
    bool done = completed(channel.requests[slot], result, reason);
    if (failure.empty()) failure = std::move(reason);
    if (done || !failure.empty())
      channel.free.push_back(slot);
    else
      channel.queue->submit(slot, channel.requests[slot]);
    if (!failure.empty()) parts = {}; // what is under way still touches the memory, and is waited for
  }
  if (!failure.empty()) throw Error(failure);
  files.requireWhole(); // what was read may have been zeros, and what was written is the last that hides it
  (writing ? writtenBytes : readBytes) += bytes;
}

} // namespace zero::runtime
