// The .safetensors format: u64 header length, JSON header, tensor bytes without holes.
#include "runtime/data/safetensors.h"
#include "runtime/base/error.h"
#include "runtime/data/mapped_file.h"
#include "runtime/data/tensor_file.h"
#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace zero::runtime {
namespace {

constexpr uint64_t kLargestHeader = 100'000'000; // the format's own limit

Element parseType(const std::string &name, const std::string &path, const std::string &tensor) {
  for (int i = 0; i <= static_cast<int>(Element::BOOL); ++i)
    if (name == nameOf(static_cast<Element>(i))) return static_cast<Element>(i);
  throw Error(fmt::format("'{}': tensor '{}' has element type '{}', which is not supported", path, tensor, name));
}

// Of a tensor that is not `known` the bytes alone are looked at, whatever its type.
Tensor parseEntry(const std::string &path, const std::string &name, const nlohmann::json &entry, std::span<const std::byte> data,
                  uint64_t dataOffset, bool known) {
  auto broken = [&](const char *what) { return Error(fmt::format("'{}' is broken: tensor '{}' {}", path, name, what)); };
  if (!entry.is_object() || !entry.contains("dtype") || !entry.contains("shape") || !entry.contains("data_offsets"))
    throw broken("lacks dtype, shape or data_offsets");
  const auto &shape = entry["shape"], &range = entry["data_offsets"];
  if (!entry["dtype"].is_string() || !shape.is_array() || !range.is_array() || range.size() != 2 || !range[0].is_number_unsigned() ||
      !range[1].is_number_unsigned())
    throw broken("has fields of the wrong kind");
  Element type = known ? parseType(entry["dtype"].get<std::string>(), path, name) : Element::U8;
  Tensor tensor{name, type, {}, {}, 0, known};
  for (const auto &extent : shape) {
    if (!extent.is_number_unsigned()) throw broken("has a shape that is not made of sizes");
    tensor.shape.push_back(extent.get<uint64_t>());
  }
  uint64_t begin = range[0].get<uint64_t>(), end = range[1].get<uint64_t>(), bytes = 0;
  if (begin > end || end > data.size()) throw broken("lies beyond the end of the file (the file is truncated, or its header is wrong)");
  if (known && (!byteSize(tensor.shape, sizeOf(tensor.type), bytes) || bytes != end - begin))
    throw broken("has a shape that does not match its bytes");
  tensor.bytes = data.subspan(begin, end - begin);
  tensor.offset = dataOffset + begin;
  return tensor;
}

} // namespace

TensorFile openSafetensors(const std::string &path, const Wanted &wanted) {
  auto file = std::make_shared<MappedFile>(path);
  std::span<const std::byte> bytes = file->bytes();
  uint64_t header = 0;
  if (bytes.size() < 8) throw Error(fmt::format("'{}' is no .safetensors file: it has only {} bytes", path, bytes.size()));
  std::memcpy(&header, bytes.data(), 8);
  if (header > kLargestHeader || header > bytes.size() - 8)
    throw Error(fmt::format("'{}' is no whole .safetensors file: its header claims {} bytes of {}", path, header, bytes.size() - 8));
  const char *text = reinterpret_cast<const char *>(bytes.data() + 8);
  nlohmann::json json = nlohmann::json::parse(text, text + header, nullptr, false);
  if (!json.is_object()) throw Error(fmt::format("'{}' is broken: its header is not a JSON object", path));

  TensorFile result{path, {}, {file}};
  std::span<const std::byte> data = bytes.subspan(8 + header);
  for (const auto &[name, entry] : json.items())
    if (name != "__metadata__")
      result.tensors.push_back(parseEntry(path, name, entry, data, 8 + header, !wanted || wanted->contains(name)));
  // The format allows neither overlap nor holes: both mean that the header and the data do not belong together.
  std::vector<const Tensor *> order;
  for (const Tensor &tensor : result.tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(), [](const Tensor *a, const Tensor *b) {
    return a->bytes.data() != b->bytes.data() ? a->bytes.data() < b->bytes.data() : a->bytes.size() < b->bytes.size();
  });
  const std::byte *at = data.data();
  for (const Tensor *tensor : order) {
    if (tensor->bytes.data() != at)
      throw Error(fmt::format("'{}' is broken: tensor '{}' {} the one before it", path, tensor->name,
                              tensor->bytes.data() < at ? "overlaps" : "leaves a hole after"));
    at += tensor->bytes.size();
  }
  if (at != data.data() + data.size())
    throw Error(fmt::format("'{}' is broken: {} bytes after its last tensor belong to nothing", path, data.data() + data.size() - at));
  return result;
}

SafetensorsLayout layoutSafetensors(const std::vector<TensorSpec> &tensors, const std::map<std::string, std::string> &metadata) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (!metadata.empty()) json["__metadata__"] = metadata;
  SafetensorsLayout layout;
  uint64_t at = 0;
  for (const TensorSpec &tensor : tensors) {
    uint64_t bytes = 0;
    if (!byteSize(tensor.shape, sizeOf(tensor.type), bytes)) throw Error(fmt::format("tensor '{}' is too large for a file", tensor.name));
    if (json.contains(tensor.name))
      throw Error(fmt::format("two tensors are named '{}', and a .safetensors file can hold only one of them", tensor.name));
    json[tensor.name] = {{"dtype", nameOf(tensor.type)}, {"shape", tensor.shape}, {"data_offsets", {at, at + bytes}}};
    layout.offsets.push_back(at);
    at += bytes;
  }
  std::string text = json.dump();
  text.append((8 - text.size() % 8) % 8, ' '); // tensors start 8-aligned, as the reference implementation writes them
  uint64_t length = text.size();
  layout.header.assign(reinterpret_cast<const char *>(&length), 8);
  layout.header += text;
  for (uint64_t &offset : layout.offsets) offset += layout.header.size();
  layout.bytes = layout.header.size() + at;
  return layout;
}

} // namespace zero::runtime
