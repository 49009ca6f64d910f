#include "runtime/process/streams.h"
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
  auto escape = [&](unsigned char byte) { safe += {'\\', 'x', digits[byte >> 4], digits[byte & 15]}; };
  for (size_t i = 0; i < text.size(); ++i) {
    auto byte = static_cast<unsigned char>(text[i]), next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    if (byte == 0xc2 && next >= 0x80 && next < 0xa0) // control characters of two bytes, U+0080 to U+009F
      escape(byte), escape(next), ++i;
    else if (byte >= ' ' && byte != 127)
      safe += text[i];
    else
      escape(byte);
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
