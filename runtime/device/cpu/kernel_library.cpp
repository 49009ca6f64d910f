#include "runtime/device/cpu/kernel_library.h"
#include "runtime/base/error.h"
#include "runtime/device/kernel_bounds.h"
#include "runtime/base/why_not_written.h"
#include "runtime/process/addresses.h"
#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <set>
#include <sstream>
#include <sys/mman.h>
#include <unistd.h>

namespace zero::runtime {
namespace {

// What helps where the loader fails that has `bytes` of code to load.
std::string adviceFor(uint64_t bytes) {
  constexpr uint64_t kSlack = uint64_t(1) << 20; // that it may take beside them
  AvailableAddresses left = availableAddresses();
  if (left.flag && left.bytes < 2 * bytes + kSlack)
    return std::string("raise the limit on memory that is mapped (ulimit ") + left.flag + ")";
  return "raise the limit on open files (ulimit -n) if that is the reason, or compile the plan again on a machine like this one";
}

} // namespace

KernelLibrary::KernelLibrary(std::span<const std::byte> object, std::span<const KernelSymbol> symbols) {
  fd = memfd_create("zero-kernels", MFD_CLOEXEC);
  if (fd < 0) throw Error(std::string("cannot create memory for the plan's kernels: ") + std::strerror(errno));
  for (std::span<const std::byte> rest = object; !rest.empty();) {
    ssize_t written = write(fd, rest.data(), rest.size());
    if (written <= 0) {
      std::string reason = whyNotWritten(errno);
      close(fd);
      throw Error("cannot write the plan's kernels to memory: " + reason);
    }
    rest = rest.subspan(static_cast<size_t>(written));
  }
  handle = dlopen(("/proc/self/fd/" + std::to_string(fd)).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    std::string reason = dlerror();
    close(fd);
    throw Error("cannot load the plan's kernels: " + reason + "; " + adviceFor(object.size()));
  }
  for (const KernelSymbol &symbol : symbols) {
    kernels.push_back(reinterpret_cast<KernelFunction>(dlsym(handle, symbol.symbol.c_str())));
    std::string wrong = kernels.back() ? boundsRefusal(symbol) : "is not in the plan's kernel segment";
    if (wrong.empty()) continue;
    dlclose(handle);
    close(fd);
    throw Error("kernel '" + symbol.symbol + "' " + wrong + "; compile the plan again");
  }
}

// The validator holds every launch against what the plan says of its kernel; here that is held against the code.
std::string KernelLibrary::boundsRefusal(const KernelSymbol &symbol) const {
  const auto *found = static_cast<const uint64_t *>(dlsym(handle, (symbol.symbol + ".bounds").c_str()));
  return runtime::boundsRefusal(found ? std::span(found, 3 + found[1]) : std::span<const uint64_t>(), symbol);
}

KernelLibrary::~KernelLibrary() {
  dlclose(handle);
  close(fd);
}

std::string missingFeatures(const std::vector<std::string> &wanted) {
  std::ifstream cpuinfo("/proc/cpuinfo");
  if (!cpuinfo && errno == EMFILE) throw Error("cannot look at this machine's processor: too many open files (ulimit -n)");
  std::set<std::string> present;
  for (std::string line; std::getline(cpuinfo, line);)
    if (line.starts_with("flags") || line.starts_with("Features")) {
      std::istringstream words(line.substr(line.find(':') + 1));
      present.insert(std::istream_iterator<std::string>(words), {});
      break;
    }
  std::string missing;
  for (const std::string &feature : wanted)
    if (!present.contains(feature)) missing += (missing.empty() ? "" : ", ") + feature;
  return missing;
}

} // namespace zero::runtime
