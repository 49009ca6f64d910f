#include "runtime/process/streams.h"
#include "runtime/base/control_characters.h"
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

namespace zero::runtime {

void openStandardStreams() {
  std::signal(SIGXFSZ, SIG_IGN); // a file beyond the limit of its size is an error of who writes it, and no end without a word
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    if (::open("/dev/null", O_RDWR) != fd) std::_Exit(1); // the lowest number that is free; there is nowhere to say why not
  }
}

std::string printable(std::string_view text) {
  static constexpr const char *digits = "0123456789abcdef";
  std::string safe;
  for (size_t i = 0, control = 0; i < text.size(); ++i) {
    if (!control) control = controlBytes(text, i);
    if (!control) {
      safe += text[i];
      continue;
    }
    auto byte = static_cast<unsigned char>(text[i]);
    safe += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    --control;
  }
  return safe;
}

void complain(const std::string &line) {
  std::string text = printable(line) + "\n";
  for (size_t at = 0; at < text.size();) {
    ssize_t done = ::write(STDERR_FILENO, text.data() + at, text.size() - at);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return;
    at += static_cast<size_t>(done);
  }
}

} // namespace zero::runtime
