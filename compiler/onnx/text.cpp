//===- text.cpp - text that can be shown ------------------------------------------------------------===//
#include "compiler/onnx/text.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"

namespace zero::onnx {

bool isUtf8(llvm::StringRef bytes) { return llvm::json::isUTF8(bytes); }

std::string printable(llvm::StringRef bytes) {
  std::string text;
  size_t wrong = 0;
  while (!llvm::json::isUTF8(bytes, &wrong)) {
    text += bytes.take_front(wrong);
    text += "\\x" + llvm::utohexstr(uint8_t(bytes[wrong]), false, 2);
    bytes = bytes.drop_front(wrong + 1);
  }
  return text + bytes.str();
}

} // namespace zero::onnx
