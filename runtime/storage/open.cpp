#include "runtime/storage/ring_queue.h"
#include "runtime/storage/storage.h"
#include "runtime/storage/thread_queue.h"
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace zero::runtime {

std::unique_ptr<Storage> openStorage(const std::vector<std::string> &folders, int rank) {
  return std::make_unique<Storage>(folders, rank, ringsAllowed() ? makeRingQueue : makeThreadQueue);
}

std::vector<std::string> storageNotes(const Storage &storage) {
  std::vector<std::string> notes;
  if (!ringsAllowed())
    notes.push_back(
        "io_uring is not allowed here (an old kernel, or a container's seccomp profile): threads read and write the disk, which "
        "is slower");
  if (std::vector<std::string> folders = storage.where().buffered(); !folders.empty())
    notes.push_back(
        fmt::format("the file system of --disk-path '{}' knows no direct transfers: they go through the page cache, which takes "
                    "memory and processor time",
                    fmt::join(folders, "' and '")));
  return notes;
}

} // namespace zero::runtime
