#include "runtime/comm/tcp/secret.h"
#include "runtime/base/error.h"
#include "runtime/files/descriptor.h"
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

namespace zero::runtime {
namespace {

constexpr size_t kLeast = 16, kMost = 4096;
constexpr const char *kAdvice = "`openssl rand -hex 32` makes one";

std::string readFile(const char *path) {
  Descriptor file(::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)); // a pipe without a writer must not hold the run up
  if (!file) throw Error(fmt::format("cannot open ZERORUN_SECRET_FILE '{}': {}", path, std::strerror(errno)));
  struct stat info {};
  std::string text(kMost + 1, 0), problem;
  if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode))
    problem = "is not a regular file";
  else if (info.st_mode & S_IROTH)
    problem = fmt::format("can be read by everybody on this machine; chmod 600 '{}'", path);
  ssize_t got = problem.empty() ? ::read(file.get(), text.data(), text.size()) : 0;
  if (got < 0) problem = fmt::format("cannot be read: {}", std::strerror(errno));
  if (got > static_cast<ssize_t>(kMost)) problem = fmt::format("is longer than {} bytes", kMost);
  if (!problem.empty()) throw Error(fmt::format("ZERORUN_SECRET_FILE '{}' {}", path, problem));
  text.resize(static_cast<size_t>(got));
  return text;
}

std::string trimmed(const std::string &text) {
  constexpr const char *space = " \t\r\n";
  size_t begin = text.find_first_not_of(space);
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(space) - begin + 1);
}

} // namespace

std::string secretFromEnvironment() {
  const char *value = std::getenv("ZERORUN_SECRET"), *file = std::getenv("ZERORUN_SECRET_FILE");
  if (value && !*value) value = nullptr;
  if (file && !*file) file = nullptr;
  if (value && file) throw Error("both ZERORUN_SECRET and ZERORUN_SECRET_FILE are set in the environment; set one of them");
  if (!value && !file) return "";
  std::string secret = trimmed(value ? value : readFile(file));
  if (secret.size() < kLeast)
    throw Error(fmt::format("the secret of {} has {} letters, which could be guessed; it needs {} or more: {}",
                            value ? "ZERORUN_SECRET" : "ZERORUN_SECRET_FILE", secret.size(), kLeast, kAdvice));
  if (secret.size() > kMost) throw Error(fmt::format("the secret of ZERORUN_SECRET has {} letters; {} are the most", secret.size(), kMost));
  return secret;
}

} // namespace zero::runtime
