//===- weights.h - where the bytes of an initializer are -----------------------------------------===//
#pragma once
#include "compiler/nn/eval/eval.h"
#include "compiler/onnx/model.h"
#include "llvm/Support/MemoryBuffer.h"
#include <map>

namespace zero::onnx {

/// A run of bytes in a file.
struct FileRange {
  std::string file;
  uint64_t offset = 0, bytes = 0;
};

/// The mapped model and its external data files. External files are looked for beneath the model's folder only:
/// no absolute path, no "..", no symbolic link, no file with a second hard link, so that a model from a stranger
/// cannot name a file of the user's. All members throw FormatError.
class Weights {
public:
  /// Maps the file; `path` is kept as it was given, because the plan repeats it.
  explicit Weights(std::string path);

  StringRef model() const { return buffer->getBuffer(); }
  /// Bytes of the model and of the external files that were needed so far.
  uint64_t mapped() const;
  /// Where the elements lie, or nothing if the file has them as varints (they exist decoded only).
  std::optional<FileRange> place(const TensorProto &t);
  /// The elements in raw layout. Empty for a tensor without data.
  StringRef bytes(const TensorProto &t);

private:
  StringRef externalFile(const TensorProto &t);
  FileRange externalPlace(const TensorProto &t, uint64_t fileSize) const;

  std::string path, folder;
  std::unique_ptr<llvm::MemoryBuffer> buffer;
  std::map<std::string, std::unique_ptr<llvm::MemoryBuffer>> external;
};

/// The element type in nn of an ONNX type: all floats are f32, integers of up to 32 bits (but uint32) i32, the
/// others i64, bool i1. Null for strings, complex and sub-byte types.
mlir::Type elementType(Type type, mlir::MLIRContext *context);
/// `raw` (elements of `type`) in nn's layout and type. A double beyond f32's range becomes its largest number, so
/// that a mask of -1.8e308 stays finite.
nn::Tensor toHost(StringRef raw, Type type, llvm::ArrayRef<int64_t> shape, mlir::MLIRContext *context);

} // namespace zero::onnx
