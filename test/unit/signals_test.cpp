// Signals as a process and its children have them. What a run does about them is in zerorun_ends_test.
#include "runtime/process/signals.h"
#include "runtime/process/streams.h"
#include <csignal>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace zero::runtime;

// What `body` returns in a process of its own: as its exit status, or 128 + the signal that ended it. A shell that puts the tests into the
// background has them ignore SIGINT, which a run respects.
template <class Body> int inAProcess(Body body) {
  pid_t child = fork();
  if (child == 0) {
    signal(SIGINT, SIG_DFL);
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool blocked(int signal) {
  sigset_t now;
  pthread_sigmask(SIG_SETMASK, nullptr, &now);
  return sigismember(&now, signal) == 1;
}

static bool ignored(int signal) {
  struct sigaction now {};
  sigaction(signal, nullptr, &now);
  return now.sa_handler == SIG_IGN;
}

static int arrivedSoon() {
  for (int i = 0; i < 500 && !interruption(); ++i) usleep(10000);
  return interruption();
}

TEST(Signals, ThreadsMadeLaterHaveThemBlockedAndChildrenHaveNot) {
  EXPECT_EQ(inAProcess([] {
              ownSignals();
              bool inThread = false;
              std::thread([&] {
                inThread = blocked(SIGINT) && blocked(SIGTERM) && blocked(SIGHUP) && blocked(SIGUSR1) && blocked(SIGUSR2);
              }).join();
              if (!inThread || !ignored(SIGPIPE) || !ignored(SIGXFSZ)) return 1;
              return inAProcess([] { return blocked(SIGTERM) || blocked(SIGINT) || ignored(SIGPIPE) || ignored(SIGXFSZ) ? 2 : 0; });
            }),
            0);
}

TEST(Signals, EndTheProcessUntilTheyAreCaught) {
  EXPECT_EQ(inAProcess([] {
              ownSignals();
              kill(getpid(), SIGTERM);
              sleep(10);
              return 0;
            }),
            128 + SIGTERM);
  EXPECT_EQ(inAProcess([] {
              ownSignals();
              catchInterrupts(false);
              kill(getpid(), SIGUSR1);
              return arrivedSoon();
            }),
            SIGUSR1);
  EXPECT_EQ(inAProcess([] {
              ownSignals();
              catchInterrupts(false);
              kill(getpid(), SIGUSR1);
              arrivedSoon();
              usleep(300000);
              kill(getpid(), SIGUSR1);
              sleep(10);
              return 0;
            }),
            128 + SIGUSR1);
}

TEST(Signals, TwiceAtATimeAreOnce) { // as timeout sends them
  EXPECT_EQ(inAProcess([] {
              ownSignals();
              catchInterrupts(false);
              kill(getpid(), SIGTERM);
              int arrived = arrivedSoon();
              kill(getpid(), SIGTERM);
              usleep(100000);
              return arrived;
            }),
            SIGTERM);
}

TEST(Signals, IgnoredOnesStayIgnored) {
  EXPECT_EQ(inAProcess([] {
              signal(SIGHUP, SIG_IGN);
              ownSignals();
              kill(getpid(), SIGHUP);
              usleep(100000);
              return blocked(SIGHUP) || !ignored(SIGHUP) || interruption() ? 1 : 0;
            }),
            0);
}

TEST(Streams, WhatIsClosedIsNoFile) {
  EXPECT_EQ(inAProcess([] {
              close(0), close(2);
              openStandardStreams();
              struct stat null = {}, in = {}, error = {};
              stat("/dev/null", &null), fstat(0, &in), fstat(2, &error);
              complain("to nobody");
              return in.st_rdev == null.st_rdev && error.st_rdev == null.st_rdev && open("/dev/null", O_RDONLY) > 2 ? 0 : 1;
            }),
            0);
}
