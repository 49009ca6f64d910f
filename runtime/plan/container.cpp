#include "runtime/plan/container.h"
#include "runtime/files/partial_file.h"
#include "runtime/plan/error.h"
#include "runtime/plan/paths.h"
#include "runtime/plan/validate.h"
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <google/protobuf/stubs/logging.h>
#include <limits>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>
#include <zlib.h>

namespace zero::plan {
namespace {

constexpr uint64_t kAlignment = 4096;
constexpr uint32_t kMaxSegments = 64;

struct Header {
  char magic[8];
  uint32_t format;
  uint32_t segments;
};
struct Segment {
  uint32_t kind;
  uint32_t crc;
  uint64_t offset;
  uint64_t size;
  uint64_t reserved;
};
static_assert(sizeof(Header) == 16 && sizeof(Segment) == 32, "the file layout is fixed");

using Bytes = std::span<const std::byte>;

// zlib takes 32-bit lengths, so larger segments go in pieces.
uint32_t crcOf(Bytes bytes) {
  uLong crc = crc32(0, nullptr, 0);
  while (!bytes.empty()) {
    size_t piece = std::min<size_t>(bytes.size(), size_t(1) << 30);
    crc = crc32(crc, reinterpret_cast<const Bytef *>(bytes.data()), static_cast<uInt>(piece));
    bytes = bytes.subspan(piece);
  }
  return static_cast<uint32_t>(crc);
}

uint64_t alignUp(uint64_t value) { return (value + kAlignment - 1) / kAlignment * kAlignment; }

std::string systemError() { return std::strerror(errno); }

const char *nameOf(SegmentKind kind) {
  switch (kind) {
  case SegmentKind::Plan:
    return "plan";
  case SegmentKind::Kernels:
    return "kernel";
  case SegmentKind::Constants:
    return "constant";
  }
  return "unknown";
}

struct Mapping {
  void *data = nullptr;
  size_t size = 0;
  ~Mapping() {
    if (data) munmap(data, size);
  }
};

} // namespace

PlanFile parse(Bytes file, const std::string &name) {
  Header header;
  if (file.size() < sizeof(header))
    throw Error(name + " is not a plan: it has " + std::to_string(file.size()) + " bytes, fewer than a plan's header; make it with zeroc");
  std::memcpy(&header, file.data(), sizeof(header));
  if (std::memcmp(header.magic, kMagic, sizeof(header.magic)) != 0)
    throw Error(name + " is not a plan: it does not start with \"ZEROPLAN\"; make one with `zeroc model.onnx -o plan.bin`");
  if (header.format > kFormat)
    throw Error(name + " has plan format " + std::to_string(header.format) + ", newer than the format " + std::to_string(kFormat) +
                " this program reads; use the zerorun that belongs to the zeroc that made it");
  if (header.format != kFormat)
    throw Error(name + " has plan format " + std::to_string(header.format) + ", expected " + std::to_string(kFormat) +
                "; compile the model again");
  if (header.segments == 0 || header.segments > kMaxSegments || sizeof(Header) + header.segments * sizeof(Segment) > file.size())
    throw Error(name + " is damaged: its segment table lists " + std::to_string(header.segments) + " segments, which the file cannot hold");

  PlanFile result;
  result.path = name;
  Bytes planBytes;
  bool seen[4] = {};
  for (uint32_t i = 0; i < header.segments; ++i) {
    Segment segment;
    std::memcpy(&segment, file.data() + sizeof(Header) + i * sizeof(Segment), sizeof(segment));
    if (segment.kind < 1 || segment.kind > 3) continue;
    auto kind = static_cast<SegmentKind>(segment.kind);
    std::string what = name + " is damaged: its " + nameOf(kind) + " segment ";
    if (seen[segment.kind]) throw Error(what + "occurs twice");
    seen[segment.kind] = true;
    if (segment.offset % kAlignment != 0)
      throw Error(what + "starts at byte " + std::to_string(segment.offset) + ", which is not a multiple of 4096");
    if (segment.offset > file.size() || segment.size > file.size() - segment.offset)
      throw Error(what + "needs bytes up to " + std::to_string(segment.offset) + " + " + std::to_string(segment.size) +
                  " but the file has " + std::to_string(file.size()) + "; was it cut off while being copied?");
    Bytes bytes = file.subspan(segment.offset, segment.size);
    if (crcOf(bytes) != segment.crc) throw Error(what + "does not match its checksum; copy or compile it again");
    if (kind == SegmentKind::Plan)
      planBytes = bytes;
    else if (kind == SegmentKind::Kernels)
      result.kernels = bytes;
    else
      result.constants = bytes;
  }
  if (!seen[1]) throw Error(name + " is damaged: it has no plan segment");
  if (planBytes.size() > static_cast<size_t>(std::numeric_limits<int>::max()))
    throw Error(name + " is damaged: its plan segment has " + std::to_string(planBytes.size()) + " bytes, more than 2 GiB");
  google::protobuf::LogSilencer silence; // our sentence is enough
  if (!result.plan.ParseFromArray(planBytes.data(), static_cast<int>(planBytes.size())))
    throw Error(name + " is damaged: its plan segment is not a plan message");
  try {
    validate(result.plan, result.kernels.size(), result.constants.size());
  } catch (const Error &error) {
    throw Error(name + ": " + error.what());
  }
  return result;
}

PlanFile load(const std::string &path) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw Error("cannot open the plan " + path + ": " + systemError());
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(fd);
    throw Error("cannot read the plan " + path + ": it is not a file");
  }
  auto mapping = std::make_shared<Mapping>();
  if (info.st_size > 0) {
    void *data = mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) {
      std::string reason = systemError();
      close(fd);
      throw Error("cannot map the plan " + path + ": " + reason);
    }
    mapping->data = data;
    mapping->size = static_cast<size_t>(info.st_size);
  }
  close(fd);
  PlanFile result = parse({static_cast<const std::byte *>(mapping->data), mapping->size}, path);
  result.mapping = mapping;
  restoreNames(result.plan, path);
  return result;
}

void save(const std::string &path, Plan plan, Bytes kernels, Bytes constants) {
  plan.set_format(kFormat);
  storeNames(plan, path);
  if (plan.ByteSizeLong() > static_cast<size_t>(std::numeric_limits<int>::max()))
    throw Error("cannot write " + path + ": the plan has " + std::to_string(plan.ByteSizeLong()) +
                " bytes, more than the 2 GiB a message may have");
  std::string message;
  if (!plan.SerializeToString(&message)) throw Error("cannot write " + path + ": the plan cannot be serialised");
  struct Part {
    SegmentKind kind;
    Bytes bytes;
  };
  std::array<Part, 3> parts{Part{SegmentKind::Plan, std::as_bytes(std::span(message))}, Part{SegmentKind::Kernels, kernels},
                            Part{SegmentKind::Constants, constants}};
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof(header.magic));
  header.format = kFormat;
  header.segments = parts.size();
  std::array<Segment, 3> table{};
  uint64_t offset = kAlignment;
  for (size_t i = 0; i < parts.size(); ++i) {
    table[i] = {static_cast<uint32_t>(parts[i].kind), crcOf(parts[i].bytes), offset, parts[i].bytes.size(), 0};
    offset = alignUp(offset + parts[i].bytes.size());
  }
  std::vector<std::byte> first(kAlignment);
  std::memcpy(first.data(), &header, sizeof(header));
  std::memcpy(first.data() + sizeof(header), table.data(), sizeof(table));
  runtime::PartialFile partial(replaceable(path));
  const runtime::File &file = partial.file();
  file.write(0, first.data(), first.size());
  uint64_t end = kAlignment;
  for (size_t i = 0; i < parts.size(); ++i) {
    file.write(table[i].offset, parts[i].bytes.data(), parts[i].bytes.size());
    if (!parts[i].bytes.empty()) end = table[i].offset + table[i].size;
  }
  // What follows the last byte is padded, so that the offset of an empty last segment lies inside the file too.
  std::vector<std::byte> padding(offset - end);
  file.write(end, padding.data(), padding.size());
  partial.publish();
}

} // namespace zero::plan
