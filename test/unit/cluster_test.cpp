// Ranks that differ, in virtual time (runtime/simulate): small plans whose times are known.
#include "runtime/base/error.h"
#include "runtime/simulate/cluster_timeline.h"
#include "runtime/simulate/machines.h"
#include "runtime/simulate/shared.h"
#include "runtime/simulate/step_time.h"
#include "test/unit/plan_builder.h"
#include <gtest/gtest.h>
#include <numeric>

using namespace zero;
using namespace zero::simulate;

namespace {

Cluster simple() {
  Cluster cluster;
  cluster.rank.memory = 100, cluster.rank.step = 1e-9, cluster.rank.link = 10, cluster.rank.linkLatency = 1e-9;
  cluster.rank.diskRead = 20, cluster.rank.diskWrite = 5;
  return cluster;
}

/// A second of computation, a gather of (world - 1) seconds that waits for it, and another second that waits for that.
plan::Plan gathering(uint32_t world) {
  test::PlanBuilder b(world);
  plan::Ref room = b.bytes("room", 50), shard = b.bytes("shard", 8), whole = b.bytes("whole", 8 * world);
  b.step("before", {room}, {room}).mutable_copy();
  plan::Step &gather = b.step("gather", {shard}, {whole}, plan::GATHER);
  gather.mutable_collective()->set_count(2), gather.mutable_collective()->set_dtype(plan::F32);
  test::waitFor(gather, plan::COMPUTE, 1);
  plan::Step &after = b.step("after", {room}, {room});
  after.mutable_copy();
  test::waitFor(after, plan::GATHER, 1);
  return b.plan;
}

ClusterRun run(const Cluster &cluster, const plan::Plan &plan, uint64_t steps = 3) { return runOn(cluster, plan, {.steps = steps}); }

const RankTime &timeOfRank(const ClusterRun &run, uint64_t rank) {
  auto found = std::find_if(run.ranks.begin(), run.ranks.end(), [&](const RankTime &time) { return time.rank == rank; });
  if (found == run.ranks.end()) throw Error("no such class");
  return *found;
}

TEST(Shared, EqualSharesWhoeverComesAndGoes) {
  Shared disk;
  disk.begin(0, 4, 1, 7);
  EXPECT_NEAR(disk.nextEnd(0), 4, 1e-9);
  disk.begin(2, 1, 1, 8); // half of what is left of it each
  EXPECT_NEAR(disk.nextEnd(2), 4, 1e-9);
  EXPECT_EQ(disk.end(4), 8u);
  EXPECT_NEAR(disk.nextEnd(4), 5, 1e-9);
  EXPECT_EQ(disk.end(5), 7u);
  EXPECT_TRUE(disk.idle());
  disk.begin(10, 1, 1, 9);
  EXPECT_NEAR(disk.nextEnd(10), 11, 1e-9);
}

TEST(Shared, OneAloneHasAllOfTheCapacity) {
  Shared disks(4);
  disks.begin(0, 8, 1, 1);
  EXPECT_NEAR(disks.nextEnd(0), 2, 1e-9);
  disks.begin(1, 8, 3, 2); // three more like it at once: each has one's
  EXPECT_NEAR(disks.nextEnd(1), 5, 1e-9);
}

TEST(ClusterTimeline, EqualRanksAreAsOneAlone) {
  for (uint32_t world : {1u, 2u, 7u}) {
    plan::Plan plan = gathering(world);
    Cluster cluster = simple();
    cluster.ranksPerNode = 2;
    ClusterRun found = run(cluster, plan);
    double step = timeOf(plan, cluster.rank, false).seconds;
    for (size_t i = 0; i < found.stepEnds.size(); ++i) EXPECT_NEAR(found.stepEnds[i], step * double(i + 1), 1e-6);
    uint64_t ranks = std::accumulate(found.ranks.begin(), found.ranks.end(), uint64_t(0),
                                     [](uint64_t sum, const RankTime &time) { return sum + time.ranks; });
    EXPECT_EQ(ranks, world);
    for (const RankTime &rank : found.ranks) EXPECT_NEAR(rank.longestWait(), 0, 1e-9);
  }
}

TEST(ClusterTimeline, CollectivesWaitForTheLastRank) {
  Cluster cluster = simple();
  cluster.others[3] = cluster.rank;
  cluster.others[3].memory = 25; // four times as slow
  ClusterRun found = run(cluster, gathering(5), 4);
  EXPECT_EQ(found.ranks.size(), 2u);
  EXPECT_NEAR(found.stepEnds[0], 4 + 3.2 + 4, 1e-6); // 8 bytes to each of four others
  EXPECT_NEAR(found.stepEnds[3], 4 * 11.2, 1e-6);
  EXPECT_EQ(timeOfRank(found, 0).ranks, 4u);
  EXPECT_NEAR(timeOfRank(found, 3).longestWait(), 0, 1e-6);
  EXPECT_NEAR(timeOfRank(found, 0).waited[plan::GATHER], 6, 1e-6); // it is ahead by the end of the step before, too
  EXPECT_NEAR(timeOfRank(found, 0).busy[plan::GATHER], 3.2, 1e-6);
  EXPECT_NEAR(timeOfRank(found, 0).busy[plan::COMPUTE], 2, 1e-6);
  EXPECT_NEAR(timeOfRank(found, 3).busy[plan::COMPUTE], 8, 1e-6);
}

TEST(ClusterTimeline, TheSlowestLinkCarriesTheRing) {
  Cluster cluster = simple();
  cluster.others[1] = cluster.rank;
  cluster.others[1].link = 4;
  EXPECT_NEAR(run(cluster, gathering(3)).stepEnds[0], 2 + 4, 1e-6); // 16 bytes
  Cluster nodes = simple();
  nodes.ranksPerNode = 2, nodes.network = 2;
  EXPECT_NEAR(run(nodes, gathering(2)).stepEnds[0], 2 + 0.8, 1e-6) << "of one node";
  EXPECT_NEAR(run(nodes, gathering(3)).stepEnds[0], 2 + 8, 1e-6) << "of two";
  plan::Plan gather = gathering(4); // 24 bytes, but 32 from each node where every rank sends each other one its part
  EXPECT_NEAR(run(nodes, gather).stepEnds[0], 2 + 16, 1e-6);
  gather.mutable_target()->set_kind(plan::Target::CUDA);
  EXPECT_NEAR(run(nodes, gather).stepEnds[0], 2 + 12, 1e-6) << "around a ring";
}

/// 80 bytes from disk, and on rank 0 alone of those of a node before the others have computed.
plan::Plan reading(uint32_t world) {
  test::PlanBuilder b(world);
  plan::Ref disk = b.bytesIn(b.addArena(plan::DISK, 4096), "disk", 80), whole = b.bytes("whole", 80), room = b.bytes("room", 50);
  b.step("before", {room}, {room}).mutable_copy();
  plan::Step &read = b.step("read", {disk}, {whole}, plan::DISK_READ);
  read.mutable_copy();
  test::waitFor(read, plan::COMPUTE, 1);
  return b.plan;
}

TEST(ClusterTimeline, ANodesDisksAreItsRanksTogether) {
  Cluster cluster = simple();
  cluster.ranksPerNode = 2;
  EXPECT_NEAR(run(cluster, reading(2)).stepEnds[0], 1 + 4, 1e-6); // each its own part, both at once
  cluster.others[1] = cluster.rank;
  cluster.others[1].memory = 20; // computes for 5 s: rank 0 reads from 1 to 3, as fast as two
  ClusterRun found = run(cluster, reading(2), 1);
  EXPECT_NEAR(found.stepEnds[0], 5 + 2, 1e-6);
  EXPECT_NEAR(timeOfRank(found, 0).busy[plan::DISK_READ], 2, 1e-6);
  cluster.ranksPerNode = 1;
  EXPECT_NEAR(run(cluster, reading(2), 1).stepEnds[0], 5 + 4, 1e-6);
}

TEST(ClusterTimeline, OneRankForAllThatAreAlike) {
  Cluster cluster = simple();
  cluster.ranksPerNode = 8;
  EXPECT_EQ(run(cluster, reading(1000)).ranks.size(), 1u);
  cluster.others[17] = cluster.rank;
  cluster.others[17].memory = 50;
  ClusterRun found = run(cluster, reading(1000));
  ASSERT_EQ(found.ranks.size(), 3u); // the slow one, those beside it, all others
  EXPECT_EQ(timeOfRank(found, 0).ranks, 992u);
  EXPECT_EQ(timeOfRank(found, 16).ranks, 7u);
  EXPECT_EQ(timeOfRank(found, 17).ranks, 1u);
  EXPECT_LT(timeOfRank(found, 16).busy[plan::DISK_READ], timeOfRank(found, 0).busy[plan::DISK_READ]);
}

TEST(ClusterTimeline, VariationComesFromTheSeed) {
  Cluster cluster = simple();
  plan::Plan plan = gathering(16);
  double equal = run(cluster, plan, 20).stepEnds.back();
  cluster.variation = 0.1;
  auto varied = [&](uint64_t seed) { return runOn(cluster, plan, {.steps = 20, .seed = seed}); };
  ClusterRun found = varied(1);
  EXPECT_EQ(found.stepEnds, varied(1).stepEnds);
  EXPECT_NE(found.stepEnds, varied(2).stepEnds);
  EXPECT_EQ(found.ranks.size(), 16u);
  EXPECT_GT(found.stepEnds.back(), equal);
  // Two seconds of 16 ranks, by the largest of 16 magnitudes: 1.9 of 0.1 is expected.
  EXPECT_NEAR((found.stepEnds.back() - equal) / 20, 2 * 0.19, 0.1);
}

/// All micro-steps are walked, and steps until nothing changes.
TEST(ClusterTimeline, MicroStepsAndManySteps) {
  plan::Plan plan = gathering(4);
  plan.set_accumulate(5);
  plan.mutable_programs(0)->set_role(plan::Program::FIRST);
  for (auto role : {plan::Program::MIDDLE, plan::Program::LAST}) {
    *plan.add_programs() = plan.programs(0);
    plan.mutable_programs(plan.programs_size() - 1)->set_role(role);
  }
  std::vector<double> seconds;
  ClusterRun found = runOn(simple(), plan, {.steps = 1000, .ended = [&](uint64_t step, double each) {
                                              EXPECT_EQ(step, seconds.size() + 1);
                                              seconds.push_back(each);
                                            }});
  ASSERT_EQ(seconds.size(), 1000u);
  for (double each : seconds) EXPECT_NEAR(each, 5 * 4.4, 1e-5);
  EXPECT_NEAR(found.stepEnds.back(), 1000 * 5 * 4.4, 1e-2);
  EXPECT_NEAR(found.ranks[0].busy[plan::GATHER], 5 * 2.4, 1e-5);
}

TEST(ClusterTimeline, ShowsRankZeroAndThoseThatAreDescribed) {
  Cluster cluster = simple();
  cluster.others[2] = cluster.rank;
  cluster.others[2].memory = 50;
  std::map<uint64_t, std::vector<std::pair<double, double>>> tasks;
  runOn(cluster, gathering(4), {.steps = 1, .show = [&](uint64_t rank, int program, size_t task, double begin, double end) {
                                  EXPECT_EQ(program, 0);
                                  if (task > 0 && task < 4) tasks[rank].emplace_back(begin, end);
                                }});
  ASSERT_EQ(tasks.size(), 2u);
  ASSERT_EQ(tasks[0].size(), 3u);
  EXPECT_NEAR(tasks[0][0].second, 1, 1e-6);
  EXPECT_NEAR(tasks[2][0].second, 2, 1e-6);
  EXPECT_NEAR(tasks[0][1].first, 2, 1e-6); // a collective is under way from when all have come
  EXPECT_NEAR(tasks[0][1].second, 4.4, 1e-6);
}

TEST(ClusterTimeline, RefusesRanksThatThePlanDoesNotHave) {
  Cluster cluster = simple();
  cluster.others[4] = cluster.rank;
  try {
    run(cluster, gathering(4));
    FAIL();
  } catch (const Error &error) {
    EXPECT_STREQ(error.what(), "the machine's description has something of rank 4, where the plan is for ranks 0 to 3");
  }
}

std::string refusal(const std::string &text) {
  try {
    parseCluster(text, "m.json");
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

TEST(Cluster, HasATextForm) {
  Cluster cluster = parseCluster("// ours\n{\"disk_read\": 3e9, \"link\": 1}", "m.json");
  EXPECT_EQ(cluster.rank.diskRead, 3e9);
  EXPECT_EQ(cluster.rank.link, 1);
  EXPECT_EQ(cluster.rank.memory, Machine().memory);
  EXPECT_EQ(cluster.ranksPerNode, 1u);
  EXPECT_EQ(print(parseCluster(print(cluster.rank), "again").rank), print(cluster.rank));
  Cluster other = parseCluster(R"({"link": 1, "like": "h100", "network": 2, "variation": 0, "host_bytes": 5,
                                   "ranks": {"17": {"memory": 3}, "4": {"link": 2}}})",
                               "m.json");
  EXPECT_EQ(other.rank.link, 1);
  EXPECT_EQ(other.rank.productsBf16, clusterNamed("h100")->rank.productsBf16);
  EXPECT_EQ(other.ranksPerNode, 8u);
  EXPECT_EQ(other.bytes[plan::HOST], 5);
  EXPECT_EQ(other.bytes[plan::DEVICE], clusterNamed("h100")->bytes[plan::DEVICE]);
  EXPECT_EQ(other.machineOf(17).memory, 3);
  EXPECT_EQ(other.machineOf(17).link, 1) << "what is not said is as for all ranks";
  EXPECT_EQ(other.machineOf(4).link, 2);
  EXPECT_EQ(other.machineOf(5), other.rank);
  EXPECT_EQ(equalRank(other, 8).link, 1);
  other.rank.link = 4;
  EXPECT_EQ(equalRank(other, 8).link, 4) << "one node";
  EXPECT_EQ(equalRank(other, 9).link, 2);
}

TEST(Cluster, SaysWhatIsWrong) {
  EXPECT_NE(refusal("{\"disk_read\": }").find("'m.json' describes no machine"), std::string::npos);
  EXPECT_NE(refusal("{\"link\": 1e999}"), "");
  EXPECT_NE(refusal("[1]").find("like, products_f32, products_tf32, products_bf16"), std::string::npos);
  for (const char *like : {"\"h1000\"", "1"})
    EXPECT_NE(
        refusal(std::string("{\"like\": ") + like + "}").find("'m.json' is like no machine that is known by name, which are a100 and h100"),
        std::string::npos);
  EXPECT_NE(refusal("{\"disk\": 1}").find("'m.json' says 'disk' of a machine"), std::string::npos);
  for (const char *value : {"0", "-1", "\"fast\"", "null"})
    EXPECT_NE(refusal(std::string("{\"link\": ") + value + "}").find("gives 'link' of a machine no number above 0"), std::string::npos)
        << value;
  EXPECT_NE(refusal("{\"variation\": -1}").find("gives 'variation' of a machine no number from 0 on"), std::string::npos);
  for (const char *value : {"0", "1.5", "-1", "\"8\""})
    EXPECT_NE(refusal(std::string("{\"ranks_per_node\": ") + value + "}").find("'ranks_per_node' no whole number from 1 on"),
              std::string::npos)
        << value;
  EXPECT_NE(refusal("{\"ranks\": [1]}").find("has no object of ranks"), std::string::npos);
  EXPECT_NE(refusal("{\"ranks\": {\"x\": {}}}").find("'x' in 'ranks', which is no rank"), std::string::npos);
  EXPECT_NE(refusal("{\"ranks\": {\"1\": 2}}").find("says nothing of rank 1"), std::string::npos);
  EXPECT_NE(refusal("{\"ranks\": {\"1\": {\"network\": 2}}}").find("says 'network' of rank 1"), std::string::npos);
  EXPECT_NE(refusal("{\"ranks\": {\"1\": {\"link\": 0}}}").find("gives 'link' of rank 1 no number above 0"), std::string::npos);
}

} // namespace
