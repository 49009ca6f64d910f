//===- values.h - values of flags that are neither words nor numbers ----------------------------------===//
// What they cannot be is an Error that names the flag.
#pragma once
#include "compiler/onnx/import.h"
#include "llvm/ADT/StringRef.h"
#include <map>
#include <string>
#include <vector>

namespace zero {

/// "batch=4,seq=128" into sizes, which are at least 1; a name may come twice with the same one.
void readBinds(const std::vector<std::string> &binds, std::map<std::string, int64_t> &sizes);

/// --tie: "auto", "off" and regular expressions over names.
void readTies(const std::vector<std::string> &texts, onnx::ImportOptions &import);

/// --init: "weights", "random" or "random:SEED", which sets `chosenSeed`.
onnx::Init readInit(const std::string &text, uint64_t &chosenSeed);

/// "12", "4K", "16MiB", "1.5G" in bytes (powers of 1024).
uint64_t readBytes(const std::string &flag, llvm::StringRef text);

} // namespace zero
