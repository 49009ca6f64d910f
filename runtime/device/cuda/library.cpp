#include "runtime/device/cuda/library.h"
#include "runtime/base/error.h"
#include <cstdlib>
#include <dlfcn.h>
#include <glob.h>
#include <sstream>
#include <unistd.h>

namespace zero::runtime::cuda {
namespace {

constexpr const char *kFolders = "ZERO_CUDA_LIBRARIES";

std::vector<std::string> namedFolders() {
  std::vector<std::string> folders;
  const char *value = std::getenv(kFolders);
  std::istringstream list(value ? value : "");
  for (std::string folder; std::getline(list, folder, ':');)
    if (!folder.empty()) folders.push_back(folder);
  return folders;
}

void addMatches(std::vector<std::string> &folders, const std::string &pattern) {
  glob_t found{};
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0) folders.insert(folders.end(), found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
}

// `lib` beside each folder of PATH that has a python3: where the wheels of an activated environment lie.
std::vector<std::string> librariesOfPythons() {
  std::vector<std::string> found;
  const char *value = std::getenv("PATH");
  std::istringstream list(value ? value : "");
  for (std::string folder; std::getline(list, folder, ':');)
    if (folder.starts_with('/') && ::access((folder + "/python3").c_str(), X_OK) == 0) found.push_back(folder + "/../lib");
  return found;
}

// Of NVIDIA's toolkit, and of the wheels that PyTorch brings.
std::vector<std::string> toolkitFolders() {
  std::vector<std::string> folders;
  for (const char *name : {"CUDA_HOME", "CUDA_PATH"})
    if (const char *toolkit = std::getenv(name)) folders.push_back(std::string(toolkit) + "/lib64");
  addMatches(folders, "/usr/local/cuda/lib64");
  std::vector<std::string> pythons{"/usr/local/lib", "/usr/lib"};
  if (const char *home = std::getenv("HOME")) pythons.insert(pythons.begin(), std::string(home) + "/.local/lib");
  std::vector<std::string> environments = librariesOfPythons();
  pythons.insert(pythons.begin(), environments.begin(), environments.end());
  for (const std::string &python : pythons) addMatches(folders, python + "/python3*/*-packages/nvidia/*/lib");
  return folders;
}

std::string joined(const std::vector<std::string> &parts) {
  std::string list;
  for (const std::string &part : parts) list += (list.empty() ? "" : ", ") + part;
  return list;
}

std::string reasonOfLoader() {
  const char *reason = ::dlerror();
  return reason ? reason : "no reason was given";
}

} // namespace

std::vector<std::string> libraryFolders(bool inToolkits) { return inToolkits ? toolkitFolders() : std::vector<std::string>{}; }

Library::Library(const LibraryNames &names) : what(names.what) {
  auto openedIn = [&](const std::string &folder) {
    for (const char *file : names.files) {
      path = folder + "/" + file;
      if (::access(path.c_str(), F_OK) != 0) continue;
      handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (!handle) throw Error(std::string("cannot open ") + what + ": " + reasonOfLoader());
      return true;
    }
    return false;
  };
  std::vector<std::string> named = namedFolders(), others = libraryFolders(names.inToolkits);
  for (const std::string &folder : named)
    if (openedIn(folder)) return;
  for (const char *file : names.files) {
    path = file;
    if ((handle = ::dlopen(file, RTLD_NOW | RTLD_LOCAL))) return;
  }
  for (const std::string &folder : others)
    if (openedIn(folder)) return;
  named.insert(named.end(), others.begin(), others.end());
  throw Error(std::string(what) + " was not found: there is no " + names.files.front() + " where the loader looks" +
              (named.empty() ? "" : ", nor in " + joined(named)) + "; " + names.advice + ", or name its folder in " + kFolders);
}

void *Library::address(const char *symbol) const {
  void *found = ::dlsym(handle, symbol);
  if (!found) throw Error(std::string(what) + " ('" + path + "') is too old: it has no function " + symbol + "; install a newer one");
  return found;
}

} // namespace zero::runtime::cuda
