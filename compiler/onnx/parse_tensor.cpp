//===- parse_tensor.cpp - a TensorProto from the wire: dimensions, and where its elements are -------===//
#include "compiler/onnx/model.h"
#include "compiler/onnx/wire.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <limits>

namespace zero::onnx {
namespace {

/// Little-endian elements of `width` bytes from a list of numbers: fixed-width ones as they are, varints cut.
void append(const Field &f, unsigned width, std::vector<char> &out) {
  auto one = [&](uint64_t v) {
    const char *bytes = reinterpret_cast<const char *>(&v);
    out.insert(out.end(), bytes, bytes + width);
  };
  bool fixed = f.number == 4 || f.number == 10;
  if (fixed && f.wire == 2)
    out.insert(out.end(), f.bytes.begin(), f.bytes.end());
  else if (fixed)
    one(f.value);
  else
    integers(f, one);
}

void checkSize(TensorProto &t) {
  uint64_t n = 1; // without dimensions of size 0: parts of a shape are multiplied, too
  for (int64_t d : t.dims) {
    if (d < 0) throw FormatError("is no valid ONNX file: tensor '" + t.name.str() + "' has a negative dimension");
    if (d && n > uint64_t(std::numeric_limits<int64_t>::max()) / 16 / uint64_t(d))
      throw FormatError("is no valid ONNX file: tensor '" + t.name.str() + "' has more elements than 64 bits count");
    n *= std::max<uint64_t>(uint64_t(d), 1);
  }
  t.elements = llvm::is_contained(t.dims, 0) ? 0 : n;
}

} // namespace

TensorProto parseTensor(StringRef bytes) {
  TensorProto t;
  StringRef raw;
  std::vector<Field> numbers; // float_data, double_data and the varint lists: understood once the type is known
  bool hasRaw = false;
  Field f;
  for (Wire w(bytes, "tensor"); w.next(f);) {
    switch (f.number) {
    case 1:
      integers(f, [&](uint64_t v) { t.dims.push_back(int64_t(v)); });
      break;
    case 2:
      t.type = Type(int32_t(f.value));
      break;
    case 4:
    case 5:
    case 7:
    case 10:
    case 11:
      numbers.push_back(f);
      break;
    case 8:
      t.name = f.bytes;
      break;
    case 9:
      raw = f.bytes;
      hasRaw = true;
      break;
    case 13: { // external_data
      auto [key, value] = entry(f.bytes, "external_data");
      if (key == "location") t.location = value;
      if (key == "offset") t.offset = value;
      if (key == "length") t.length = value;
      break;
    }
    case 14:
      t.external = f.value == 1;
      break;
    default:
      break;
    }
  }
  if (t.dims.size() > 64) throw FormatError("is no valid ONNX file: tensor '" + t.name.str() + "' has more than 64 dimensions");
  checkSize(t);
  unsigned width = sizeOf(t.type);
  if (t.external) {
    t.hasData = true;
    return t;
  }
  t.hasData = true;
  if (hasRaw && (!raw.empty() || t.elements == 0))
    t.inPlace = raw;
  else if (numbers.size() == 1 && numbers[0].wire == 2 && (numbers[0].number == 4 || numbers[0].number == 10))
    t.inPlace = numbers[0].bytes; // packed floats and doubles have the layout of raw_data
  else if (!numbers.empty())
    for (const Field &run : numbers) append(run, width, t.decoded);
  else
    t.hasData = t.elements == 0;
  uint64_t have = t.inModel().size();
  if (t.hasData && width && have != t.bytes())
    throw FormatError("is damaged: tensor '" + t.name.str() + "' has " + std::to_string(have) +
                      " bytes of data where its shape and type need " + std::to_string(t.bytes()));
  return t;
}

} // namespace zero::onnx
