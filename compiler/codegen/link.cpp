//===- link.cpp - relocatable objects to one shared object ----------------------------------------------===//
#include "compiler/codegen/link.h"
#include "lld/Common/Driver.h"
#include "runtime/base/why_not_written.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <cerrno>
#include <fcntl.h>
#include <future>
#include <sys/mman.h>
#include <system_error>
#include <unistd.h>

LLD_HAS_DRIVER(elf)

using llvm::ArrayRef, llvm::SmallVector, llvm::StringRef;

namespace zero::codegen {
namespace {

llvm::Error refersToNothing(ArrayRef<char> object) {
  auto file = llvm::object::ObjectFile::createELFObjectFile(llvm::MemoryBufferRef(StringRef(object.data(), object.size()), "kernels.o"));
  if (!file) return llvm::createStringError("the kernels' object is malformed: " + llvm::toString(file.takeError()));
  for (const auto &symbol : (*file)->symbols()) {
    auto flags = symbol.getFlags();
    auto name = symbol.getName();
    if (flags && name && (*flags & llvm::object::BasicSymbolRef::SF_Undefined) && !name->empty() && *name != "_GLOBAL_OFFSET_TABLE_")
      return llvm::createStringError("generated code refers to the symbol '" + name->str() + "', which nobody defines");
  }
  return llvm::Error::success();
}

bool writeAll(int file, ArrayRef<char> bytes) {
  for (ssize_t n; !bytes.empty(); bytes = bytes.drop_front(size_t(n)))
    if ((n = write(file, bytes.data(), bytes.size())) <= 0) return false;
  return true;
}

/// All that is written into a pipe, until its other end is closed.
SmallVector<char, 0> readAll(int pipe) {
  SmallVector<char, 0> all;
  char part[1 << 16];
  for (ssize_t n; (n = read(pipe, part, sizeof part)) > 0 || (n < 0 && errno == EINTR);)
    if (n > 0) all.append(part, part + n);
  return all;
}

} // namespace

llvm::Expected<SmallVector<char, 0>> link(ArrayRef<SmallVector<char, 0>> objects) {
  SmallVector<int> files;
  auto closeAll = llvm::make_scope_exit([&] {
    for (int file : files) close(file);
  });
  std::vector<std::string> sources;
  for (const SmallVector<char, 0> &object : objects) {
    if (auto error = refersToNothing(object)) return std::move(error);
    int file = memfd_create("kernels.o", MFD_CLOEXEC);
    if (file >= 0) files.push_back(file);
    if (file < 0 || !writeAll(file, object))
      return llvm::createStringError("cannot hold the kernels' object in memory: " + runtime::whyNotWritten(errno));
    sources.push_back("/proc/self/fd/" + std::to_string(file));
  }
  // lld renames a file into place, in a folder that a zeroc which is stopped would leave behind; into a pipe it writes.
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return llvm::createStringError(std::string("cannot make a pipe for the kernels: ") + strerror(errno));
  files.append({ends[0], ends[1]});
  std::string target = "/proc/self/fd/" + std::to_string(ends[1]);
  std::future<SmallVector<char, 0>> linked;
  try {
    linked = std::async(std::launch::async, readAll, ends[0]);
  } catch (const std::system_error &error) {
    return llvm::createStringError(std::string("no thread can be started: ") + error.what());
  }
  std::string complaints;
  llvm::raw_string_ostream complain(complaints);
  std::vector<const char *> arguments{"ld.lld",          "-shared", "--threads=1", "-Bsymbolic", "--no-undefined",
                                      "--build-id=none", "-z",      "noexecstack", "-o",         target.c_str()};
  for (const std::string &source : sources) arguments.push_back(source.c_str());
  auto result = lld::lldMain(arguments, complain, complain, {{lld::Gnu, &lld::elf::link}});
  close(files.pop_back_val()); // the reader's end of file
  SmallVector<char, 0> bytes = linked.get();
  if (result.retCode) return llvm::createStringError("kernels do not link: " + complaints);
  return bytes;
}

} // namespace zero::codegen
