//===- patterns.cpp - searching, and what was probably meant ----------------------------------------===//
#include "compiler/onnx/patterns.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace zero::onnx {

LogicalResult Patterns::compile(ArrayRef<std::string> texts, Location loc) {
  for (const std::string &t : texts) {
    try {
      list.push_back({t, std::regex(t, std::regex::ECMAScript | std::regex::optimize)});
    } catch (const std::regex_error &e) {
      return emitError(loc) << flag << " '" << t << "' is no regular expression: " << e.what();
    }
  }
  return success();
}

bool Patterns::match(ArrayRef<std::string> names) {
  if (list.empty()) return false;
  bool any = false;
  for (Pattern &p : list)
    if (llvm::any_of(names, [&](const std::string &name) { return std::regex_search(name, p.regex); })) any = p.found = true;
  for (const std::string &name : names)
    if (!name.empty()) seen.push_back(name);
  return any;
}

/// Letters to add, drop or change to make `text` a part of `name`.
static size_t distanceWithin(StringRef text, StringRef name) {
  std::vector<size_t> row(name.size() + 1, 0); // a part may begin anywhere
  for (size_t i = 1; i <= text.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= name.size(); ++j) {
      size_t changed = diagonal + (llvm::toLower(text[i - 1]) != llvm::toLower(name[j - 1]));
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, changed}));
    }
  }
  return *llvm::min_element(row);
}

LogicalResult Patterns::allFound(StringRef what, Location loc) const {
  constexpr size_t kShown = 3, kLongest = 200;
  for (const Pattern &p : list) {
    if (p.found) continue;
    std::string plain; // without what only a regular expression has
    for (char c : StringRef(p.text).take_front(kLongest))
      if (!StringRef("\\^$()[]{}|?*+").contains(c)) plain += c;
    std::vector<std::pair<size_t, StringRef>> near;
    for (const std::string &name : seen) near.push_back({distanceWithin(plain, StringRef(name).take_front(kLongest)), name});
    llvm::stable_sort(near, llvm::less_first());
    auto diagnostic = emitError(loc);
    diagnostic << flag << " '" << p.text << "' is found in the name of no " << what;
    llvm::SmallVector<StringRef> shown;
    for (auto &[distance, name] : near)
      if (shown.size() < kShown && !llvm::is_contained(shown, name)) shown.push_back(name);
    for (auto [i, name] : llvm::enumerate(shown)) diagnostic << (i ? ", '" : "; nearest are '") << name << "'";
    return failure();
  }
  return success();
}

} // namespace zero::onnx
