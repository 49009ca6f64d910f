//===- values.cpp - values of flags that are neither words nor numbers --------------------------------===//
#include "tools/zeroc/values.h"
#include "runtime/base/error.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>
#include <cstring>

namespace zero {

void readBinds(const std::vector<std::string> &binds, std::map<std::string, int64_t> &sizes) {
  for (const std::string &bind : binds) {
    llvm::SmallVector<llvm::StringRef> parts;
    llvm::StringRef(bind).split(parts, ',', -1, false);
    for (llvm::StringRef part : parts) {
      auto [name, value] = part.split('=');
      int64_t n = 0;
      if (name.empty() || value.getAsInteger(10, n) || n < 1)
        throw Error("--bind wants NAME=N with N at least 1, not '" + part.str() + "'");
      if (auto [it, fresh] = sizes.emplace(name.str(), n); !fresh && it->second != n)
        throw Error("--bind gives " + name.str() + " two sizes, " + std::to_string(it->second) + " and " + std::to_string(n));
    }
  }
}

void readTies(const std::vector<std::string> &texts, onnx::ImportOptions &import) {
  bool off = llvm::is_contained(texts, "off");
  if (off && llvm::is_contained(texts, "auto")) throw Error("--tie is auto or off, not both");
  import.tie = !off;
  llvm::copy_if(texts, std::back_inserter(import.tied), [](const std::string &how) { return how != "auto" && how != "off"; });
}

onnx::Init readInit(const std::string &text, uint64_t &chosenSeed) {
  auto [rule, seed] = llvm::StringRef(text).split(':');
  if (rule != "weights" && rule != "random") throw Error("--init is weights or random[:SEED], not '" + text + "'");
  bool seeded = llvm::StringRef(text).contains(':');
  if (seeded && rule == "weights") throw Error("--init weights reads the model's own values and takes no seed");
  if (seeded && seed.getAsInteger(10, chosenSeed)) throw Error("--init random takes a number as its seed, not '" + seed.str() + "'");
  return rule == "random" ? onnx::Init::Random : onnx::Init::Weights;
}

uint64_t readBytes(const std::string &flag, llvm::StringRef text) {
  llvm::StringRef number = text.take_while([](char c) { return llvm::isDigit(c) || c == '.'; });
  std::string unit = text.drop_front(number.size()).upper();
  double value = 0;
  static constexpr const char *prefixes = "KMGT";
  double factor = 1;
  if (!unit.empty() && unit != "B") {
    const char *found = std::strchr(prefixes, unit[0]);
    std::string rest = unit.substr(1);
    if (!found || (!rest.empty() && rest != "B" && rest != "IB"))
      throw Error(flag + " wants a size such as 512M or 24GiB, not '" + text.str() + "'");
    factor = std::pow(rest == "B" ? 1000.0 : 1024.0, double(found - prefixes + 1)); // GB; G and GiB
  }
  if (number.empty() || number.getAsDouble(value)) throw Error(flag + " wants a size such as 512M or 24GiB, not '" + text.str() + "'");
  if (value * factor >= 0x1p63) throw Error(flag + " wants a size below 8 EiB, not '" + text.str() + "'");
  return uint64_t(value * factor);
}

} // namespace zero
