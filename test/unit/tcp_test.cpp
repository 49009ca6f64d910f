// How ranks find each other over TCP: what they are told in the environment, who does not come, and who comes but should not.
#include "runtime/comm/tcp/environment.h"
#include "runtime/comm/tcp/tcp.h"
#include "runtime/plan/error.h"
#include "test/unit/tcp_launch.h"
#include <cstdlib>
#include <cstring>
#include <future>
#include <gtest/gtest.h>
#include <map>

using namespace zero;
using namespace zero::runtime;
using std::chrono::milliseconds;

namespace {

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
  const std::vector<std::string> names{
      "RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_USE_AGENT_STORE", "ZERORUN_START_TIMEOUT"};
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
  set({{"WORLD_SIZE", "2"}, {"RANK", "0"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "7"}, {"ZERORUN_START_TIMEOUT", "9"}});
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
  std::map<std::string, std::string> good{{"WORLD_SIZE", "4"}, {"RANK", "1"}, {"MASTER_ADDR", "a"}};
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

// ---------------------------------------------------------------------------------------------- rendezvous

class Rendezvous : public testing::Test {
protected:
  Membership member(int rank, int world) {
    Membership result;
    result.rank = rank, result.world = world, result.host = "127.0.0.1", result.port = port;
    result.limits = {milliseconds(100), milliseconds(3000)};
    return result;
  }
  // What a rank says at its end, or nothing.
  std::future<std::string> start(const Membership &membership) {
    return std::async(std::launch::async, [=] { return sentenceOf([&] { connectTcp(membership)->finalize(); }); });
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
  static std::string greeting(uint32_t rank, uint32_t world) {
    Join join;
    join.rank = rank, join.world = world, join.port = 1, join.peer = Peers::self();
    return frame(Kind::Join, join);
  }
  // What rank 0 of 3 and rank 1, which has joined before, say when `text` comes, and what comes back.
  struct Answers {
    std::string first, second, caller;
  };
  Answers answersTo(const std::string &text) {
    auto first = start(member(0, 3));
    Socket second = call(), caller = call();
    say(second, greeting(1, 3));
    std::this_thread::sleep_for(milliseconds(100)); // it shall come first
    say(caller, text);
    Answers answers{first.get(), refusalOn(second), refusalOn(caller)};
    EXPECT_EQ(answers.first, answers.second);
    EXPECT_EQ(answers.first, answers.caller);
    return answers;
  }
  static std::string refusalOn(const Socket &socket) {
    FrameReader reader(kMaxSentence);
    EXPECT_EQ(await(socket, reader, soon()), FrameReader::State::Whole);
    EXPECT_EQ(reader.kind(), Kind::Refusal);
    return reader.body();
  }

  uint16_t port = zero::test::freePort();
};

TEST_F(Rendezvous, RanksMeetOverIpv6AndByName) {
  for (const char *host : {"127.0.0.1", "localhost", "::1"}) {
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
  EXPECT_SAYS(said, "zerorun: rank 0 has waited 0 s at 127.0.0.1:" + std::to_string(port) + " for ranks 1, 3 of 4 ranks\n");
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
    say(second, greeting(1, 3));
    std::this_thread::sleep_for(milliseconds(100));
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
  header.kind = Kind::Join, header.bytes = 4000000000u;
  stranger(bytes(header));
  stranger(frame(Kind::Join, 5));
  stranger(frame(Kind::Link, Link()));
  stranger(greeting(9, 2));
  Join join;
  join.rank = 1, join.world = 2, join.port = 70000;
  stranger(frame(Kind::Join, join));
  EXPECT_EQ(start(member(1, 2)).get(), "");
  EXPECT_EQ(first.get(), "");
  std::string said = testing::internal::GetCapturedStderr();
  EXPECT_SAYS(said, "does not speak as zerorun does");
  EXPECT_SAYS(said, "sent a message of the unknown kind 77");
  EXPECT_SAYS(said, "announced a message of 4000000000 bytes, where at most 96 can be");
  EXPECT_SAYS(said, "sent something else than a rank's greeting");
  EXPECT_SAYS(said, "calls itself rank 9 of 2");
  EXPECT_SAYS(said, "says it listens at port 70000");
}

TEST_F(Rendezvous, AnotherWorldSizeIsRefusedEverywhere) {
  EXPECT_SAYS(answersTo(greeting(2, 4)).first, "was started with WORLD_SIZE=4, but rank 0 with WORLD_SIZE=3");
}

TEST_F(Rendezvous, TwoProcessesOfOneRankAreRefusedEverywhere) {
  EXPECT_SAYS(answersTo(greeting(1, 3)).first, "two processes were started with RANK=1: process ");
  EXPECT_SAYS(answersTo(greeting(0, 3)).first, "two processes were started with RANK=0: process ");
}

TEST_F(Rendezvous, AnotherVersionIsRefusedEverywhere) {
  FrameHeader header;
  header.version = 2, header.kind = Kind::Join;
  std::string text(reinterpret_cast<const char *>(&header), sizeof header);
  EXPECT_SAYS(answersTo(text).first, "speaks version 2 of zerorun's protocol, where this one speaks version 1");
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
  EXPECT_SAYS(answered(frame(Kind::Table, Token())), "which is not one of 2 ranks");
  EXPECT_SAYS(answered(frame(Kind::Join, Join())), "something else than the list of ranks");
  std::array<char, sizeof(Token) + 2 * sizeof(TableEntry)> zeros{};
  EXPECT_SAYS(answered(frame(Kind::Table, zeros)), "an address that is none");
  EXPECT_EQ(answered(refusal("no\nrun\x1b")), "norun"); // no control characters on the terminal
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
