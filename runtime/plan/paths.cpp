#include "runtime/plan/paths.h"
#include "runtime/base/error.h"
#include "runtime/files/file.h"
#include <filesystem>
#include <functional>

namespace fs = std::filesystem;

namespace zero::plan {
namespace {

void forEachName(Plan &plan, const std::function<std::string(const std::string &)> &change) {
  auto apply = [&](Source *source) {
    if (!source->file().empty()) source->set_file(change(source->file()));
  };
  if (!plan.model().empty()) plan.set_model(change(plan.model()));
  for (ModelFile &file : *plan.mutable_files()) file.set_file(change(file.file()));
  for (Parameter &parameter : *plan.mutable_parameters()) {
    if (parameter.has_source()) apply(parameter.mutable_source());
    for (Alias &alias : *parameter.mutable_aliases())
      if (alias.has_source()) apply(alias.mutable_source());
  }
}

// The folder is resolved and the last part kept: a link to a model stays the name it was given. Empty if there is no such folder.
fs::path resolved(const fs::path &path) {
  std::error_code failed;
  fs::path folder = fs::canonical(path.has_parent_path() ? path.parent_path() : fs::path("."), failed);
  return failed ? fs::path() : folder / path.filename();
}

// Text of a message must be UTF-8, or nothing can read the message again; a path can be any bytes.
bool isUtf8(const std::string &text) {
  for (size_t i = 0; i < text.size();) {
    auto byte = [&](size_t at) { return at < text.size() ? static_cast<unsigned char>(text[at]) : 0u; };
    unsigned lead = byte(i);
    size_t more = lead < 0x80 ? 0 : lead >= 0xC2 && lead < 0xE0 ? 1 : lead >= 0xE0 && lead < 0xF0 ? 2 : lead >= 0xF0 && lead < 0xF5 ? 3 : 4;
    if (more == 4) return false;
    for (size_t k = 1; k <= more; ++k)
      if ((byte(i + k) & 0xC0) != 0x80) return false;
    unsigned second = byte(i + 1); // overlong forms, surrogates and what lies beyond the last code point
    if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) || (lead == 0xF0 && second < 0x90) ||
        (lead == 0xF4 && second > 0x8F))
      return false;
    i += more + 1;
  }
  return true;
}

// The name a link stands for, which need not be there.
fs::path behindLinks(fs::path path) {
  std::error_code failed;
  while (fs::is_symlink(path, failed)) {
    fs::path target = fs::read_symlink(path, failed);
    if (failed) break;
    path = path.parent_path() / target; // a relative one begins in the link's folder
  }
  return path;
}

} // namespace

void storeNames(Plan &plan, const std::string &path) {
  fs::path folder = resolved(behindLinks(path)).parent_path();
  forEachName(plan, [&](const std::string &name) {
    fs::path full = resolved(name);
    if (full.empty() || folder.empty()) return name;
    fs::path inside = full.lexically_relative(folder);
    std::string stored = (inside.empty() || *inside.begin() == ".." ? full : inside).string();
    if (!isUtf8(stored))
      throw Error("cannot write " + path + ": the path '" + stored +
                  "' is no UTF-8 text, which a plan cannot hold; rename it, or put the plan into the model's folder");
    return stored;
  });
}

void restoreNames(Plan &plan, const std::string &path) {
  // A link to a plan may lie among links to its model, or alone.
  fs::path beside = fs::path(path).parent_path(), behind = behindLinks(path).parent_path();
  forEachName(plan, [&](const std::string &name) {
    std::error_code failed;
    fs::path there = beside / name; // an absolute name stays what it is
    return (behind != beside && !fs::exists(there, failed) ? behind / name : there).string();
  });
}

std::string replaceable(const std::string &path) {
  fs::file_type kind = runtime::kindOf(path);
  if (kind != fs::file_type::not_found && kind != fs::file_type::regular)
    throw Error("'" + path + "' is not a regular file, and cannot be replaced by one");
  return behindLinks(path).string(); // links in a circle are none of both
}

} // namespace zero::plan
