#include "runtime/plan/paths.h"
#include "runtime/plan/error.h"
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
fs::path absolute(const fs::path &path) {
  std::error_code failed;
  fs::path folder = fs::canonical(path.has_parent_path() ? path.parent_path() : fs::path("."), failed);
  return failed ? fs::path() : folder / path.filename();
}

} // namespace

void storeNames(Plan &plan, const std::string &path) {
  fs::path folder = absolute(path).parent_path();
  forEachName(plan, [&](const std::string &name) {
    fs::path full = absolute(name);
    if (full.empty() || folder.empty()) return name;
    fs::path inside = full.lexically_relative(folder);
    return (inside.empty() || *inside.begin() == ".." ? full : inside).string();
  });
}

void restoreNames(Plan &plan, const std::string &path) {
  fs::path folder = fs::path(path).parent_path();
  forEachName(plan, [&](const std::string &name) { return (folder / name).string(); }); // an absolute name stays what it is
}

std::string replaceable(const std::string &path) {
  std::error_code failed;
  if (!fs::exists(path, failed)) return path;
  if (!fs::is_regular_file(path, failed)) throw Error("'" + path + "' is not a regular file, and cannot be replaced by one");
  return fs::is_symlink(path, failed) ? fs::canonical(path).string() : path;
}

} // namespace zero::plan
