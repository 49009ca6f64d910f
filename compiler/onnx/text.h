//===- text.h - bytes that a file has where text should be -------------------------------------------===//
#pragma once
#include "llvm/ADT/StringRef.h"
#include <string>

namespace zero::onnx {

/// ONNX and the plan hold names in UTF-8, but a file can hold any bytes.
bool isUtf8(llvm::StringRef bytes);
/// Bytes that are no UTF-8 as "\xFF", the rest as it is.
std::string printable(llvm::StringRef bytes);

} // namespace zero::onnx
