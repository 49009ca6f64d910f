#include "runtime/data/npy.h"
#include "runtime/base/error.h"
#include <cctype>
#include <cstring>
#include <fmt/format.h>
#include <optional>
#include <string_view>

namespace zero::runtime {
namespace {

// The text after 'key': in the header's dictionary; numpy writes it in one canonical form, with these three keys.
std::optional<std::string_view> valueOf(std::string_view header, std::string_view key) {
  size_t at = header.find(fmt::format("'{}':", key));
  if (at == std::string_view::npos) return std::nullopt;
  at = header.find_first_not_of(' ', at + key.size() + 3);
  return at == std::string_view::npos ? std::nullopt : std::optional(header.substr(at));
}

std::optional<Element> elementOfDescr(std::string_view descr) {
  static constexpr std::pair<std::string_view, Element> table[] = {
      {"f8", Element::F64}, {"f4", Element::F32}, {"f2", Element::F16}, {"i8", Element::I64}, {"i4", Element::I32}, {"i2", Element::I16},
      {"i1", Element::I8},  {"u8", Element::U64}, {"u4", Element::U32}, {"u2", Element::U16}, {"u1", Element::U8},  {"b1", Element::BOOL}};
  for (auto [name, element] : table)
    if (descr.substr(1) == name && (descr[0] == '<' || descr[0] == '|')) return element;
  return std::nullopt;
}

std::optional<std::vector<uint64_t>> parseShape(std::string_view text) {
  std::vector<uint64_t> shape;
  if (text.empty() || text[0] != '(') return std::nullopt;
  for (size_t i = 1; i < text.size();) {
    if (text[i] == ')') return shape;
    if (text[i] == ' ' || text[i] == ',') {
      ++i;
      continue;
    }
    uint64_t value = 0;
    size_t begin = i;
    for (; i < text.size() && std::isdigit(static_cast<unsigned char>(text[i])); ++i) {
      if (i - begin > 17) return std::nullopt;
      value = value * 10 + static_cast<uint64_t>(text[i] - '0');
    }
    if (i == begin || shape.size() == 32) return std::nullopt;
    shape.push_back(value);
  }
  return std::nullopt;
}

} // namespace

Tensor parseNpy(std::span<const std::byte> bytes, const std::string &path, const std::string &member) {
  auto broken = [&](const std::string &what) { return Error(fmt::format("'{}': array '{}' {}", path, member, what)); };
  if (bytes.size() < 10 || std::memcmp(bytes.data(), "\x93NUMPY", 6) != 0) throw broken("is not in NumPy's format");
  unsigned major = static_cast<unsigned>(bytes[6]);
  uint64_t prefix = major == 1 ? 10 : 12, length = 0;
  if (major < 1 || major > 3 || bytes.size() < prefix) throw broken(fmt::format("has format version {}, known are 1 to 3", major));
  std::memcpy(&length, bytes.data() + 8, prefix - 8);
  if (length > bytes.size() - prefix) throw broken("ends inside its header");
  std::string_view header(reinterpret_cast<const char *>(bytes.data() + prefix), length);
  auto descr = valueOf(header, "descr"), order = valueOf(header, "fortran_order"), shape = valueOf(header, "shape");
  if (!descr || !order || !shape || descr->size() < 2 || (*descr)[0] != '\'')
    throw broken("has a header without a plain descr, fortran_order or shape");
  std::string_view type = descr->substr(1, descr->find('\'', 1) - 1);
  auto element = type.empty() ? std::nullopt : elementOfDescr(type);
  if (!element)
    throw broken(fmt::format("has element type '{}', which is not supported (little-endian integers, floats and bool are)", type));
  auto extents = parseShape(*shape);
  uint64_t size = 0;
  if (!extents || !byteSize(*extents, sizeOf(*element), size)) throw broken("has a shape that makes no sense");
  if (!order->starts_with("False") && extents->size() > 1) throw broken("is in Fortran order; save numpy.ascontiguousarray of it");
  if (size != bytes.size() - prefix - length)
    throw broken(fmt::format("should hold {} bytes of elements but holds {}", size, bytes.size() - prefix - length));
  return Tensor{member, *element, *extents, bytes.subspan(prefix + length), 0};
}

} // namespace zero::runtime
