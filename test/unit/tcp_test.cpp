// How ranks find each other over TCP: what they are told in the environment, who does not come, and who comes but should not.
#include "runtime/base/error.h"
#include "runtime/comm/tcp/caller.h"
#include "runtime/comm/tcp/environment.h"
#include "runtime/comm/tcp/tcp.h"
#include "test/unit/tcp_launch.h"
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <future>
#include <gtest/gtest.h>
#include <map>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace zero;
using namespace zero::runtime;
using std::chrono::milliseconds;

namespace {

constexpr const char *kSecret = "0123456789abcdef0123456789abcdef";

Deadline soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(5); }

std::string sentenceOf(const std::function<void()> &body) {
  try {
    body();
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

#define EXPECT_SAYS(sentence, words) EXPECT_NE((sentence).find(words), std::string::npos) << (sentence)

// ---------------------------------------------------------------------------------------------- environment

class Environment : public testing::Test {
protected:
  const std::vector<std::string> names{"RANK",
                                       "WORLD_SIZE",
                                       "MASTER_ADDR",
                                       "MASTER_PORT",
                                       "TORCHELASTIC_USE_AGENT_STORE",
                                       "ZERORUN_START_TIMEOUT",
                                       "ZERORUN_SECRET",
                                       "ZERORUN_SECRET_FILE",
                                       "LOCAL_WORLD_SIZE",
                                       "TORCHELASTIC_RUN_ID"};
  void TearDown() override { set({}); }
  void set(const std::map<std::string, std::string> &values) {
    for (const std::string &name : names) unsetenv(name.c_str());
    for (const auto &[name, value] : values) setenv(name.c_str(), value.c_str(), 1);
  }
  std::string refused(const std::map<std::string, std::string> &values) {
    set(values);
    return sentenceOf([] { membershipFromEnvironment(); });
  }
};

TEST_F(Environment, IsRead) {
  set({});
  EXPECT_FALSE(membershipFromEnvironment());
  set({{"WORLD_SIZE", "1"}});
  EXPECT_EQ(membershipFromEnvironment()->world, 1);
  set({{"WORLD_SIZE", "4"}, {"RANK", "3"}, {"MASTER_ADDR", "::1"}});
  auto membership = membershipFromEnvironment();
  EXPECT_EQ(membership->rank, 3);
  EXPECT_EQ(membership->world, 4);
  EXPECT_EQ(membership->place(), "[::1]:29500");
  set({{"WORLD_SIZE", "2"},
       {"RANK", "0"},
       {"MASTER_ADDR", "a"},
       {"MASTER_PORT", "7"},
       {"ZERORUN_START_TIMEOUT", "9"},
       {"ZERORUN_SECRET", kSecret}});
  EXPECT_EQ(membershipFromEnvironment()->place(), "a:7");
  EXPECT_EQ(membershipFromEnvironment()->limits.giveUp, std::chrono::seconds(9));
  setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);
  EXPECT_EQ(membershipFromEnvironment()->port, 8);
}

TEST_F(Environment, IsRefusedInASentence) {
  EXPECT_SAYS(refused({{"WORLD_SIZE", "many"}}), "WORLD_SIZE='many' in the environment is no number of ranks");
  EXPECT_SAYS(refused({{"WORLD_SIZE", "0"}}), "WORLD_SIZE='0'");
  EXPECT_SAYS(refused({{"WORLD_SIZE", "99999999999999999999"}}), "WORLD_SIZE=");
  EXPECT_SAYS(refused({{"WORLD_SIZE", "4"}}), "RANK, the number of this rank, is not set");
  EXPECT_SAYS(refused({{"WORLD_SIZE", "4"}, {"RANK", "1"}}), "MASTER_ADDR, the machine of rank 0, is not set");
  EXPECT_SAYS(refused({{"RANK", "1"}, {"MASTER_ADDR", "a"}}), "WORLD_SIZE, their number, is not set");
  std::map<std::string, std::string> good{{"WORLD_SIZE", "4"}, {"RANK", "1"}, {"MASTER_ADDR", "127.0.0.1"}};
  auto with = [&](const char *name, const char *value) {
    auto changed = good;
    changed[name] = value;
    return refused(changed);
  };
  EXPECT_EQ(with("RANK", "3"), "");
  EXPECT_SAYS(with("RANK", "4"), "RANK='4' in the environment is no rank from 0 to 3");
  EXPECT_SAYS(with("RANK", "-1"), "RANK='-1'");
  EXPECT_SAYS(with("RANK", "1x"), "RANK='1x'");
  EXPECT_SAYS(with("MASTER_PORT", "65536"), "MASTER_PORT='65536' in the environment is no port from 1 to 65535");
  EXPECT_SAYS(with("ZERORUN_START_TIMEOUT", "soon"), "ZERORUN_START_TIMEOUT='soon'");
}

TEST_F(Environment, OtherMachinesNeedASecret) {
  std::map<std::string, std::string> two{{"WORLD_SIZE", "2"}, {"RANK", "1"}, {"MASTER_ADDR", "node7"}};
  EXPECT_SAYS(refused(two), "MASTER_ADDR='node7' can be reached from other machines, so the ranks need a secret");
  two["ZERORUN_SECRET"] = "tooshort";
  EXPECT_SAYS(refused(two), "the secret of ZERORUN_SECRET has 8 letters");
  two["ZERORUN_SECRET"] = kSecret + std::string("\n");
  EXPECT_EQ(refused(two), "");
  EXPECT_EQ(membershipFromEnvironment()->secret, kSecret);
  two["ZERORUN_SECRET_FILE"] = testing::TempDir() + "secret-" + std::to_string(getpid());
  EXPECT_SAYS(refused(two), "both ZERORUN_SECRET and ZERORUN_SECRET_FILE");
  two.erase("ZERORUN_SECRET");
  EXPECT_SAYS(refused(two), "cannot open ZERORUN_SECRET_FILE");
  std::ofstream(two["ZERORUN_SECRET_FILE"]) << kSecret << "\n";
  chmod(two["ZERORUN_SECRET_FILE"].c_str(), 0644);
  EXPECT_SAYS(refused(two), "can be read by everybody on this machine; chmod 600");
  chmod(two["ZERORUN_SECRET_FILE"].c_str(), 0600);
  EXPECT_EQ(refused(two), "");
  EXPECT_EQ(membershipFromEnvironment()->secret, kSecret);
  unlink(two["ZERORUN_SECRET_FILE"].c_str());
  two["ZERORUN_SECRET_FILE"] = "/dev/zero";
  EXPECT_SAYS(refused(two), "is not a regular file");
}

// Some of its versions name the machine where all ranks are by a name that others know, too.
TEST_F(Environment, TorchrunsRanksOfOneMachineStayOnIt) {
  std::map<std::string, std::string> two{{"WORLD_SIZE", "2"}, {"RANK", "1"}, {"MASTER_ADDR", "node7"}, {"LOCAL_WORLD_SIZE", "2"}};
  EXPECT_SAYS(refused(two), "ZERORUN_SECRET");
  two["TORCHELASTIC_RUN_ID"] = "none";
  EXPECT_EQ(refused(two), "");
  EXPECT_EQ(membershipFromEnvironment()->host, "127.0.0.1");
  two["LOCAL_WORLD_SIZE"] = "1";
  EXPECT_SAYS(refused(two), "ZERORUN_SECRET");
}

// ---------------------------------------------------------------------------------------------- rendezvous

int listeningPortsOfThisProcess() {
  int count = 0;
  for (const auto &entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    int listens = 0;
    socklen_t length = sizeof listens;
    if (::getsockopt(std::stoi(entry.path().filename().string()), SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) == 0) count += listens;
  }
  return count;
}

class Rendezvous : public testing::Test {
protected:
  Membership member(int rank, int world) {
    Membership result;
    result.rank = rank, result.world = world, result.host = "127.0.0.1", result.port = port, result.secret = secret;
    result.limits = {milliseconds(100), milliseconds(3000)};
    return result;
  }
  // What a rank says at its end, or nothing.
  std::future<std::string> start(const Membership &membership) {
    return std::async(std::launch::async, [=] { return sentenceOf([&] { connectTcp(membership)->finalize(); }); });
  }
  // What rank 1 of two says at its end that has been welcomed by what it takes for rank 0.
  template <typename Then> std::string welcomed(Then &&then) {
    std::string why;
    Socket listener = listenAt(resolve("127.0.0.1", port, why).at(0), why);
    auto rank = start(member(1, 2));
    Acceptor acceptor(listener, Kind::Join, 0, secret, sizeof(Join));
    std::optional<Arrival> arrival = acceptor.next(soon());
    EXPECT_TRUE(arrival && arrival->welcome());
    then(*arrival, rank);
    return rank.get();
  }
  Socket call() {
    std::string why;
    auto until = soon();
    for (;;) {
      Socket socket = connectTo(resolve("127.0.0.1", port, why).at(0), until, why);
      if (socket || std::chrono::steady_clock::now() > until) return socket;
      std::this_thread::sleep_for(milliseconds(10));
    }
  }
  static void say(const Socket &socket, const std::string &text) {
    EXPECT_EQ(sendAll(socket, text.data(), text.size(), soon()), Transfer::Done);
  }
  static Hello hello(uint32_t rank, uint32_t world) {
    Hello result;
    result.purpose = Kind::Join, result.rank = rank, result.world = world;
    return result;
  }
  static std::string joining(uint32_t listens = 1) {
    Join join;
    join.port = listens, join.peer = Peers::self();
    return {reinterpret_cast<const char *>(&join), sizeof join};
  }
  // What a rank says to rank 0 over a connection made by hand, and what it hears.
  Greeting greetedOn(const Socket &socket, const Hello &hello, const std::string &body = joining()) {
    return greet(socket, secret, hello, body, [&] { return awaitReadable(socket, soon()); });
  }
  // What rank 0 of 3, rank 1, which has joined before, and one that greets so say at the end.
  std::string answerTo(const Hello &hello) {
    auto first = start(member(0, 3));
    Socket second = call(), caller = call();
    Greeting welcome = greetedOn(second, this->hello(1, 3)), refused = greetedOn(caller, hello);
    EXPECT_EQ(welcome.outcome, Greeting::Outcome::Welcome);
    EXPECT_EQ(refused.outcome, Greeting::Outcome::Refused);
    FrameReader reader(kMaxSentence + Session::kTag);
    EXPECT_EQ(await(second, reader, soon()), FrameReader::State::Whole);
    EXPECT_EQ(reader.kind(), Kind::Refusal);
    std::string sentence = first.get();
    EXPECT_EQ(sentence, refused.words);
    EXPECT_EQ(sentence, welcome.session.open(Session::From::Callee, reader));
    return sentence;
  }

  uint16_t port = zero::test::freePort();
  std::string secret = kSecret;
};

TEST_F(Rendezvous, RanksMeetOverIpv6AndByName) {
  for (const char *host : {"127.0.0.1", "127.0.1.1", "localhost", "::1"}) {
    std::string why;
    if (auto addresses = resolve(host, 0, why); addresses.empty() || !listenAt(addresses[0], why)) continue; // no IPv6 here
    std::vector<std::future<std::string>> ranks;
    for (int rank = 0; rank < 3; ++rank) {
      Membership membership = member(rank, 3);
      membership.host = host;
      ranks.push_back(start(membership));
    }
    for (auto &rank : ranks) EXPECT_EQ(rank.get(), "") << host;
  }
}

TEST_F(Rendezvous, AMissingRankIsNamedAndAtLastGivenUp) {
  testing::internal::CaptureStderr();
  Membership alone = member(0, 4);
  alone.limits.giveUp = milliseconds(700);
  auto first = start(alone), third = start(member(2, 4));
  EXPECT_SAYS(first.get(), " for ranks 1, 3 of 4 ranks, and gives up");
  EXPECT_SAYS(third.get(), " for ranks 1, 3 of 4 ranks, and gives up");
  std::string said = testing::internal::GetCapturedStderr();
  std::string place = "127.0.0.1:" + std::to_string(port);
  EXPECT_SAYS(said, "zerorun: rank 0 has waited 0 s at " + place + " for ranks 1, 3 of 4 ranks\n");
  EXPECT_SAYS(said, "zerorun: rank 2 has waited 0 s for rank 0 at " + place + " to say where the other ranks are\n");
}

TEST_F(Rendezvous, ARankZeroThatSaysNothingIsNamed) {
  std::string why;
  Socket listener = listenAt(resolve("127.0.0.1", port, why).at(0), why); // takes nobody
  testing::internal::CaptureStderr();
  auto rank = start(member(1, 2));
  std::this_thread::sleep_for(milliseconds(500));
  listener = Socket(); // hangs up
  EXPECT_SAYS(rank.get(), "and gives up");
  EXPECT_SAYS(testing::internal::GetCapturedStderr(),
              "zerorun: rank 1 has waited 0 s for rank 0 at 127.0.0.1:" + std::to_string(port) + " to answer\n");
}

TEST_F(Rendezvous, WordsThatCannotBeWrittenEndNoStart) {
  int before = ::dup(STDERR_FILENO), full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(::dup2(full, STDERR_FILENO), 0);
  auto first = start(member(0, 2));
  std::this_thread::sleep_for(milliseconds(300)); // it speaks meanwhile
  auto second = start(member(1, 2));
  first.wait(), second.wait();
  ::dup2(before, STDERR_FILENO);
  ::close(before), ::close(full);
  EXPECT_EQ(first.get() + second.get(), "");
}

TEST_F(Rendezvous, WithoutRankZeroTheOthersGiveUp) {
  testing::internal::CaptureStderr();
  Membership alone = member(1, 2);
  alone.limits.giveUp = milliseconds(400);
  std::string end = start(alone).get();
  std::string words = "for rank 0 at 127.0.0.1:" + std::to_string(port) + ": Connection refused";
  EXPECT_SAYS(end, words + ", and gives up");
  EXPECT_SAYS(testing::internal::GetCapturedStderr(), words + "\n");
}

TEST_F(Rendezvous, ARankThatEndsBeforeAllHaveComeEndsTheStart) {
  auto first = start(member(0, 3));
  {
    Socket second = call();
    EXPECT_EQ(greetedOn(second, hello(1, 3)).outcome, Greeting::Outcome::Welcome);
  }
  EXPECT_SAYS(first.get(), "rank 1 (process ");
}

TEST_F(Rendezvous, APortInUseIsNamed) {
  std::string why;
  Socket other = listenAt(resolve("127.0.0.1", port, why).at(0), why);
  EXPECT_SAYS(start(member(0, 2)).get(), "is another run there? Choose another MASTER_PORT");
}

TEST_F(Rendezvous, StrangersAreSentOffAndTheRunStarts) {
  testing::internal::CaptureStderr();
  auto first = start(member(0, 2));
  FrameHeader header;
  auto bytes = [](const auto &value) { return std::string(reinterpret_cast<const char *>(&value), sizeof value); };
  std::vector<Socket> strangers;
  auto stranger = [&](const std::string &text) {
    strangers.push_back(call());
    say(strangers.back(), text);
  };
  stranger(""); // says nothing, and holds nobody up
  stranger(bytes(header).substr(0, 11));
  stranger("GET / HTTP/1.1\r\n\r\n");
  stranger("x");
  header.kind = static_cast<Kind>(77);
  stranger(bytes(header));
  header.kind = Kind::Hello, header.bytes = 4000000000u;
  stranger(bytes(header));
  header.version = 77, header.bytes = 0;
  stranger(bytes(header));
  stranger(frame(Kind::Hello, 5));
  stranger(frame(Kind::Hello, Hello()));
  // One that knows the secret, but makes no sense.
  Socket ninth = call(), farPort = call();
  EXPECT_EQ(greetedOn(ninth, hello(9, 2)).outcome, Greeting::Outcome::Closed);
  EXPECT_EQ(greetedOn(farPort, hello(1, 2), joining(70000)).outcome, Greeting::Outcome::Closed);
  EXPECT_EQ(start(member(1, 2)).get(), "");
  EXPECT_EQ(first.get(), "");
  std::string said = testing::internal::GetCapturedStderr();
  EXPECT_SAYS(said, "does not speak as zerorun does");
  EXPECT_SAYS(said, "sent a message of the unknown kind 77");
  EXPECT_SAYS(said, "announced a message of 4000000000 bytes, where at most 56 can be");
  EXPECT_SAYS(said, "speaks version 77 of zerorun's protocol, where this one speaks version 3; start the same zerorun everywhere");
  EXPECT_SAYS(said, "sent something else than a greeting");
  EXPECT_SAYS(said, "and for something else");
  EXPECT_SAYS(said, "calls itself rank 9 of 2");
  EXPECT_SAYS(said, "says it listens at port 70000");
}

TEST_F(Rendezvous, AnotherWorldSizeIsRefusedEverywhere) {
  EXPECT_SAYS(answerTo(hello(2, 4)), "was started with WORLD_SIZE=4, but rank 0 with WORLD_SIZE=3");
}

TEST_F(Rendezvous, TwoProcessesOfOneRankAreRefusedEverywhere) {
  EXPECT_SAYS(answerTo(hello(1, 3)), "two processes were started with RANK=1: process ");
  EXPECT_SAYS(answerTo(hello(0, 3)), "two processes were started with RANK=0: process ");
}

TEST_F(Rendezvous, WithoutTheSecretNobodyJoins) {
  testing::internal::CaptureStderr();
  auto first = start(member(0, 2));
  for (const char *guess : {"", "0123456789abcdef0123456789abcdeF"}) {
    Membership stranger = member(1, 2);
    stranger.secret = guess;
    EXPECT_SAYS(start(stranger).get(), "says that rank 1 does not know its secret; give all ranks the same ZERORUN_SECRET");
  }
  EXPECT_EQ(start(member(1, 2)).get(), "");
  EXPECT_EQ(first.get(), "");
  EXPECT_SAYS(testing::internal::GetCapturedStderr(), "calls itself rank 1 but does not know the secret of this run");
}

TEST_F(Rendezvous, ARankZeroWithoutTheSecretIsNotBelieved) {
  std::string why;
  for (bool challenges : {false, true}) {
    Socket listener = listenAt(resolve("127.0.0.1", port, why).at(0), why);
    auto rank = start(member(1, 2));
    EXPECT_TRUE(awaitReadable(listener, soon()));
    Socket line = acceptFrom(listener);
    std::string guess(Session::kTag, 'x');
    if (challenges) say(line, frame(Kind::Challenge, Nonce()));
    say(line, frame(challenges ? Kind::Welcome : Kind::Table, guess.data(), guess.size()));
    EXPECT_SAYS(rank.get(), challenges ? "does not know the secret of this run" : "something else than a challenge");
  }
}

// What a rank has said once is worth nothing a second time, in part or whole, and none of it ends the start.
TEST_F(Rendezvous, RecordedAndCutHandshakesAreStrangers) {
  testing::internal::CaptureStderr();
  auto first = start(member(0, 3));
  Hello greeting = hello(1, 3);
  greeting.nonce = freshNonce();
  Socket caller = call();
  say(caller, frame(Kind::Hello, greeting));
  FrameReader reader(sizeof(Nonce));
  ASSERT_EQ(await(caller, reader, soon()), FrameReader::State::Whole);
  Nonce nonce;
  ASSERT_TRUE(read(reader.body(), nonce));
  std::string body = joining(), proof = Session(secret, greeting, nonce).seal(Session::From::Caller, Kind::Join, body.data(), body.size());
  auto outcome = [&](const std::string &begin, const std::string &rest) {
    Socket socket = call();
    say(socket, begin);
    FrameReader challenge(sizeof(Nonce)), answer(kMaxSentence);
    EXPECT_EQ(await(socket, challenge, soon()), FrameReader::State::Whole);
    say(socket, rest);
    return await(socket, answer, soon()) == FrameReader::State::Whole ? answer.kind() : Kind{};
  };
  EXPECT_EQ(outcome(frame(Kind::Hello, greeting), proof), Kind::Denied);    // replayed
  EXPECT_EQ(outcome(frame(Kind::Hello, hello(2, 3)), proof), Kind::Denied); // as another rank
  std::vector<Socket> cut;
  for (size_t bytes : {size_t(1), sizeof(FrameHeader), proof.size() - 1}) { // and then waits, or hangs up
    for (bool stays : {false, true}) {
      Socket socket = call();
      say(socket, frame(Kind::Hello, greeting) + proof.substr(0, bytes));
      if (stays) cut.push_back(std::move(socket));
    }
  }
  say(caller, proof); // who was asked is welcome still
  FrameReader welcome(Session::kTag);
  EXPECT_EQ(await(caller, welcome, soon()), FrameReader::State::Whole);
  EXPECT_EQ(welcome.kind(), Kind::Welcome);
  caller = Socket();
  EXPECT_SAYS(first.get(), "rank 1 (process ");
  testing::internal::GetCapturedStderr();
}

TEST_F(Rendezvous, AFloodHoldsNobodyUp) {
  testing::internal::CaptureStderr();
  auto first = start(member(0, 2));
  std::atomic<bool> floods = true;
  std::thread flood([&] {
    std::vector<Socket> held(1500); // more than are let wait
    std::string why, greeting = frame(Kind::Hello, hello(1, 2)), other = "GET /";
    Address door = resolve("127.0.0.1", port, why).at(0);
    for (size_t i = 0; floods; ++i) {
      Socket &socket = held[i % held.size()] = connectTo(door, soon(), why);
      const std::string &text = i % 2 ? greeting : other;
      if (socket && i % 3) sendAll(socket, text.data(), text.size(), soon());
    }
  });
  std::this_thread::sleep_for(milliseconds(300));
  EXPECT_EQ(start(member(1, 2)).get(), "");
  EXPECT_EQ(first.get(), "");
  floods = false;
  flood.join();
  testing::internal::GetCapturedStderr();
}

TEST_F(Rendezvous, NoPortIsOpenOnceAllCommunicatorsAreMade) {
  auto rank = [&](int self, std::promise<void> *made, std::shared_future<void> go) {
    return std::async(std::launch::async, [=, this] {
      auto factory = connectTcp(member(self, 2));
      auto communicator = factory->create();
      factory->closeListeners();
      made->set_value();
      go.wait();
      communicator->barrier();
      factory->finalize();
    });
  };
  std::promise<void> ready[2], go;
  auto released = go.get_future().share();
  auto first = rank(0, &ready[0], released), second = rank(1, &ready[1], released);
  for (auto &each : ready) each.get_future().wait();
  EXPECT_EQ(listeningPortsOfThisProcess(), 0);
  go.set_value();
  first.get(), second.get();
}

TEST_F(Rendezvous, AStrangerInThePlaceOfRankZeroIsNamed) {
  auto answered = [&](const std::string &text) {
    std::string why;
    Socket listener = listenAt(resolve("127.0.0.1", port, why).at(0), why);
    auto rank = start(member(1, 2));
    EXPECT_TRUE(awaitReadable(listener, soon()));
    Socket line = acceptFrom(listener);
    say(line, text);
    return rank.get();
  };
  EXPECT_SAYS(answered("220 mail ESMTP\r\n"), "does not speak as zerorun does");
  EXPECT_SAYS(answered(frame(Kind::Join, Join())), "announced a message of");
  FrameHeader older;
  older.version = 1;
  EXPECT_SAYS(answered({reinterpret_cast<const char *>(&older), sizeof older}), "speaks version 1 of zerorun's protocol");
}

// A process that knows the secret, but does not send what rank 0 does.
TEST_F(Rendezvous, AWrongListOfRanksIsNamed) {
  auto answered = [&](Kind kind, const std::string &body) {
    return welcomed([&](Arrival &arrival, const std::future<std::string> &) {
      arrival.answer(arrival.session.seal(Session::From::Callee, kind, body.data(), body.size()));
    });
  };
  EXPECT_SAYS(answered(Kind::Table, std::string(sizeof(Token), 0)), "which is not one of 2 ranks");
  EXPECT_SAYS(answered(Kind::Join, ""), "something else than the list of ranks");
  EXPECT_SAYS(answered(Kind::Table, std::string(sizeof(Token) + 2 * sizeof(TableEntry), 0)), "an address that is none");
  EXPECT_EQ(answered(Kind::Refusal, "no\nrun\x1b"), "no\nrun\x1b"); // who prints it makes it printable (streams.h)
}

// Of two ranks the second one, which calls the first where nobody listens any more: is it told why?
TEST_F(Rendezvous, ARankThatEndsBeforeItIsCalledIsNamed) {
  pid_t gone = ::fork();
  if (gone == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(gone, nullptr, 0), gone);
  auto called = [&](pid_t process, bool hangsUp) {
    return welcomed([&](Arrival &arrival, const std::future<std::string> &rank) {
      TableEntry entries[2];
      for (TableEntry &entry : entries) entry.peer = Peers::self(), entry.port = zero::test::freePort();
      entries[0].peer.process = process;
      std::string body(sizeof(Token), 0);
      body.append(reinterpret_cast<const char *>(entries), sizeof entries);
      arrival.answer(arrival.session.seal(Session::From::Callee, Kind::Table, body.data(), body.size()));
      std::this_thread::sleep_for(milliseconds(100));
      if (hangsUp) arrival.socket = Socket();
      EXPECT_EQ(rank.wait_for(std::chrono::seconds(5)), std::future_status::ready);
    });
  };
  EXPECT_SAYS(called(gone, false), "rank 0 (process " + std::to_string(gone) + " on ");
  std::string said = called(::getpid(), true);
  EXPECT_SAYS(said, "rank 0 (process " + std::to_string(::getpid()) + " on ");
  EXPECT_SAYS(said, "ended before all ranks had found each other");
}

// Strangers get a quarter of the files; that there is no room for a few callers is the run's own doing, and dropping them would help
// nobody.
TEST_F(Rendezvous, TooFewOpenFilesAreSaid) {
  std::string why;
  Socket listener = listenAt(resolve("127.0.0.1", port, why).at(0), why);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = 256;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  Acceptor acceptor(listener, Kind::Join, 0, secret, sizeof(Join));
  Socket one = call();
  EXPECT_FALSE(acceptor.next(std::chrono::steady_clock::now() + milliseconds(100))); // it has a place
  Socket two = call();
  std::vector<Socket> rest;
  for (int fd = 0; (fd = ::dup(listener.fd())) >= 0;) rest.emplace_back(fd);
  std::string said = sentenceOf([&] { acceptor.next(soon()); });
  rest.clear();
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_SAYS(said, "may not open as many files and connections as the run needs");
}

// ---------------------------------------------------------------------------------------------- messages

TEST_F(Rendezvous, LargeAndEmptyMessagesPassEachOther) {
  constexpr uint64_t kBytes = 48 << 20; // far more than the system keeps on the way
  auto rank = [&](int self) {
    auto factory = connectTcp(member(self, 3));
    auto communicator = factory->create();
    std::vector<char> own(kBytes, static_cast<char>('a' + self)), all(3 * kBytes);
    communicator->allGather(own.data(), all.data(), kBytes);
    communicator->allGather(nullptr, all.data(), 0);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(all[i * kBytes], static_cast<char>('a' + i));
      EXPECT_EQ(std::memcmp(&all[i * kBytes], &all[i * kBytes + 1], kBytes - 1), 0);
    }
    EXPECT_EQ(communicator->bytesSent(), 2 * kBytes);
    factory->finalize();
  };
  std::thread second(rank, 1), third(rank, 2);
  rank(0);
  second.join(), third.join();
}

TEST_F(Rendezvous, RanksThatDoNotAgreeNoticeIt) {
  auto rank = [&](int self) {
    auto factory = connectTcp(member(self, 2));
    auto communicator = factory->create();
    std::vector<char> all(200);
    std::string said = sentenceOf([&] { communicator->allGather(all.data(), all.data(), self == 0 ? 10 : 100); });
    EXPECT_SAYS(said, self == 0 ? "sent 100 bytes in an all-gather in which rank 0 expects 10"
                                : "sent 10 bytes in an all-gather in which rank 1 expects 100");
    factory->finalize();
  };
  std::thread second(rank, 1);
  rank(0);
  second.join();
}

} // namespace
