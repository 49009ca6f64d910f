#include "runtime/train/interrupt.h"
#include <cerrno>
#include <csignal>
#include <cstring>
#include <initializer_list>
#include <unistd.h>

namespace zero::runtime {
namespace {

volatile std::sig_atomic_t arrived = 0;
bool speaksHere = false;

// Only what a signal handler may call.
void say(const char *text) {
  int kept = errno;
  [[maybe_unused]] ssize_t ignored = ::write(STDERR_FILENO, text, std::strlen(text));
  errno = kept;
}

void note(int signal) {
  if (!arrived && speaksHere) say("zerorun: stopping after this step; the same signal again ends the run at once\n");
  arrived = signal;
}

// Data and weights are mapped: a file that shrinks while it is read, or a disk that fails, shows as this signal.
void mappedFileFailed(int) {
  say("zerorun: a file that is being read (data, or the model's weights) was cut short, or its disk failed\n");
  ::_exit(1);
}

} // namespace

void catchInterrupts(bool speaks) {
  speaksHere = speaks;
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) {
    struct sigaction before {};
    sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr); // nohup, or a shell's background job
  }
  action.sa_handler = mappedFileFailed;
  sigaction(SIGBUS, &action, nullptr);
  action.sa_handler = SIG_IGN; // a limit on the size of files is said as the write's error
  sigaction(SIGXFSZ, &action, nullptr);
}

int interruption() { return arrived; }

} // namespace zero::runtime
