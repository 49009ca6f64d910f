// NumPy's .npz: a zip archive of .npy members, stored or deflated, with zip64 where sizes ask for it.
#include "runtime/base/error.h"
#include "runtime/data/mapped_file.h"
#include "runtime/data/npy.h"
#include "runtime/data/tensor_file.h"
#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <set>
#include <zlib.h>

namespace zero::runtime {
namespace {

struct Member {
  std::string name;
  uint16_t method = 0;
  uint32_t crc = 0;
  uint64_t packed = 0, size = 0, local = 0;
};

class Archive {
public:
  Archive(std::string path, std::span<const std::byte> bytes) : path(std::move(path)), bytes(bytes) {}

  std::vector<Member> directory() const {
    uint64_t end = endRecord(), count = number(end + 10, 2), size = number(end + 12, 4), at = number(end + 16, 4);
    if ((count == 0xffff || size == 0xffffffff || at == 0xffffffff) && end >= 20 && number(end - 20, 4) == 0x07064b50) {
      uint64_t large = number(end - 12, 8); // zip64 end record
      if (number(large, 4) != 0x06064b50) throw broken("its zip64 end record is missing");
      count = number(large + 32, 8), at = number(large + 48, 8);
    }
    if (count > bytes.size() / 46) throw broken("its directory claims more members than the file has room for");
    std::vector<Member> members;
    uint64_t start = at;
    for (uint64_t i = 0; i < count; ++i) {
      if (number(at, 4) != 0x02014b50) throw broken("its directory is damaged");
      if (number(at + 8, 2) & 1) throw broken("its members are encrypted");
      Member m{{},
               static_cast<uint16_t>(number(at + 10, 2)),
               static_cast<uint32_t>(number(at + 16, 4)),
               number(at + 20, 4),
               number(at + 24, 4),
               number(at + 42, 4)};
      uint64_t nameSize = number(at + 28, 2), extraSize = number(at + 30, 2), commentSize = number(at + 32, 2);
      auto name = part(at + 46, nameSize);
      m.name.assign(reinterpret_cast<const char *>(name.data()), name.size());
      readZip64(m, at + 46 + nameSize, extraSize);
      members.push_back(std::move(m));
      at += 46 + nameSize + extraSize + commentSize;
    }
    requireApart(members, start);
    return members;
  }

  // The member's bytes: a view of the file if stored, else inflated into a new owner.
  std::span<const std::byte> extract(const Member &m, std::vector<std::shared_ptr<const void>> &owners) const {
    std::span<const std::byte> packed = part(dataOf(m), m.packed);
    if (m.method == 0) {
      if (m.packed != m.size) throw broken(fmt::format("member '{}' is stored with two different sizes", m.name));
      requireSum(m, packed);
      return packed;
    }
    if (m.method != 8)
      throw Error(fmt::format("'{}': member '{}' uses zip method {}; only stored and deflated ones can be read", path, m.name, m.method));
    // Deflate cannot expand more than about 1032 times: a larger claim is a lie that would cost the memory.
    if (m.size / 1100 > m.packed + 1) throw broken(fmt::format("member '{}' claims {} bytes from {}", m.name, m.size, m.packed));
    auto owner = std::make_shared<std::vector<std::byte>>(m.size);
    inflateInto(m, packed, *owner);
    owners.push_back(owner);
    return *owner;
  }

  Error broken(const std::string &what) const { return Error(fmt::format("'{}' is no whole .npz file: {}", path, what)); }

private:
  std::span<const std::byte> part(uint64_t at, uint64_t size) const {
    if (at > bytes.size() || size > bytes.size() - at) throw broken("it ends too early, or its offsets are wrong");
    return bytes.subspan(at, size);
  }
  uint64_t number(uint64_t at, unsigned size) const {
    uint64_t value = 0;
    std::memcpy(&value, part(at, size).data(), size);
    return value;
  }

  // Where the member's bytes begin, after its local header.
  uint64_t dataOf(const Member &m) const {
    if (number(m.local, 4) != 0x04034b50) throw broken(fmt::format("member '{}' has no local header", m.name));
    return m.local + 30 + number(m.local + 26, 2) + number(m.local + 28, 2);
  }

  // Members that share bytes let a small file claim any number of large arrays; no program writes such files.
  void requireApart(const std::vector<Member> &members, uint64_t directory) const {
    std::vector<const Member *> order;
    for (const Member &m : members) order.push_back(&m);
    std::sort(order.begin(), order.end(), [](const Member *a, const Member *b) { return a->local < b->local; });
    for (size_t i = 0; i < order.size(); ++i) {
      uint64_t data = dataOf(*order[i]), end = data + part(data, order[i]->packed).size();
      if (i + 1 < order.size() && order[i + 1]->local < end)
        throw broken(fmt::format("members '{}' and '{}' overlap", order[i]->name, order[i + 1]->name));
      if (end > directory) throw broken(fmt::format("member '{}' overlaps its directory", order[i]->name));
    }
  }

  void requireSum(const Member &m, std::span<const std::byte> bytes) const {
    if (crc32_z(0, reinterpret_cast<const Bytef *>(bytes.data()), bytes.size()) != m.crc)
      throw broken(fmt::format("the bytes of member '{}' are not those whose checksum (CRC-32) its directory has", m.name));
  }

  uint64_t endRecord() const {
    // The record is 22 bytes long and followed by a comment of at most 65535 bytes.
    for (uint64_t back = 22; back <= bytes.size() && back <= 22 + 65535; ++back)
      if (number(bytes.size() - back, 4) == 0x06054b50) return bytes.size() - back;
    throw broken("it has no zip directory at its end");
  }

  void readZip64(Member &m, uint64_t at, uint64_t size) const {
    for (uint64_t end = at + size; at + 4 <= end;) {
      uint64_t kind = number(at, 2), length = number(at + 2, 2), field = at + 4;
      at += 4 + length;
      if (kind != 1) continue;
      for (uint64_t *value : {&m.size, &m.packed, &m.local}) // in this order, only those that overflowed
        if (*value == 0xffffffff && field + 8 <= at) *value = number(field, 8), field += 8;
    }
  }

  void inflateInto(const Member &m, std::span<const std::byte> packed, std::vector<std::byte> &out) const {
    z_stream stream{};
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw Error(fmt::format("'{}': zlib could not be started", path));
    int state = Z_OK;
    uint64_t in = 0, done = 0;
    while (state == Z_OK) { // zlib counts in 32 bits
      uint64_t feed = std::min<uint64_t>(packed.size() - in, 1u << 30), room = std::min<uint64_t>(out.size() - done, 1u << 30);
      stream.next_in = reinterpret_cast<Bytef *>(const_cast<std::byte *>(packed.data() + in)), stream.avail_in = static_cast<uInt>(feed);
      stream.next_out = reinterpret_cast<Bytef *>(out.data() + done), stream.avail_out = static_cast<uInt>(room);
      state = inflate(&stream, Z_NO_FLUSH);
      in += feed - stream.avail_in, done += room - stream.avail_out;
    }
    inflateEnd(&stream);
    if (state != Z_STREAM_END || done != out.size())
      throw broken(fmt::format("member '{}' does not inflate to what the directory promises", m.name));
    requireSum(m, out);
  }

  std::string path;
  std::span<const std::byte> bytes;
};

} // namespace

TensorFile openNpz(const std::string &path, const Wanted &wanted) {
  auto file = std::make_shared<MappedFile>(path);
  Archive archive(path, file->bytes());
  TensorFile result{path, {}, {file}};
  std::set<std::string> names;
  for (const Member &member : archive.directory()) {
    if (!member.name.ends_with(".npy")) continue;
    if (!names.insert(member.name).second) throw archive.broken(fmt::format("it has two members named '{}'", member.name));
    std::string name = member.name.substr(0, member.name.size() - 4);
    Tensor &tensor = result.tensors.emplace_back();
    tensor.known = !wanted || wanted->contains(name);
    if (tensor.known) tensor = parseNpy(archive.extract(member, result.owners), path, member.name);
    tensor.name = name;
  }
  return result;
}

} // namespace zero::runtime
