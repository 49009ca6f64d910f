#include "runtime/plan/container.h"
#include "runtime/base/error.h"
#include "runtime/files/descriptor.h"
#include "runtime/files/partial_file.h"
#include "runtime/plan/layout.h"
#include "runtime/plan/paths.h"
#include "runtime/plan/validate.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <google/protobuf/stubs/logging.h>
#include <limits>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace zero::plan {
namespace {

using Bytes = std::span<const std::byte>;

std::string systemError() { return std::strerror(errno); }

// A file's bytes, in memory that nobody else can change.
struct Memory {
  void *data = nullptr;
  size_t size = 0; // of the pages
  ~Memory() {
    if (data) munmap(data, size);
  }
};

struct WholeFile {
  std::shared_ptr<const Memory> memory;
  Bytes bytes;
};

WholeFile readWhole(const std::string &path) {
  runtime::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)); // a pipe is refused, not waited for
  if (!file) throw Error("cannot open the plan " + path + ": " + systemError());
  struct stat info;
  if (fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) throw Error("cannot read the plan " + path + ": it is not a file");
  auto size = static_cast<size_t>(info.st_size), done = size_t(0);
  auto memory = std::make_shared<Memory>();
  if (size == 0) return {memory, {}};
  void *data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) throw Error("cannot read the plan " + path + ": no memory for its " + std::to_string(size) + " bytes");
  memory->data = data;
  memory->size = size;
  while (done < size) {
    ssize_t got = read(file.get(), static_cast<char *>(data) + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Error("cannot read the plan " + path + ": " + systemError());
    if (got == 0) break; // shorter by now: what is missing is missed below
    done += static_cast<size_t>(got);
  }
  return {memory, {static_cast<const std::byte *>(data), done}};
}

std::string shortened(const PublicKey &key) { return key.fingerprint().substr(0, 16); }

void requireSignature(const Layout &layout, const std::string &name, const PublicKey *required) {
  if (!layout.signature) {
    if (!required) return;
    throw Error(name + " is not signed, and a signature by key " + shortened(*required) +
                " is required; who trusts this file signs it with `zeroc " + name + " --sign KEY -o " + name + "`");
  }
  if (required && layout.signature->key != *required)
    throw Error(name + " is signed by another key, " + shortened(layout.signature->key) + ", than the required " + shortened(*required));
  if (!layout.signature->holds(layout.content))
    throw Error(name + " was changed after it was signed by key " + shortened(layout.signature->key) +
                ": the signature does not match the file; get it again from who signed it");
}

void write(const std::string &path, Bytes content, const SigningKey *key) {
  runtime::PartialFile partial(replaceable(path));
  partial.file().write(0, content.data(), content.size());
  if (key) {
    auto trailer = key->sign(content).trailer();
    partial.file().write(content.size(), trailer.data(), trailer.size());
  }
  partial.publish();
}

} // namespace

PlanFile parse(Bytes file, const std::string &name, const PublicKey *required) {
  Layout layout = readLayout(file, name);
  requireSignature(layout, name, required);
  PlanFile result;
  result.path = name;
  if (layout.signature) result.signer = layout.signature->key;
  std::optional<Bytes> message;
  for (const SegmentBytes &segment : layout.segments) {
    if (segment.kind == static_cast<uint32_t>(SegmentKind::Plan)) message = segment.bytes;
    if (segment.kind == static_cast<uint32_t>(SegmentKind::Kernels)) result.kernels = segment.bytes;
    if (segment.kind == static_cast<uint32_t>(SegmentKind::Constants)) result.constants = segment.bytes;
    if (segment.kind == static_cast<uint32_t>(SegmentKind::HostKernels)) result.hostKernels = segment.bytes;
  }
  if (!message) throw Error(name + " is damaged: it has no plan segment");
  if (message->size() > static_cast<size_t>(std::numeric_limits<int>::max()))
    throw Error(name + " is damaged: its plan segment has " + std::to_string(message->size()) + " bytes, more than 2 GiB");
  google::protobuf::LogSilencer silence; // our sentence is enough
  if (!result.plan.ParseFromArray(message->data(), static_cast<int>(message->size())))
    throw Error(name + " is damaged: its plan segment is not a plan message");
  try {
    validate(result.plan, result.constants.size());
    if (result.plan.target().kind() == Target::CUDA && std::ranges::find(result.kernels, std::byte{0}) != result.kernels.end())
      throw Error("its kernels are for cuda, but no text: they hold a zero byte");
  } catch (const Error &error) {
    throw Error(name + ": " + error.what());
  }
  return result;
}

PlanFile load(const std::string &path, const PublicKey *required) {
  WholeFile file = readWhole(path);
  PlanFile result = parse(file.bytes, path, required);
  result.bytes = file.memory;
  restoreNames(result.plan, path);
  return result;
}

void save(const std::string &path, Plan plan, Bytes kernels, Bytes constants, const SigningKey *key, Bytes hostKernels) {
  plan.set_format(kFormat);
  storeNames(plan, path);
  if (plan.ByteSizeLong() > static_cast<size_t>(std::numeric_limits<int>::max()))
    throw Error("cannot write " + path + ": the plan has " + std::to_string(plan.ByteSizeLong()) +
                " bytes, more than the 2 GiB a message may have");
  std::string message;
  if (!plan.SerializeToString(&message)) throw Error("cannot write " + path + ": the plan cannot be serialised");
  auto kind = [](SegmentKind kind) { return static_cast<uint32_t>(kind); };
  std::vector<SegmentBytes> segments{{kind(SegmentKind::Plan), std::as_bytes(std::span(message))},
                                     {kind(SegmentKind::Kernels), kernels},
                                     {kind(SegmentKind::Constants), constants}};
  if (!hostKernels.empty()) segments.push_back({kind(SegmentKind::HostKernels), hostKernels});
  write(path, compose(segments), key);
}

bool isPlan(const std::string &path) {
  char begin[8];
  runtime::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info = {};
  bool regular = file && ::fstat(file.get(), &info) == 0 && S_ISREG(info.st_mode); // of a pipe nothing is taken
  return regular && ::pread(file.get(), begin, sizeof begin, 0) == ssize_t(sizeof begin) && std::memcmp(begin, kMagic, sizeof begin) == 0;
}

void sign(const std::string &from, const std::string &to, const SigningKey &key) {
  WholeFile whole = readWhole(from);
  parse(whole.bytes, from); // nobody signs what is damaged
  write(to, readLayout(whole.bytes, from).content, &key);
}

} // namespace zero::plan
