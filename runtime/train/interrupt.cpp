#include "runtime/train/interrupt.h"
#include <csignal>

namespace zero::runtime {
namespace {
volatile std::sig_atomic_t arrived = 0;
void note(int signal) { arrived = signal; }
} // namespace

void catchInterrupts() {
  struct sigaction action = {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

int interruption() { return arrived; }

} // namespace zero::runtime
