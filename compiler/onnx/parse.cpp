//===- parse.cpp - onnx.proto messages from the wire ---------------------------------------------===//
#include "compiler/onnx/model.h"
#include "compiler/onnx/wire.h"
#include <limits>

namespace zero::onnx {
namespace {

/// Subgraphs in attributes of nodes of subgraphs …; exporters nest two or three deep.
constexpr int kMaxDepth = 16;

void floats(const Field &f, std::vector<float> &out) {
  if (f.wire == 5) return out.push_back(f.real());
  if (f.wire != 2 || f.bytes.size() % 4) throw FormatError("is no ONNX file: a list of floats has a length that is no multiple of 4");
  size_t old = out.size();
  out.resize(old + f.bytes.size() / 4);
  std::memcpy(out.data() + old, f.bytes.data(), f.bytes.size());
}

/// Calls `take` with each varint of a packed or unpacked field.
template <typename Take> void integers(const Field &f, Take take) {
  if (f.wire == 0) return take(f.value);
  if (f.wire != 2) throw FormatError("is no ONNX file: a list of integers has another wire type");
  for (Wire w(f.bytes, "list of integers"); !w.done();) take(w.varint());
}

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
  uint64_t n = 1;
  for (int64_t d : t.dims) {
    if (d < 0) throw FormatError("is no valid ONNX file: tensor '" + t.name.str() + "' has a negative dimension");
    if (d && n > uint64_t(std::numeric_limits<int64_t>::max()) / 16 / uint64_t(d))
      throw FormatError("is no valid ONNX file: tensor '" + t.name.str() + "' has more elements than 64 bits count");
    n *= uint64_t(d);
  }
  t.elements = n;
}

TensorProto tensor(StringRef bytes) {
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
    case 13: { // StringStringEntryProto
      StringRef key, value;
      Field e;
      for (Wire entry(f.bytes, "external_data"); entry.next(e);) {
        if (e.number == 1) key = e.bytes;
        if (e.number == 2) value = e.bytes;
      }
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
  uint64_t have = t.decoded.empty() ? t.inPlace.size() : t.decoded.size();
  if (t.hasData && width && have != t.bytes())
    throw FormatError("is damaged: tensor '" + t.name.str() + "' has " + std::to_string(have) +
                      " bytes of data where its shape and type need " + std::to_string(t.bytes()));
  return t;
}

Graph graph(StringRef bytes, int depth);

Attribute attribute(StringRef bytes, int depth) {
  Attribute a;
  Field f;
  for (Wire w(bytes, "attribute"); w.next(f);) {
    switch (f.number) {
    case 1:
      a.name = f.bytes;
      break;
    case 2:
      a.f = f.real();
      break;
    case 3:
      a.i = f.integer();
      break;
    case 4:
      a.s = f.bytes;
      break;
    case 5:
      a.tensor = std::make_shared<TensorProto>(tensor(f.bytes));
      break;
    case 6:
      a.graph = std::make_shared<Graph>(graph(f.bytes, depth + 1));
      break;
    case 7:
      floats(f, a.floats);
      break;
    case 8:
      integers(f, [&](uint64_t v) { a.ints.push_back(int64_t(v)); });
      break;
    case 9:
      a.strings.push_back(f.bytes);
      break;
    case 10:
    case 11:
    case 14:
    case 15:
    case 22:
    case 23:
      a.unread = true;
      break;
    case 20:
      a.kind = int32_t(f.value);
      break;
    case 21:
      a.reference = f.bytes;
      break;
    default:
      break;
    }
  }
  return a;
}

Node node(StringRef bytes, int depth) {
  Node n;
  Field f;
  for (Wire w(bytes, "node"); w.next(f);) {
    switch (f.number) {
    case 1:
      n.inputs.push_back(f.bytes);
      break;
    case 2:
      n.outputs.push_back(f.bytes);
      break;
    case 3:
      n.name = f.bytes;
      break;
    case 4:
      n.op = f.bytes;
      break;
    case 5:
      n.attributes.push_back(attribute(f.bytes, depth));
      break;
    case 7:
      n.domain = f.bytes;
      break;
    default:
      break;
    }
  }
  if (n.domain == "ai.onnx") n.domain = "";
  return n;
}

ValueInfo valueInfo(StringRef bytes) {
  ValueInfo v;
  Field f;
  for (Wire w(bytes, "value"); w.next(f);) {
    if (f.number == 1) v.name = f.bytes;
    if (f.number != 2) continue;
    Field t;
    for (Wire type(f.bytes, "type"); type.next(t);) {
      if (t.number != 1) continue;
      v.tensor = true;
      Field e;
      for (Wire tensorType(t.bytes, "type"); tensorType.next(e);) {
        if (e.number == 1) v.type = Type(int32_t(e.value));
        if (e.number != 2) continue;
        v.ranked = true;
        Field d;
        for (Wire shape(e.bytes, "shape"); shape.next(d);) {
          if (d.number != 1) continue;
          Dim dim;
          Field x;
          for (Wire one(d.bytes, "dimension"); one.next(x);) {
            if (x.number == 1 && x.wire == 0) dim.size = x.integer();
            if (x.number == 2) dim.parameter = x.bytes;
          }
          v.dims.push_back(dim);
        }
      }
    }
  }
  return v;
}

Graph graph(StringRef bytes, int depth) {
  if (depth > kMaxDepth) throw FormatError("nests graphs more than " + std::to_string(kMaxDepth) + " deep");
  Graph g;
  Field f;
  for (Wire w(bytes, "graph"); w.next(f);) {
    switch (f.number) {
    case 1:
      g.nodes.push_back(node(f.bytes, depth));
      break;
    case 2:
      g.name = f.bytes;
      break;
    case 5:
      g.initializers.push_back(tensor(f.bytes));
      break;
    case 11:
      g.inputs.push_back(valueInfo(f.bytes));
      break;
    case 12:
      g.outputs.push_back(valueInfo(f.bytes));
      break;
    case 15:
      throw FormatError("stores an initializer as a sparse tensor, which is not read; save it dense");
    default:
      break;
    }
  }
  return g;
}

OpsetImport opset(StringRef bytes) {
  OpsetImport o;
  Field f;
  for (Wire w(bytes, "opset"); w.next(f);) {
    if (f.number == 1) o.domain = f.bytes == "ai.onnx" ? "" : f.bytes;
    if (f.number == 2) o.version = f.integer();
  }
  return o;
}

Function function(StringRef bytes) {
  Function fn;
  Field f;
  for (Wire w(bytes, "function"); w.next(f);) {
    switch (f.number) {
    case 1:
      fn.name = f.bytes;
      break;
    case 4:
      fn.inputs.push_back(f.bytes);
      break;
    case 5:
      fn.outputs.push_back(f.bytes);
      break;
    case 6:
      fn.attributes.push_back(f.bytes);
      break;
    case 7:
      fn.nodes.push_back(node(f.bytes, 0));
      break;
    case 9:
      fn.opsets.push_back(opset(f.bytes));
      break;
    case 10:
      fn.domain = f.bytes;
      break;
    case 11:
      fn.defaults.push_back(attribute(f.bytes, 0));
      break;
    default:
      break;
    }
  }
  return fn;
}

} // namespace

StringRef name(Type type) {
  switch (type) {
  case Type::Float:
    return "f32";
  case Type::UInt8:
    return "u8";
  case Type::Int8:
    return "i8";
  case Type::UInt16:
    return "u16";
  case Type::Int16:
    return "i16";
  case Type::Int32:
    return "i32";
  case Type::Int64:
    return "i64";
  case Type::String:
    return "string";
  case Type::Bool:
    return "bool";
  case Type::Float16:
    return "f16";
  case Type::Double:
    return "f64";
  case Type::UInt32:
    return "u32";
  case Type::UInt64:
    return "u64";
  case Type::BFloat16:
    return "bf16";
  default:
    return "a type the reader does not know";
  }
}

bool isFloat(Type type) { return type == Type::Float || type == Type::Float16 || type == Type::Double || type == Type::BFloat16; }

unsigned sizeOf(Type type) {
  switch (type) {
  case Type::UInt8:
  case Type::Int8:
  case Type::Bool:
    return 1;
  case Type::UInt16:
  case Type::Int16:
  case Type::Float16:
  case Type::BFloat16:
    return 2;
  case Type::Float:
  case Type::Int32:
  case Type::UInt32:
    return 4;
  case Type::Int64:
  case Type::Double:
  case Type::UInt64:
    return 8;
  default:
    return 0;
  }
}

TensorProto parseTensor(StringRef bytes) { return tensor(bytes); }

Model parseModel(StringRef bytes) {
  if (bytes.empty()) throw FormatError("is empty");
  Model m;
  Field f;
  for (Wire w(bytes, "model"); w.next(f);) {
    switch (f.number) {
    case 1:
      m.irVersion = f.integer();
      break;
    case 2:
      m.producer = f.bytes;
      break;
    case 3:
      m.producerVersion = f.bytes;
      break;
    case 7:
      if (m.hasGraph) throw FormatError("holds two graphs");
      m.graph = graph(f.bytes, 0);
      m.hasGraph = true;
      break;
    case 8:
      m.opsets.push_back(opset(f.bytes));
      break;
    case 25:
      m.functions.push_back(function(f.bytes));
      break;
    default:
      break;
    }
  }
  if (!m.hasGraph) throw FormatError("is no ONNX file: it holds no graph");
  if (m.opsets.empty()) throw FormatError("is no ONNX file: it names no operator set");
  return m;
}

} // namespace zero::onnx
