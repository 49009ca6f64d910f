// A shared library of CUDA, opened at run time, so that one program runs on machines with and without it.
#pragma once
#include <string>
#include <vector>

namespace zero::runtime::cuda {

// What is wanted: names of the file, the first that is found counts.
struct LibraryNames {
  const char *what;                // "the CUDA driver", for sentences
  std::vector<const char *> files; // "libcuda.so.1"
  bool inToolkits;                 // whether toolkits and Python wheels bring it; the driver belongs to the machine
  const char *advice;              // how to come by it, the end of a sentence
};

class Library {
public:
  // Looks in the folders of ZERO_CUDA_LIBRARIES (separated by ':'), then where the loader looks, then in toolkits and Python wheels. It
  // stays open until the process ends: others may hold pointers into it. Throws a sentence if it is nowhere, or cannot be opened.
  explicit Library(const LibraryNames &names);

  // Throws a sentence if the library is too old to have it.
  template <typename Function> void find(Function *&function, const char *symbol) const {
    function = reinterpret_cast<Function *>(address(symbol));
  }

private:
  void *address(const char *symbol) const;

  const char *what;
  std::string path; // as it was opened
  void *handle = nullptr;
};

// Folders in which libraries of this kind lie on this machine, in the order in which they are searched; those of the loader not included.
std::vector<std::string> libraryFolders(bool inToolkits);

} // namespace zero::runtime::cuda
