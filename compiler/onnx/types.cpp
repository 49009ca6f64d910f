//===- types.cpp - TensorProto.DataType: names and widths -------------------------------------------===//
#include "compiler/onnx/model.h"

namespace zero::onnx {

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
  case Type::Complex64:
    return "complex64";
  case Type::Complex128:
    return "complex128";
  default:
    return "a type the reader does not know";
  }
}

bool isFloat(Type type) { return type == Type::Float || type == Type::Float16 || type == Type::Double || type == Type::BFloat16; }

unsigned unsignedBitsOf(Type type) {
  bool is = type == Type::UInt8 || type == Type::UInt16 || type == Type::UInt32 || type == Type::UInt64;
  return is ? 8 * sizeOf(type) : 0;
}

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

} // namespace zero::onnx
