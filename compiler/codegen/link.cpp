//===- link.cpp - relocatable objects to one shared object ----------------------------------------------===//
#include "compiler/codegen/link.h"
#include "lld/Common/Driver.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <sys/mman.h>
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
    if (file < 0 || write(file, object.data(), object.size()) != ssize_t(object.size()))
      return llvm::createStringError(std::string("cannot hold the kernels' object in memory: ") + strerror(errno));
    sources.push_back("/proc/self/fd/" + std::to_string(file));
  }
  // lld renames its output into place, so it needs a directory; /dev/shm keeps it off the disk.
  char path[] = "/dev/shm/zero-kernels-XXXXXX";
  const char *directory = mkdtemp(path);
  if (!directory) return llvm::createStringError(std::string("cannot make a folder in /dev/shm: ") + strerror(errno));
  std::string folder = directory, target = folder + "/kernels.so";
  auto cleanUp = llvm::make_scope_exit([&] {
    unlink(target.c_str());
    rmdir(folder.c_str());
  });
  std::string complaints;
  llvm::raw_string_ostream complain(complaints);
  std::vector<const char *> arguments{"ld.lld",         "-shared", "--threads=1", "-Bsymbolic", "--no-undefined",
                                      "--build-id=none", "-z",      "noexecstack", "-o",         target.c_str()};
  for (const std::string &source : sources) arguments.push_back(source.c_str());
  auto result = lld::lldMain(arguments, complain, complain, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode) return llvm::createStringError("kernels do not link: " + complaints);
  auto buffer = llvm::MemoryBuffer::getFile(target, false, false);
  if (!buffer) return llvm::createStringError("cannot read the linked kernels back: " + buffer.getError().message());
  StringRef bytes = (*buffer)->getBuffer();
  return SmallVector<char, 0>(bytes.begin(), bytes.end());
}

} // namespace zero::codegen
