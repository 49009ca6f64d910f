#include "runtime/files/partial_file.h"
#include <cstdio>

namespace zero::runtime {

PartialFile::PartialFile(const std::string &path) : path(path), file_(nameOf(path), File::Mode::Create) {}

PartialFile::~PartialFile() {
  if (!published) std::remove(nameOf(path).c_str());
}

void PartialFile::publish() {
  file_.sync();
  renameOver(nameOf(path), path);
  published = true;
  syncDirectory(parentOf(path));
}

} // namespace zero::runtime
