#include "runtime/plan/layout.h"
#include "runtime/base/error.h"
#include "runtime/plan/container.h"
#include <algorithm>
#include <cstring>
#include <zlib.h>

namespace zero::plan {
namespace {

constexpr uint64_t kPage = 4096;
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
static_assert(sizeof(Header) + kMaxSegments * sizeof(Segment) + 4 <= kPage, "the table lies on the first page");

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

uint64_t nextPage(uint64_t value) { return (value + kPage - 1) / kPage * kPage; }

std::string nameOf(uint32_t kind) {
  static constexpr const char *names[] = {"plan", "kernel", "constant"};
  return kind >= 1 && kind <= 3 ? names[kind - 1] : "segment of kind " + std::to_string(kind) + ",";
}

Header readHeader(Bytes file, const std::string &name) {
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
  if (header.segments == 0 || header.segments > kMaxSegments || kPage > file.size())
    throw Error(name + " is damaged: its segment table lists " + std::to_string(header.segments) + " segments, which the file cannot hold");
  return header;
}

} // namespace

Layout readLayout(Bytes file, const std::string &name) {
  Header header = readHeader(file, name);
  uint64_t end = sizeof(Header) + header.segments * sizeof(Segment);
  uint32_t crc;
  std::memcpy(&crc, file.data() + end, sizeof(crc));
  if (crcOf(file.first(end)) != crc)
    throw Error(name + " is damaged: its header and segment table do not match their checksum; copy or compile it again");
  end += sizeof(crc);

  Layout layout;
  // What lies between a segment and the page the next one starts on.
  auto requireZeros = [&](uint64_t from, uint64_t to) {
    Bytes gap = file.subspan(from, to - from);
    if (std::ranges::any_of(gap, [](std::byte b) { return b != std::byte(0); }))
      throw Error(name + " is damaged: bytes " + std::to_string(from) + " to " + std::to_string(to) +
                  " belong to no segment and are not zero");
  };
  for (uint32_t i = 0; i < header.segments; ++i) {
    Segment segment;
    std::memcpy(&segment, file.data() + sizeof(Header) + i * sizeof(Segment), sizeof(segment));
    bool known = segment.kind >= 1 && segment.kind <= 3;
    std::string what = name + " is damaged: its " + (known ? nameOf(segment.kind) + " segment " : nameOf(segment.kind) + " ");
    if (std::ranges::any_of(layout.segments, [&](const SegmentBytes &other) { return other.kind == segment.kind; }))
      throw Error(what + "occurs twice");
    if (segment.reserved != 0) throw Error(what + "has reserved bytes that are not zero");
    if (segment.offset != nextPage(end))
      throw Error(what + "starts at byte " + std::to_string(segment.offset) + ", not at byte " + std::to_string(nextPage(end)) +
                  " after what comes before it");
    if (segment.offset > file.size() || segment.size > file.size() - segment.offset)
      throw Error(what + "needs bytes up to " + std::to_string(segment.offset) + " + " + std::to_string(segment.size) +
                  " but the file has " + std::to_string(file.size()) + "; was it cut off while being copied?");
    requireZeros(end, segment.offset);
    Bytes bytes = file.subspan(segment.offset, segment.size);
    if (crcOf(bytes) != segment.crc) throw Error(what + "does not match its checksum; copy or compile it again");
    layout.segments.push_back({segment.kind, bytes});
    end = segment.offset + segment.size;
  }
  uint64_t whole = nextPage(end);
  if (whole > file.size())
    throw Error(name + " is damaged: it has " + std::to_string(file.size()) + " bytes of " + std::to_string(whole) +
                "; was it cut off while being copied?");
  requireZeros(end, whole);
  layout.content = file.first(whole);
  Bytes rest = file.subspan(whole);
  layout.signature = readTrailer(rest);
  if (!rest.empty() && !layout.signature)
    throw Error(name + " is damaged: " + std::to_string(rest.size()) + " bytes after its last segment are no signature");
  return layout;
}

std::vector<std::byte> compose(std::span<const SegmentBytes> segments) {
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof(header.magic));
  header.format = kFormat;
  header.segments = static_cast<uint32_t>(segments.size());
  uint64_t end = kPage;
  std::vector<Segment> table;
  for (const SegmentBytes &segment : segments) {
    table.push_back({segment.kind, crcOf(segment.bytes), end, segment.bytes.size(), 0});
    end = nextPage(end + segment.bytes.size());
  }
  std::vector<std::byte> file(end); // zeros
  std::byte *at = file.data();
  std::memcpy(at, &header, sizeof(header));
  std::memcpy(at += sizeof(header), table.data(), table.size() * sizeof(Segment));
  uint32_t crc = crcOf(std::span(file).first(sizeof(header) + table.size() * sizeof(Segment)));
  std::memcpy(at += table.size() * sizeof(Segment), &crc, sizeof(crc));
  for (size_t i = 0; i < segments.size(); ++i)
    std::ranges::copy(segments[i].bytes, file.begin() + static_cast<std::ptrdiff_t>(table[i].offset));
  return file;
}

} // namespace zero::plan
