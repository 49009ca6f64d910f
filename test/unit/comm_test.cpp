// Collectives alone, under mpirun (CTest runs this program with 1, 2 and 4 ranks) and over TCP (it starts itself as several ranks).
#include "runtime/base/error.h"
#include "runtime/comm/mpi/mpi.h"
#include "runtime/comm/ordered_sum.h"
#include "runtime/comm/patience.h"
#include "test/unit/mpi_environment.h"
#include "test/unit/tcp_launch.h"
#include <bit>
#include <cmath>
#include <csignal>
#include <cstring>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace zero;
using namespace zero::runtime;
using zero::test::world;

namespace {

auto *environment = testing::AddGlobalTestEnvironment(new zero::test::MpiEnvironment);

// Values whose sum depends on the order: a large number that cancels among small ones.
float valueOf(int rank, uint64_t i) {
  const float values[] = {1e8f, 1.0f, -1e8f, 0.3f, 7.0f};
  return values[(static_cast<uint64_t>(rank) + i) % 5] * (1.0f + 0.001f * static_cast<float>(i % 1000));
}
float orderedSumOf(int ranks, uint64_t i) {
  float sum = valueOf(0, i);
  for (int rank = 1; rank < ranks; ++rank) sum += valueOf(rank, i);
  return sum;
}

// `slice`: elements of a sum that go at a time; 0: all of them.
void checkCollectives(Communicator &comm, uint64_t count, uint64_t slice = 0) {
  int self = comm.rank(), size = comm.world();
  auto total = count * static_cast<uint64_t>(size), own = count * static_cast<uint64_t>(self);
  std::vector<float> whole(total), dst(count);
  if (slice == 0) slice = count;
  std::vector<float> room(slice * static_cast<uint64_t>(size));
  Staging staging{room.data(), slice};

  for (uint64_t i = 0; i < count; ++i) whole[own + i] = valueOf(self, i);
  comm.allGather(whole.data() + own, whole.data(), count * 4); // in place
  for (uint64_t i = 0; i < total; ++i) ASSERT_EQ(whole[i], valueOf(static_cast<int>(i / count), i % count));
  std::vector<float> copy(total);
  comm.allGather(whole.data() + own, copy.data(), count * 4);
  EXPECT_EQ(copy, whole);

  for (uint64_t i = 0; i < total; ++i) whole[i] = valueOf(self, i);
  comm.reduceScatter(WireType::F32, whole.data(), dst.data(), count, staging);
  for (uint64_t i = 0; i < count; ++i) ASSERT_EQ(dst[i], orderedSumOf(size, own + i)) << "element " << i;
  comm.reduceScatter(WireType::F32, whole.data(), whole.data() + own, count, staging); // into its own part
  EXPECT_EQ(0, std::memcmp(whole.data() + own, dst.data(), count * 4));

  std::vector<uint16_t> halves(total); // bf16: sent in two bytes, added in f32
  auto halfOf = [](int rank, uint64_t i) { return std::bit_cast<uint32_t>(valueOf(rank, i)) & 0xffff0000; };
  for (uint64_t i = 0; i < total; ++i) halves[i] = static_cast<uint16_t>(halfOf(self, i) >> 16);
  uint64_t before = comm.bytesSent();
  comm.reduceScatter(WireType::Bf16, halves.data(), dst.data(), count, staging);
  EXPECT_EQ(comm.bytesSent() - before, 2 * count * static_cast<uint64_t>(size - 1));
  for (uint64_t i = 0; i < count; ++i) {
    auto sum = std::bit_cast<float>(halfOf(0, own + i));
    for (int rank = 1; rank < size; ++rank) sum += std::bit_cast<float>(halfOf(rank, own + i));
    ASSERT_EQ(dst[i], sum) << "element " << i;
  }

  for (uint64_t i = 0; i < count; ++i) dst[i] = valueOf(self, i);
  comm.allReduce(dst.data(), count, staging);
  for (uint64_t i = 0; i < count; ++i) ASSERT_EQ(dst[i], orderedSumOf(size, i)) << "element " << i;

  std::vector<int> message{self, self};
  comm.broadcast(message.data(), 8, size - 1);
  EXPECT_EQ(message, std::vector<int>(2, size - 1));
  comm.barrier();
}

TEST(Communicator, CollectivesOfManySizes) {
  auto comm = world->create();
  EXPECT_EQ(comm->rank(), world->rank());
  EXPECT_EQ(comm->world(), world->world());
  for (uint64_t count : {1, 3, 1000, 300000}) checkCollectives(*comm, count);
}

// The same bits, whatever the room for partial sums: also where the last slice is short.
TEST(Communicator, SumsGoInSlices) {
  auto comm = world->create();
  for (uint64_t slice : {1, 7, 999, 1000, 5000}) checkCollectives(*comm, 1000, slice);
  for (uint64_t slice : {65536, 70001, 149999, 299999})
    checkCollectives(*comm, 300000, slice); // of which a part travels while another is summed
}

TEST(Communicator, RanksKnowWhoSharesTheirMachine) { EXPECT_EQ(world->neighbours().all, world->world()); }

TEST(Communicator, LongMessagesAreSplit) {
  auto comm = world->create();
  setMpiMessageLimit(1000);
  checkCollectives(*comm, 3001);
  setMpiMessageLimit(uint64_t(1) << 30);
}

TEST(Communicator, CountsWhatItSends) {
  auto comm = world->create();
  auto others = static_cast<uint64_t>(comm->world() - 1);
  std::vector<float> data(static_cast<size_t>(comm->world()) * 10), staging(data.size());
  comm->allGather(data.data() + comm->rank() * 10, data.data(), 40);
  EXPECT_EQ(comm->bytesSent(), others * 40);
  comm->reduceScatter(WireType::F32, data.data(), data.data(), 10, {staging.data(), 10});
  EXPECT_EQ(comm->bytesSent(), others * 80);
}

TEST(Communicator, TwoLanesAtOnce) {
  auto first = world->create(), second = world->create();
  auto work = [](Communicator &comm) {
    for (int i = 0; i < 20; ++i) checkCollectives(comm, 5000);
  };
  std::thread lane([&] { work(*second); });
  work(*first);
  lane.join();
}

TEST(Communicator, InterruptEndsAWait) {
  if (world->world() == 1) GTEST_SKIP() << "nobody to wait for";
  // Never freed: a message nobody answers stays under way.
  Communicator &comm = *world->create().release();
  if (world->rank() == 0) {
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      comm.interrupt();
    });
    std::vector<char> data(static_cast<size_t>(world->world()));
    EXPECT_THROW(comm.allGather(data.data(), data.data(), 1), Error);
    other.join();
  }
  world->create()->barrier();
}

TEST(OrderedSum, AddsInRankOrder) {
  const uint64_t count = 9000;
  std::vector<float> parts(count * 5), mine(count), dst(count);
  for (uint64_t i = 0; i < count * 5; ++i) parts[i] = i / count == 2 ? NAN : valueOf(static_cast<int>(i / count), i % count);
  for (uint64_t i = 0; i < count; ++i) mine[i] = valueOf(2, i);
  orderedSum(parts.data(), count, 5, 2, mine.data(), mine.data(), count);
  for (uint64_t i = 0; i < count; ++i) ASSERT_EQ(mine[i], orderedSumOf(5, i));
}

TEST(Connect, WorldSizeAloneIsRefused) {
  if (world->world() > 1) GTEST_SKIP();
  setenv("WORLD_SIZE", "4", 1);
  try {
    connect();
    ADD_FAILURE();
  } catch (const RankError &error) {
    EXPECT_NE(std::string(error.what()).find("mpirun -np 4"), std::string::npos);
  }
  setenv("WORLD_SIZE", "1", 1);
  EXPECT_EQ(connect()->world(), 1);
  unsetenv("WORLD_SIZE");
}

TEST(Connect, TasksOfSrunThatCannotMeetAreRefused) {
  if (world->world() > 1) GTEST_SKIP();
  setenv("SLURM_STEP_ID", "0", 1), setenv("SLURM_PROCID", "0", 1), setenv("SLURM_STEP_NUM_TASKS", "4", 1);
  try {
    connect();
    ADD_FAILURE() << "four tasks would each train alone";
  } catch (const Error &error) {
    EXPECT_NE(std::string(error.what()).find("srun --mpi=pmix -n 4"), std::string::npos) << error.what();
  }
  setenv("SLURM_STEP_NUM_TASKS", "1", 1);
  EXPECT_EQ(connect()->world(), 1);
  unsetenv("SLURM_STEP_ID"), unsetenv("SLURM_PROCID"), unsetenv("SLURM_STEP_NUM_TASKS");
}

// Run by the tests below, in processes of their own.
TEST(Doomed, DISABLED_LatePeer) {
  setPatience({std::chrono::milliseconds(50), std::chrono::milliseconds(200)});
  auto comm = world->create();
  std::vector<char> data(static_cast<size_t>(world->world()));
  if (world->rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(1));
  testing::internal::CaptureStderr();
  comm->allGather(data.data(), data.data(), 1);
  std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(world->rank() == 0, said.find("rank 0 has waited 0 s in an all-gather for rank 1 (process ") != std::string::npos) << said;
  EXPECT_EQ(world->rank() == 0, said.find("an all-gather has gone on after 1 s") != std::string::npos) << said;
}
TEST(Doomed, DISABLED_KilledPeer) {
  auto comm = world->create();
  std::vector<char> data(static_cast<size_t>(world->world()) << 20);
  if (world->rank() == 1) raise(SIGKILL);
  try {
    for (;;) comm->allGather(data.data() + (size_t(world->rank()) << 20), data.data(), 1 << 20);
  } catch (const Error &) {
    world->abort();
  }
}
TEST(Doomed, DISABLED_AbortingPeer) {
  auto comm = world->create();
  std::vector<char> data(static_cast<size_t>(world->world()));
  if (world->rank() == 1) world->abort();
  comm->allGather(data.data(), data.data(), 1);
}

TEST(OverTcp, CollectivesGiveTheSame) {
  if (world->world() > 1) GTEST_SKIP();
  for (int ranks : {2, 4}) {
    zero::test::TcpRun run = zero::test::runOverTcp(ranks, "Communicator.*");
    for (int status : run.statuses) EXPECT_EQ(status, 0) << run.output;
  }
}

TEST(OverTcp, ARankSaysForWhomItWaits) {
  if (world->world() > 1) GTEST_SKIP();
  zero::test::TcpRun run = zero::test::runOverTcp(2, "Doomed.DISABLED_LatePeer");
  EXPECT_EQ(run.statuses, std::vector<int>(2, 0)) << run.output;
}

// Each of them says its own, once.
void expectEachSays(const zero::test::TcpRun &run, std::initializer_list<const char *> ranks, const char *what) {
  for (const char *rank : ranks) {
    std::string begin = std::string("zerorun: rank ") + rank + ": rank 1 (process ";
    size_t first = run.output.find(begin);
    ASSERT_NE(first, std::string::npos) << run.output;
    EXPECT_EQ(run.output.find(begin, first + 1), std::string::npos) << run.output;
    EXPECT_NE(run.output.substr(first, run.output.find('\n', first) - first).find(what), std::string::npos) << run.output;
  }
}

TEST(OverTcp, AKilledRankEndsTheOthersWithASentenceEach) {
  if (world->world() > 1) GTEST_SKIP();
  zero::test::TcpRun run = zero::test::runOverTcp(3, "Doomed.DISABLED_KilledPeer");
  EXPECT_EQ(run.statuses, (std::vector<int>{1, -SIGKILL, 1})) << run.output;
  EXPECT_LT(run.seconds, 10);
  expectEachSays(run, {"0", "2"}, " has ended, so the run ends");
}

TEST(OverTcp, AnAbortingRankEndsTheOthersWithASentenceEach) {
  if (world->world() > 1) GTEST_SKIP();
  zero::test::TcpRun run = zero::test::runOverTcp(3, "Doomed.DISABLED_AbortingPeer");
  EXPECT_EQ(run.statuses, std::vector<int>(3, 1)) << run.output;
  EXPECT_LT(run.seconds, 10);
  expectEachSays(run, {"0", "2"}, " ended the run and has said why");
}

TEST(Failures, ARankSaysForWhomItWaits) {
  if (world->world() > 1) GTEST_SKIP();
  double seconds = 0;
  EXPECT_EQ(zero::test::runUnderMpi(2, "Doomed.DISABLED_LatePeer", seconds), 0);
}

TEST(Failures, DeadOrAbortingPeersEndTheRun) {
  if (world->world() > 1) GTEST_SKIP();
  for (const char *test : {"Doomed.DISABLED_KilledPeer", "Doomed.DISABLED_AbortingPeer"}) {
    double seconds = 0;
    int status = zero::test::runUnderMpi(2, test, seconds);
    EXPECT_NE(status, 0) << test;
    EXPECT_NE(status, 124) << test << " did not end";
    EXPECT_LT(seconds, 10) << test;
  }
}

} // namespace
