//===- patterns.h - --train, --freeze and --tie: regular expressions over names --------------------===//
#pragma once
#include "mlir/IR/Location.h"
#include "mlir/Support/LogicalResult.h"
#include "llvm/ADT/ArrayRef.h"
#include <regex>
#include <string>
#include <vector>

namespace zero::onnx {

/// The expressions of one flag. Each is searched for in names, and remembers whether any has it.
class Patterns {
public:
  explicit Patterns(llvm::StringRef flag) : flag(flag) {}
  /// Fails after a diagnostic where a text is no regular expression.
  mlir::LogicalResult compile(llvm::ArrayRef<std::string> texts, mlir::Location loc);
  /// Whether any expression is found in any of the names that one thing has.
  bool match(llvm::ArrayRef<std::string> names);
  bool empty() const { return list.empty(); }
  /// Fails after a diagnostic that shows near names where an expression was found in no name: a misspelt one would train or freeze
  /// what it was to change.
  mlir::LogicalResult allFound(llvm::StringRef what, mlir::Location loc) const;

private:
  struct Pattern {
    std::string text;
    std::regex regex;
    bool found = false;
  };
  std::string flag;
  std::vector<Pattern> list;
  std::vector<std::string> seen; // the first name of each thing, for messages
};

} // namespace zero::onnx
