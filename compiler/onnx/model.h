//===- model.h - the part of onnx.proto the reader needs -----------------------------------------===//
// Field numbers are those of onnx/onnx.proto. Strings and weights are views of the mapped file, which must
// outlive the model.
#pragma once
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace zero::onnx {
using llvm::StringRef;

/// TensorProto.DataType.
enum class Type : int32_t {
  Undefined = 0,
  Float = 1,
  UInt8 = 2,
  Int8 = 3,
  UInt16 = 4,
  Int16 = 5,
  Int32 = 6,
  Int64 = 7,
  String = 8,
  Bool = 9,
  Float16 = 10,
  Double = 11,
  UInt32 = 12,
  UInt64 = 13,
  Complex64 = 14,
  Complex128 = 15,
  BFloat16 = 16
};
StringRef name(Type type);
bool isFloat(Type type);
unsigned unsignedBitsOf(Type type); // 0: signed, or no integer
/// Bytes of one element in raw_data; 0 for types the reader does not read.
unsigned sizeOf(Type type);

struct TensorProto {
  StringRef name;
  Type type = Type::Undefined;
  std::vector<int64_t> dims;
  uint64_t elements = 0;     // product of dims, checked against overflow
  bool hasData = false;      // false: dims alone, legal with random initial values only
  StringRef inPlace;         // the elements where they lie in the file (raw_data, packed float_data and double_data)
  std::vector<char> decoded; // the elements in raw layout where the file has them as varints
  bool inNode = false;       // stands in a Constant node, not among the initializers
  bool external = false;
  StringRef location, offset, length; // external_data, unparsed

  uint64_t bytes() const { return elements * sizeOf(type); }
  /// The elements in raw layout; empty where another file has them, or none.
  StringRef inModel() const { return decoded.empty() ? inPlace : StringRef(decoded.data(), decoded.size()); }
};

struct Graph;

struct Attribute {
  StringRef name, reference; // reference: name of the calling function's attribute
  int32_t kind = 0;          // AttributeProto.AttributeType
  float f = 0;
  int64_t i = 0;
  StringRef s;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<StringRef> strings;
  std::shared_ptr<TensorProto> tensor;
  std::shared_ptr<Graph> graph;
  bool unread = false; // carries a sparse tensor, a type, or lists of tensors or graphs
};

struct Node {
  StringRef name, op, domain;
  StringRef overload; // of functions of one name
  StringRef module;   // "transformer.h.3.mlp": what PyTorch's exporter says it stands in; empty elsewhere
  StringRef call;     // the call it came from, as PyTorch's exporter prints it; empty elsewhere
  std::vector<StringRef> inputs, outputs;
  std::vector<Attribute> attributes;
  enum class Mask : uint8_t { None, Put, Pick } mask = Mask::None; // it reads a mask where the file has indices (by_mask.h)
};

struct Dim {
  int64_t size = -1; // -1: symbolic or unknown
  StringRef parameter;
};

struct ValueInfo {
  StringRef name;
  Type type = Type::Undefined;
  bool tensor = false, ranked = false;
  std::vector<Dim> dims;
};

struct Graph {
  StringRef name;
  std::vector<Node> nodes;
  std::vector<TensorProto> initializers;
  std::vector<ValueInfo> inputs, outputs;
};

struct OpsetImport {
  StringRef domain;
  int64_t version = 0;
};

struct Function {
  StringRef name, domain, overload;
  std::vector<StringRef> inputs, outputs, attributes;
  std::vector<Attribute> defaults;
  std::vector<Node> nodes;
  std::vector<OpsetImport> opsets;
};

struct Model {
  int64_t irVersion = 0;
  StringRef producer, producerVersion;
  Graph graph;
  bool hasGraph = false;
  std::vector<OpsetImport> opsets;
  std::vector<Function> functions;
  std::deque<std::string> made; // names that are not the file's

  /// Those of functions and of graphs in attributes included.
  uint64_t countNodes() const;
};

/// Throws FormatError. Work and memory are bounded by the size of `bytes`.
Model parseModel(StringRef bytes);
/// A TensorProto on its own (test data, attributes).
TensorProto parseTensor(StringRef bytes);

} // namespace zero::onnx
