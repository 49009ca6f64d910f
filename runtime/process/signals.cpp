#include "runtime/process/signals.h"
#include "runtime/files/lock_file.h"
#include "runtime/process/start_thread.h"
#include "runtime/process/streams.h"
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <map>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

namespace zero::runtime {
namespace {

constexpr std::array kStops{SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
constexpr std::array kErrors{SIGPIPE, SIGXFSZ}; // said as the error of a write

std::atomic<int> arrived = 0;
std::atomic<bool> caught = false, speaksHere = false;

// As this process has found them, for its children.
sigset_t blockedBefore;
std::array<struct sigaction, kErrors.size()> actionsBefore;

// As if the signal had never been caught, so that a shell sees what ended the process.
[[noreturn]] void endBy(int signal) {
  removeLockFiles();
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(signal, &action, nullptr);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  ::raise(signal);
  pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  ::_exit(128 + signal); // not reached
}

// A pipe that nobody empties would hold up the waiting thread, and with it the second signal.
bool takesALine() {
  pollfd entry{STDERR_FILENO, POLLOUT, 0};
  return ::poll(&entry, 1, 0) == 1 && (entry.revents & POLLOUT);
}

// Who signals a process and then its group (timeout, some launchers) does so twice within microseconds, and means it once.
constexpr auto kOnce = std::chrono::milliseconds(200);

void wait(sigset_t signals) {
  using Clock = std::chrono::steady_clock;
  for (std::map<int, Clock::time_point> seen;;) {
    int signal = 0;
    if (sigwait(&signals, &signal) != 0) continue;
    auto [first, fresh] = seen.try_emplace(signal, Clock::now());
    if (!caught || (!fresh && Clock::now() - first->second > kOnce)) endBy(signal);
    if (arrived.exchange(signal) == 0 && speaksHere && takesALine())
      complain("zerorun: stopping after this step; the same signal again ends the run at once");
  }
}

// Only what a handler may call. The process ends here, so it is no matter what the frame has overwritten.
void mappedFileFailed(int) {
  static constexpr char text[] = "zerorun: a file that is being read (data, or the model's weights) was cut short, or its disk failed\n";
  [[maybe_unused]] ssize_t ignored = ::write(STDERR_FILENO, text, sizeof text - 1);
  ::_exit(1);
}

void restoreInChild() {
  for (size_t i = 0; i < kErrors.size(); ++i) sigaction(kErrors[i], &actionsBefore[i], nullptr);
  pthread_sigmask(SIG_SETMASK, &blockedBefore, nullptr);
}

} // namespace

void ownSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (int signal : kStops) {
    struct sigaction before {};
    sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaddset(&signals, signal);
  }
  pthread_sigmask(SIG_BLOCK, &signals, &blockedBefore);
  struct sigaction action {};
  action.sa_handler = SIG_IGN;
  for (size_t i = 0; i < kErrors.size(); ++i) sigaction(kErrors[i], &action, &actionsBefore[i]);
  action.sa_handler = mappedFileFailed;
  sigaction(SIGBUS, &action, nullptr);
  pthread_atfork(nullptr, nullptr, restoreInChild);
  startThread("the thread that waits for signals", [signals] { wait(signals); }).detach(); // it ends with the process
}

void catchInterrupts(bool speaks) {
  speaksHere = speaks;
  caught = true;
}

int interruption() { return arrived; }

} // namespace zero::runtime
