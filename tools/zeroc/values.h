//===- values.h - values of flags that are neither words nor numbers ----------------------------------===//
// What they cannot be is an Error that names the flag.
#pragma once
#include "llvm/ADT/StringRef.h"
#include <map>
#include <string>
#include <vector>

namespace zero {

/// "batch=4,seq=128" into sizes, which are at least 1; a name may come twice with the same one.
void readBinds(const std::vector<std::string> &binds, std::map<std::string, int64_t> &sizes);

/// "12", "4K", "16MiB", "1.5G" in bytes (powers of 1024).
uint64_t readBytes(const std::string &flag, llvm::StringRef text);

} // namespace zero
