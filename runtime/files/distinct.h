// Files that a command line names, which must not replace each other.
#pragma once
#include <string>
#include <vector>

namespace zero::runtime {

struct NamedFile {
  std::string what, path; // "--metrics", or "the plan"
  bool written;           // or read
};

// Throws a sentence where one that is written is another of them too. What is written to a device replaces nothing.
void requireDistinct(const std::vector<NamedFile> &files);

} // namespace zero::runtime
