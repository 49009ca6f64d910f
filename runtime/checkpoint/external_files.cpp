// A walk over the protobuf wire format of an ONNX model that looks for one thing: TensorProto.external_data's location.
#include "runtime/base/error.h"
#include "runtime/checkpoint/export_onnx.h"
#include "runtime/data/mapped_file.h"
#include "runtime/files/file.h"
#include <filesystem>
#include <fmt/format.h>
#include <functional>

namespace zero::runtime {
namespace {

using Bytes = std::span<const std::byte>;

struct Malformed {};

uint64_t varint(Bytes &in) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (in.empty()) throw Malformed{};
    auto byte = static_cast<uint64_t>(in[0]);
    in = in.subspan(1);
    value |= (byte & 127) << shift;
    if (byte < 128) return value;
  }
  throw Malformed{};
}

Bytes take(Bytes &in, uint64_t size) {
  if (size > in.size()) throw Malformed{};
  Bytes part = in.subspan(0, size);
  in = in.subspan(size);
  return part;
}

// Calls `visit` with every length-delimited field of a message.
void fields(Bytes message, const std::function<void(uint64_t field, Bytes)> &visit) {
  while (!message.empty()) {
    uint64_t tag = varint(message);
    switch (tag & 7) {
    case 0:
      varint(message);
      break;
    case 1:
      take(message, 8);
      break;
    case 2:
      visit(tag >> 3, take(message, varint(message)));
      break;
    case 5:
      take(message, 4);
      break;
    default:
      throw Malformed{};
    }
  }
}

std::string text(Bytes bytes) { return {reinterpret_cast<const char *>(bytes.data()), bytes.size()}; }

class Walk {
public:
  std::set<std::string> locations;

  void model(Bytes message) {
    fields(message, [&](uint64_t field, Bytes value) {
      if (field == 7) // ModelProto.graph
        graph(value, 0);
      else if (field == 25) // ModelProto.functions
        fields(value, [&](uint64_t f, Bytes v) {
          if (f == 7) // FunctionProto.node
            node(v, 0);
        });
    });
  }

private:
  void graph(Bytes message, int depth) {
    if (depth > 100) throw Malformed{};
    fields(message, [&](uint64_t field, Bytes value) {
      if (field == 1) // node
        node(value, depth);
      else if (field == 5) // initializer
        tensor(value);
      else if (field == 15) // sparse_initializer: values, indices
        fields(value, [&](uint64_t f, Bytes v) {
          if (f == 1 || f == 2) tensor(v);
        });
    });
  }

  void node(Bytes message, int depth) {
    fields(message, [&](uint64_t field, Bytes attribute) {
      if (field != 5) // NodeProto.attribute
        return;
      fields(attribute, [&](uint64_t f, Bytes value) {
        if (f == 5 || f == 10) // t, tensors
          tensor(value);
        else if (f == 6 || f == 11) // g, graphs
          graph(value, depth + 1);
      });
    });
  }

  void tensor(Bytes message) {
    fields(message, [&](uint64_t field, Bytes entry) {
      if (field != 13) // external_data: StringStringEntryProto
        return;
      std::string key, value;
      fields(entry, [&](uint64_t f, Bytes v) { (f == 1 ? key : value) = text(v); });
      if (key == "location") locations.insert(value);
    });
  }
};

} // namespace

std::set<std::string> externalFiles(const std::string &model) {
  MappedFile file(model);
  Walk walk;
  try {
    walk.model(file.bytes());
  } catch (const Malformed &) {
    throw Error(fmt::format("'{}' is not an ONNX model, or is damaged", model));
  }
  return walk.locations;
}

std::set<std::string> dataFilesOf(const std::string &model) {
  std::set<std::string> files;
  std::error_code failed;
  if (!std::filesystem::is_regular_file(model, failed)) return files;
  try {
    for (const std::string &name : externalFiles(model)) files.insert((std::filesystem::path(parentOf(model)) / name).string());
  } catch (const Error &) {
  }
  return files;
}

} // namespace zero::runtime
