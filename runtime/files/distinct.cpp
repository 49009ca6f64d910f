#include "runtime/files/distinct.h"
#include "runtime/base/error.h"
#include <filesystem>
#include <fmt/format.h>
#include <map>

namespace fs = std::filesystem;

namespace zero::runtime {

void requireDistinct(const std::vector<NamedFile> &files) {
  std::map<fs::path, std::string> seen;
  for (const NamedFile &file : files) {
    std::error_code failed;
    fs::path place = fs::weakly_canonical(fs::absolute(file.path), failed);
    auto [other, fresh] = seen.emplace(failed ? fs::path(file.path) : place, file.what);
    if (!fresh && file.written && !fs::is_character_file(place, failed))
      throw Error(fmt::format("{} and {} are the same file '{}'", other->second, file.what, file.path));
  }
}

} // namespace zero::runtime
