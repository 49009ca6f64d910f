// What a rank says and does while another one does not answer; the other one is a child process, and time is given.
#include "runtime/base/error.h"
#include "runtime/comm/patience.h"
#include "test/unit/run_fixtures.h"
#include <cstring>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace zero;
using namespace zero::runtime;
using std::chrono::seconds;

namespace {

class PatienceTest : public testing::Test {
protected:
  void SetUp() override {
    child = fork();
    if (child == 0)
      for (;;) pause();
    Peer other = Peers::self();
    other.process = child;
    peers = std::make_unique<Peers>(std::vector<Peer>{Peers::self(), other, other, far()}, 0);
  }
  void TearDown() override {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }

  static Peer far() {
    Peer peer = Peers::self();
    peer.machine[0] = 'x';
    return peer;
  }
  // Signals reach the child a little later.
  void expectState(PeerState state) {
    for (int i = 0; i < 200 && peers->state(1) != state; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_EQ(peers->state(1), state);
  }
  // What is said in `count` looks of a wait, one per second.
  std::string saidBy(Patience &patience, int count, std::set<int> missing) {
    testing::internal::CaptureStderr();
    for (int i = 1; i <= count; ++i) patience.wait(begin, begin + seconds(i), "a test", [&] { return Awaited{missing, 1}; });
    return testing::internal::GetCapturedStderr();
  }
  static int linesOf(const std::string &text) { return static_cast<int>(std::count(text.begin(), text.end(), '\n')); }

  pid_t child = 0;
  std::unique_ptr<Peers> peers;
  Patience::Clock::time_point begin = Patience::Clock::now();
  PatienceLimits limits{seconds(1), seconds(30)};
};

TEST_F(PatienceTest, SaysForWhomItWaits) {
  Patience patience(*peers, 0, limits);
  EXPECT_EQ(saidBy(patience, 29, {1}), "");
  std::string said = saidBy(patience, 130, {1});
  EXPECT_EQ(linesOf(said), 3) << said; // after 30, 60 and 120 s
  EXPECT_NE(said.find("rank 0 has waited 30 s in a test for rank 1 (process " + std::to_string(child) + " on "), std::string::npos) << said;
}

TEST_F(PatienceTest, OneRankSpeaksForAll) {
  Patience silent(*peers, 2, limits), speaking(*peers, 2, limits);
  EXPECT_EQ(saidBy(silent, 40, {1}), ""); // rank 0 waits for it too
  EXPECT_NE(saidBy(speaking, 40, {0, 1}), "");
}

TEST_F(PatienceTest, KnowsAStoppedProcess) {
  Patience patience(*peers, 0, limits);
  expectState(PeerState::Runs);
  kill(child, SIGSTOP);
  expectState(PeerState::Stopped);
  EXPECT_NE(saidBy(patience, 30, {1}).find("which is stopped"), std::string::npos);
}

// Where the limits say so, which they may do while communicators are there.
TEST_F(PatienceTest, GivesUpOnAStoppedProcess) {
  Patience patience(*peers, 0, limits);
  kill(child, SIGSTOP);
  expectState(PeerState::Stopped);
  saidBy(patience, 100, {1, 3});
  limits.stopped = 5;
  auto saidLooking = [&](int from, int to) {
    return test::refusalOf([&] {
      for (int i = from; i <= to; ++i) patience.wait(begin, begin + seconds(i), "a test", [] { return Awaited{{1, 3}, 1}; });
    });
  };
  EXPECT_EQ(saidLooking(101, 104), "");
  kill(child, SIGCONT);
  expectState(PeerState::Runs);
  EXPECT_EQ(saidLooking(105, 130), "");
  kill(child, SIGSTOP);
  expectState(PeerState::Stopped);
  EXPECT_EQ(saidLooking(131, 134), ""); // looks in a row count
  std::string said = saidLooking(135, 135);
  EXPECT_EQ(said.find("rank 1 (process " + std::to_string(child) + " on "), 0u) << said;
  EXPECT_NE(said.find("is stopped, and rank 0 has waited 5 s for it in a test"), std::string::npos) << said;
}

TEST_F(PatienceTest, GivesUpOnAnEndedProcess) {
  Patience patience(*peers, 0, limits);
  EXPECT_EQ(saidBy(patience, 20, {1}), "");
  kill(child, SIGKILL);
  expectState(PeerState::Ended);
  try {
    for (int i = 21; i < 25; ++i) patience.wait(begin, begin + seconds(i), "a test", [] { return Awaited{{1}, 1}; });
    ADD_FAILURE() << "it still waits";
  } catch (const Error &error) {
    EXPECT_NE(std::string(error.what()).find("has ended while rank 0 waited for it in a test"), std::string::npos) << error.what();
  }
}

TEST_F(PatienceTest, JudgesNoProcessOfAnotherMachine) { EXPECT_EQ(peers->state(3), PeerState::Unknown); }

// Two containers of one machine have names of their own; two machines may both be called localhost.
TEST(PeersTest, MachinesAreToldByTheirStart) {
  Peer me = Peers::self(), container = me, otherMachine = me, silent = me;
  EXPECT_EQ(std::strlen(me.machine), 36u);
  std::strcpy(container.host, "container");
  std::strcpy(otherMachine.machine, "0b9af2d5-8ad3-4d4c-a8a0-3ff3ad0b0b42");
  EXPECT_EQ(Peers({me, container, otherMachine}, 0).neighbours().all, 2);
  EXPECT_EQ(Peers({me, otherMachine}, 0).state(1), PeerState::Unknown);
  silent.machine[0] = 0; // then the name is all there is
  EXPECT_EQ(Peers({me, silent}, 0).neighbours().all, 2);
  std::strcpy(silent.host, "another-machine");
  EXPECT_EQ(Peers({me, silent}, 0).neighbours().all, 1);
}

// mpirun binds ranks to cores, or several of them to one socket; of two pods each has limits of its own.
TEST(PeersTest, ProcessorsAreDividedAmongThoseWhoMayRunThere) {
  Peer first = Peers::self(), second = first, pod = first;
  first.processors = 0b1111, second.processors = 0b1111, pod.processors = 0b110000;
  ++pod.processSpace;
  Neighbours socket = Peers({first, second, pod}, 1).neighbours(), other = Peers({first, second, pod}, 2).neighbours();
  EXPECT_EQ(socket.processors, 2);
  EXPECT_EQ(socket.container, 2);
  EXPECT_EQ(socket.before, 1);
  EXPECT_EQ(other.processors, 2);
  EXPECT_EQ(other.container, 1);
  EXPECT_EQ(other.all, 3);
  pod.processors = 0b111111;
  EXPECT_DOUBLE_EQ(Peers({first, second, pod}, 0).neighbours().processors, 4 / 3.0);
}

TEST_F(PatienceTest, GivesUpWhereNothingMoves) {
  limits.giveUp = seconds(60);
  Patience patience(*peers, 1, limits);
  auto wait = [&](int from, int to, uint64_t left) {
    for (int i = from; i <= to; ++i) patience.wait(begin, begin + seconds(i), "a test", [&] { return Awaited{{2, 3}, left}; });
  };
  wait(1, 50, 9);
  wait(51, 110, 8); // bytes have come after 51 s
  try {
    wait(111, 111, 8);
    ADD_FAILURE() << "it still waits";
  } catch (const TimedOut &error) {
    std::string said = error.what();
    EXPECT_NE(said.find("rank 1 has waited 60 s in a test for rank 2 (process "), std::string::npos) << said;
    EXPECT_NE(said.find(", rank 3 ("), std::string::npos) << said;
    EXPECT_NE(said.find("--timeout"), std::string::npos) << said;
  }
  limits.giveUp = seconds(0);
  Patience patient(*peers, 0, limits);
  EXPECT_NE(saidBy(patient, 200, {1}), ""); // and does not end
}

TEST_F(PatienceTest, AskedRarely) {
  Patience patience(*peers, 0, limits);
  int asked = 0;
  for (int i = 0; i < 5000; ++i) // five seconds
    patience.wait(begin, begin + std::chrono::milliseconds(i), "a test", [&] { return ++asked, Awaited{{1}, 1}; });
  EXPECT_EQ(asked, 4);
}

} // namespace
