//===- weights.cpp - mapped files, external data and conversion to host tensors ------------------===//
#include "compiler/onnx/weights.h"
#include "compiler/onnx/wire.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <cfloat>
#include <cmath>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace zero::onnx {
namespace {

struct Descriptor {
  int fd = -1;
  explicit Descriptor(int fd) : fd(fd) {}
  Descriptor(Descriptor &&other) noexcept : fd(std::exchange(other.fd, -1)) {}
  Descriptor &operator=(Descriptor &&other) noexcept {
    std::swap(fd, other.fd);
    return *this;
  }
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

[[noreturn]] void refuse(const TensorProto &t, const std::string &why) {
  throw FormatError("names external data for tensor '" + t.name.str() + "' in '" + t.location.str() + "', " + why);
}

/// Opens folder/location one component at a time without following links.
Descriptor openBeneath(const std::string &folder, const TensorProto &t) {
  StringRef location = t.location;
  if (location.empty()) refuse(t, "which is no file name");
  if (location.starts_with("/") || location.contains('\0') || location.contains('\\'))
    refuse(t, "but only paths relative to the model's folder are allowed");
  Descriptor at(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (at.fd < 0) refuse(t, std::string("but the model's folder cannot be opened: ") + std::strerror(errno));
  llvm::SmallVector<StringRef> parts;
  location.split(parts, '/', -1, /*KeepEmpty=*/false);
  if (llvm::is_contained(parts, "..")) refuse(t, "which leaves the model's folder");
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i] == ".") continue;
    bool last = i + 1 == parts.size();
    Descriptor next(::openat(at.fd, parts[i].str().c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | (last ? O_NONBLOCK : O_DIRECTORY)));
    if (next.fd < 0)
      refuse(t, errno == ELOOP || errno == ENOTDIR
                    ? "which goes through a symbolic link or is no plain file; put the data itself beside the model"
                    : std::string("which cannot be opened: ") + std::strerror(errno));
    at = std::move(next);
  }
  return at;
}

uint64_t number(const TensorProto &t, StringRef text, const char *what) {
  uint64_t v;
  if (text.getAsInteger(10, v)) refuse(t, std::string("but its ") + what + " '" + text.str() + "' is no number");
  return v;
}

float fromDouble(double d) {
  if (std::isfinite(d) && std::fabs(d) > FLT_MAX) return d < 0 ? -FLT_MAX : FLT_MAX;
  return float(d);
}

float fromHalf(uint16_t bits, const llvm::fltSemantics &semantics) {
  return llvm::APFloat(semantics, llvm::APInt(16, bits)).convertToFloat();
}

template <typename From, typename To, typename Convert> void convert(StringRef raw, char *out, Convert one) {
  for (size_t i = 0, n = raw.size() / sizeof(From); i < n; ++i) {
    From v;
    std::memcpy(&v, raw.data() + i * sizeof(From), sizeof(From));
    To r = To(one(v));
    std::memcpy(out + i * sizeof(To), &r, sizeof(To));
  }
}

} // namespace

Weights::Weights(std::string where) : path(std::move(where)) {
  llvm::sys::fs::file_status status; // a pipe is refused, not waited for
  if (!llvm::sys::fs::status(path, status) && !llvm::sys::fs::is_regular_file(status) && !llvm::sys::fs::is_directory(status))
    throw FormatError("is no regular file");
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file) throw FormatError("cannot be read: " + file.getError().message());
  buffer = std::move(*file);
  folder = llvm::sys::path::parent_path(path).str();
  if (folder.empty()) folder.push_back('.');
}

uint64_t Weights::mapped() const {
  uint64_t bytes = buffer->getBufferSize();
  for (auto &[name, file] : external)
    if (file) bytes += file->getBufferSize();
  return bytes;
}

StringRef Weights::externalFile(const TensorProto &t) {
  auto &file = external[t.location.str()];
  if (!file) {
    Descriptor opened = openBeneath(folder, t);
    struct stat info;
    if (::fstat(opened.fd, &info) || !S_ISREG(info.st_mode)) refuse(t, "which is no plain file");
    if (info.st_nlink > 1) refuse(t, "which has a second hard link; copy the file");
    auto mapped = llvm::MemoryBuffer::getOpenFile(opened.fd, t.location, uint64_t(info.st_size), /*RequiresNullTerminator=*/false);
    if (!mapped) refuse(t, "which cannot be read: " + mapped.getError().message());
    file = std::move(*mapped);
  }
  return file->getBuffer();
}

FileRange Weights::externalPlace(const TensorProto &t, uint64_t fileSize) const {
  FileRange p;
  p.file = folder == "." && !llvm::StringRef(path).starts_with("./") ? t.location.str() : folder + "/" + t.location.str();
  p.offset = t.offset.empty() ? 0 : number(t, t.offset, "offset");
  if (p.offset > fileSize)
    refuse(t, "but its offset " + std::to_string(p.offset) + " lies beyond the file's " + std::to_string(fileSize) + " bytes");
  p.bytes = t.length.empty() ? t.bytes() : number(t, t.length, "length");
  if (p.bytes != t.bytes())
    refuse(t, "but its length " + std::to_string(p.bytes) + " is not the " + std::to_string(t.bytes()) + " bytes of its shape and type");
  if (p.bytes > fileSize - p.offset)
    refuse(t, "but the file ends before byte " + std::to_string(p.offset) + " + " + std::to_string(p.bytes));
  return p;
}

std::optional<FileRange> Weights::place(const TensorProto &t) {
  if (t.external) return externalPlace(t, externalFile(t).size());
  if (t.inPlace.empty()) return std::nullopt;
  return FileRange{path, uint64_t(t.inPlace.begin() - model().begin()), t.inPlace.size()};
}

StringRef Weights::bytes(const TensorProto &t) {
  if (t.external) {
    StringRef file = externalFile(t);
    FileRange p = externalPlace(t, file.size());
    return file.substr(p.offset, p.bytes);
  }
  return t.inModel();
}

mlir::Type elementType(Type type, mlir::MLIRContext *context) {
  switch (type) {
  case Type::Float:
  case Type::Float16:
  case Type::BFloat16:
  case Type::Double:
    return mlir::FloatType::getF32(context);
  case Type::Bool:
    return mlir::IntegerType::get(context, 1);
  case Type::UInt8:
  case Type::Int8:
  case Type::UInt16:
  case Type::Int16:
  case Type::Int32:
    return mlir::IntegerType::get(context, 32);
  case Type::UInt32:
  case Type::UInt64:
  case Type::Int64:
    return mlir::IntegerType::get(context, 64);
  default:
    return {};
  }
}

nn::Tensor toHost(StringRef raw, Type type, llvm::ArrayRef<int64_t> shape, mlir::MLIRContext *context) {
  nn::Tensor t(mlir::RankedTensorType::get(shape, elementType(type, context)));
  char *out = t.bytes.data();
  auto same = [](auto v) { return v; };
  switch (type) {
  case Type::Float:
  case Type::Int32:
  case Type::Int64:
  case Type::UInt64:
    llvm::copy(raw.take_front(t.bytes.size()), out);
    break;
  case Type::Double:
    convert<double, float>(raw, out, fromDouble);
    break;
  case Type::Float16:
    convert<uint16_t, float>(raw, out, [](uint16_t v) { return fromHalf(v, llvm::APFloat::IEEEhalf()); });
    break;
  case Type::BFloat16:
    convert<uint16_t, float>(raw, out, [](uint16_t v) { return fromHalf(v, llvm::APFloat::BFloat()); });
    break;
  case Type::Bool:
    convert<uint8_t, uint8_t>(raw, out, [](uint8_t v) { return v != 0; });
    break;
  case Type::UInt8:
    convert<uint8_t, int32_t>(raw, out, same);
    break;
  case Type::Int8:
    convert<int8_t, int32_t>(raw, out, same);
    break;
  case Type::UInt16:
    convert<uint16_t, int32_t>(raw, out, same);
    break;
  case Type::Int16:
    convert<int16_t, int32_t>(raw, out, same);
    break;
  case Type::UInt32:
    convert<uint32_t, int64_t>(raw, out, same);
    break;
  default:
    break;
  }
  return t;
}

} // namespace zero::onnx
