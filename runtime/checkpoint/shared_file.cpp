#include "runtime/checkpoint/shared_file.h"
#include "runtime/plan/paths.h"
#include <cstdio>

namespace zero::runtime {

SharedFile::SharedFile(const std::string &path, Communicator &communicator, const std::function<void(const File &)> &prepare)
    : path(plan::replaceable(path)), communicator(communicator) {
  if (communicator.rank() == 0) {
    own = std::make_unique<PartialFile>(this->path);
    prepare(own->file());
    own->file().sync(); // before others write beside it: on a network's file system this machine's pages would overwrite theirs later
  }
  communicator.barrier();
  if (!own) others = std::make_unique<File>(PartialFile::nameOf(this->path), File::Mode::Update);
}

SharedFile::~SharedFile() {
  if (others && !published) std::remove(PartialFile::nameOf(path).c_str()); // rank 0 may not come to it
}

void SharedFile::barrier() {
  file().sync();
  communicator.barrier();
  file().forget();
}

void SharedFile::publish() {
  barrier();
  if (own) own->publish();
  published = true;
  communicator.barrier();
}

} // namespace zero::runtime
