//===- wire.h - protobuf's wire format, read in place --------------------------------------------===//
// The reader walks the mapped file and never copies: a string or a weight is a view of the mapping, so its
// place in the file is pointer arithmetic, and files beyond protobuf's own 2 GiB limit are no special case.
#pragma once
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

namespace zero::onnx {

/// The file is not what it should be. Caught at the reader's border and turned into one diagnostic.
struct FormatError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// One field of a message.
struct Field {
  uint32_t number = 0;
  uint32_t wire = 0;     // 0 varint, 1 64 bit, 2 bytes, 5 32 bit
  uint64_t value = 0;    // of a varint or a fixed-width number
  llvm::StringRef bytes; // of wire type 2

  int64_t integer() const { return int64_t(value); }
  float real() const {
    uint32_t bits = uint32_t(value);
    float f;
    std::memcpy(&f, &bits, 4);
    return f;
  }
};

/// Reads a message field by field. Unknown fields are the caller's to ignore; groups (wire types 3 and 4) are
/// skipped here.
class Wire {
public:
  explicit Wire(llvm::StringRef message, const char *what) : at(message.begin()), end(message.end()), what(what) {}

  /// Next field into `field`; false at the end of the message.
  bool next(Field &field) {
    while (at != end) {
      uint64_t tag = varint();
      field.number = uint32_t(tag >> 3);
      field.wire = uint32_t(tag & 7);
      if (!field.number || tag >> 32) fail("a field without a number");
      switch (field.wire) {
      case 0:
        field.value = varint();
        return true;
      case 1:
        field.value = fixed(8);
        return true;
      case 2: {
        uint64_t n = varint();
        if (n > uint64_t(end - at)) fail("a field that ends beyond its message");
        field.bytes = {at, size_t(n)};
        at += n;
        return true;
      }
      case 3:
        skipGroup(field.number);
        continue;
      case 5:
        field.value = fixed(4);
        return true;
      default:
        fail("a wire type that does not exist");
      }
    }
    return false;
  }

  /// A varint of a packed field.
  uint64_t varint() {
    uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at == end) fail("a number cut off");
      uint8_t b = uint8_t(*at++);
      v |= uint64_t(b & 127) << shift;
      if (!(b & 128)) return v;
    }
    fail("a number of more than 64 bits");
  }
  bool done() const { return at == end; }

private:
  uint64_t fixed(unsigned n) {
    if (uint64_t(end - at) < n) fail("a number cut off");
    uint64_t v = 0;
    std::memcpy(&v, at, n); // little-endian hosts only, as the whole project
    at += n;
    return v;
  }
  void skipGroup(uint32_t number) {
    for (unsigned depth = 1; depth;) {
      if (at == end) fail("a group without an end");
      uint64_t tag = varint();
      switch (tag & 7) {
      case 0:
        varint();
        break;
      case 1:
        fixed(8);
        break;
      case 2: {
        uint64_t n = varint();
        if (n > uint64_t(end - at)) fail("a field that ends beyond its message");
        at += n;
        break;
      }
      case 3:
        ++depth;
        break;
      case 4:
        --depth;
        break;
      case 5:
        fixed(4);
        break;
      default:
        fail("a wire type that does not exist");
      }
    }
    (void)number;
  }
  [[noreturn]] void fail(const char *found) const {
    throw FormatError(std::string("is truncated or no ONNX file: its ") + what + " holds " + found);
  }

  const char *at, *end;
  const char *what;
};

/// Calls `take` with each varint of a packed or unpacked field.
template <typename Take> void integers(const Field &f, Take take) {
  if (f.wire == 0) return take(f.value);
  if (f.wire != 2) throw FormatError("is no ONNX file: a list of integers has another wire type");
  for (Wire w(f.bytes, "list of integers"); !w.done();) take(w.varint());
}

/// StringStringEntryProto.
inline std::pair<StringRef, StringRef> entry(StringRef bytes, const char *what) {
  std::pair<StringRef, StringRef> keyAndValue;
  Field f;
  for (Wire w(bytes, what); w.next(f);) {
    if (f.number == 1) keyAndValue.first = f.bytes;
    if (f.number == 2) keyAndValue.second = f.bytes;
  }
  return keyAndValue;
}

} // namespace zero::onnx
