// What the judge and the validator ask of updates that the host's processors make of state that comes to host memory for them.
#include "test/unit/run_fixtures.h"
#include "test/unit/update_plan.h"

using namespace zero;
using namespace zero::plan;
using namespace zero::test;

namespace {

constexpr uint64_t kShard = 1024, kBytes = 4 * kShard; // elements, and their bytes in f32: a block of the disk

// Where the master rests, and what steps on the device read.
enum Master {
  kApart,    // in shards on disk; a compute copy of bf16, whole on the device
  kOnDevice, // whole on the device, where they read it
  kOnDisk    // whole on disk, from where they fetch it
};

// Two ranks. The gradient is reduced and comes down. The momentum's shard comes from disk to host memory, as does the master from where it
// rests, and returns after the update. What programs read goes up and is gathered.
struct DiskPlan : UpdatePlan {
  explicit DiskPlan(Master rests) : UpdatePlan(2) {
    plan.mutable_optimizer()->set_kind(SGD);
    for (int arena : {0, 1}) plan.mutable_arenas(arena)->set_alignment(4096);
    Bucket *bucket = plan.add_buckets();
    bucket->set_name("layer"), bucket->set_elements(2 * kShard), bucket->set_shard_elements(kShard), bucket->set_trainable(true);
    int disk = addArena(DISK, 4096);
    room = addArena(HOST, 4096);
    plan.mutable_arenas(room)->set_persistent(false);
    bool device = rests == kOnDevice, apart = rests == kApart;
    Ref master = bytesIn(device ? 0 : disk, "master", apart ? kBytes : 2 * kBytes), momentum = bytesIn(disk, "momentum", kBytes);
    addTensor(*bucket, StateTensor::MASTER, master, apart ? SHARD : WHOLE), addTensor(*bucket, StateTensor::MOMENTUM, momentum, SHARD);
    Ref read = master, hyper = hyperInput(), numbers = bytesIn(room, "hyper on host", 64);
    if (apart) addTensor(*bucket, StateTensor::COMPUTE, read = bytes("copy", kBytes), WHOLE, BF16);
    waitFor(copies("keep", hyper, numbers, TO_HOST), COMPUTE, 0); // of the host's inputs
    if (rests == kOnDisk) {
      read = holds(bytes("gathered", 2 * kBytes, false), GATHERED, WHOLE, F32);
      copies("fetch", master, read, DISK_READ);
    }
    Ref gradient = holds(bytes("gradient", 2 * kBytes, false), GRADIENT, WHOLE, F32), own = part(gradient, 0, kBytes, kBytes);
    Ref there = onHost("gradient there", kBytes, GRADIENT, SHARD);
    plan.add_kernels()->set_symbol("backward");
    Step &backward = step("backward", {read}, {gradient});
    backward.mutable_launch()->set_extent(1);
    if (rests == kOnDisk) waitFor(backward, DISK_READ, 1);
    Step &reduce = step("reduce", {gradient}, {own, floats("staging", 2 * kShard, false)}, REDUCE);
    collect(reduce, Collective::REDUCE_SCATTER, kShard), waitFor(reduce, COMPUTE, 1);
    waitFor(copies("down", own, there, TO_HOST), REDUCE, 1);

    Ref momentumThere = onHost("momentum there", kBytes, FETCHED, SHARD), masterThere, result, ownMaster;
    copies("fetch momentum", momentum, momentumThere, DISK_READ);
    if (device) {
      result = ownMaster = masterThere = onHost("master there", kBytes, FETCHED, SHARD);
      copies("fetch master", part(master, 0, kBytes, kBytes), masterThere, TO_HOST);
    } else {
      masterThere = onHost("master there", apart ? kBytes : 2 * kBytes, FETCHED, apart ? SHARD : WHOLE);
      result = ownMaster = apart ? masterThere : part(masterThere, 0, kBytes, kBytes);
      copies("fetch master", master, masterThere, DISK_READ);
    }
    if (apart) result = onHost("copy there", kBytes / 2, FETCHED, SHARD, BF16);
    plan.add_kernels()->set_symbol("sgd");
    Step &update = step("update", {ownMaster, there, momentumThere, numbers}, {ownMaster, momentumThere}, UPDATE_HOST);
    if (apart) *update.add_writes() = result;
    update.mutable_update()->set_dtype(F32), update.mutable_update()->set_part(SHARD);
    update.mutable_update()->mutable_launch()->set_kernel(1), update.mutable_update()->mutable_launch()->set_extent(1);
    waitFor(update, TO_HOST, ticks(TO_HOST)), waitFor(update, DISK_READ, ticks(DISK_READ));
    waitFor(copies("return momentum", momentumThere, momentum, DISK_WRITE), UPDATE_HOST, 1);
    if (apart) waitFor(copies("return master", masterThere, master, DISK_WRITE), UPDATE_HOST, 1);

    Ref joined = rests == kOnDisk ? holds(bytes("joined", 2 * kBytes, false), FETCHED, WHOLE, F32) : read;
    uint64_t bytes = apart ? kBytes / 2 : kBytes;
    waitFor(copies("bring", result, part(joined, 0, bytes, bytes), TO_DEVICE), UPDATE_HOST, 1);
    Step &gather = step("gather", {part(joined, 0, bytes, bytes)}, {joined}, GATHER);
    collect(gather, Collective::ALL_GATHER, kShard, apart ? BF16 : F32), waitFor(gather, TO_DEVICE, 1);
    if (rests == kOnDisk) waitFor(copies("return master", joined, master, DISK_WRITE), GATHER, 1);
    liveThroughout();
    boundKernels();
  }

  Ref onHost(const std::string &name, uint64_t bytes, BufferKind kind, Part part, DType type = F32) {
    return holds(bytesIn(room, name, bytes), kind, part, type);
  }
  Step &copies(const std::string &name, const Ref &from, const Ref &to, Lane lane) {
    Step &copy = step(name, {from}, {to}, lane);
    copy.mutable_copy();
    return copy;
  }
  uint64_t ticks(Lane lane) {
    return static_cast<uint64_t>(std::ranges::count_if(program().steps(), [&](const Step &step) { return step.lane() == lane; }));
  }

  int room = 0;
};

void expectSentence(std::initializer_list<Master> where, const std::string &sentence, const std::function<void(DiskPlan &)> &change) {
  for (Master rests : where) test::expectSentence<DiskPlan>(DiskPlan(rests), sentence, change);
}
constexpr auto kAll = {kApart, kOnDevice, kOnDisk};

} // namespace

TEST(DiskUpdate, AGoodPlanHolds) {
  for (Master rests : kAll) EXPECT_EQ(judged(DiskPlan(rests)), "");
}

TEST(DiskUpdate, WaitsForItsState) {
  expectSentence(kAll, "'update'", [](DiskPlan &made) { made.named("update").mutable_waits()->RemoveLast(); }); // it is under way
  expectSentence(kAll, "updates the momentum of bucket 'layer' in buffer 'momentum there', to which it was not fetched",
                 [](DiskPlan &made) { made.moveBefore("update", "fetch momentum"); });
  expectSentence(kAll, "updates the master copy of bucket 'layer' in buffer 'master there', to which it was not fetched",
                 [](DiskPlan &made) { made.moveBefore("update", "fetch master"); });
}

TEST(DiskUpdate, ReturnsWhatItChanges) {
  expectSentence(kAll, "changes of the momentum of bucket 'layer' never returns to disk",
                 [](DiskPlan &made) { made.remove("return momentum"); });
  expectSentence({kApart, kOnDisk}, "changes of the master copy of bucket 'layer' never returns to disk",
                 [](DiskPlan &made) { made.remove("return master"); });
  expectSentence({kOnDevice}, "changes of the master copy of bucket 'layer' never returns to the device",
                 [](DiskPlan &made) { made.remove("bring"), made.named("gather").clear_waits(); });
  expectSentence({kApart}, "changes of the compute copy of bucket 'layer' never reaches the device",
                 [](DiskPlan &made) { made.remove("bring"), made.named("gather").clear_waits(); });
  expectSentence(kAll, "'return momentum' brings back the momentum of bucket 'layer', which nothing has changed",
                 [](DiskPlan &made) { made.moveBefore("return momentum", "update"); });
  expectSentence({kApart},
                 "'return momentum' brings back the momentum of bucket 'layer' from buffer 'master there', which does not hold it",
                 [](DiskPlan &made) { *made.named("return momentum").mutable_reads(0) = made.named("return master").reads(0); });
}

TEST(DiskUpdate, ReachesTheOtherRanks) {
  expectSentence({kOnDevice}, "never reaches the other ranks", [](DiskPlan &made) { made.remove("gather"); });
  expectSentence({kOnDisk}, "'return master' brings back the master copy of bucket 'layer' without what the other ranks have changed of it",
                 [](DiskPlan &made) { made.remove("gather"), made.named("return master").clear_waits(); });
  expectSentence({kOnDevice}, "brings the master copy of bucket 'layer' when the other ranks' parts have already joined it",
                 [](DiskPlan &made) { made.moveBefore("gather", "bring"); });
  expectSentence(
      {kOnDisk}, "brings back the master copy of bucket 'layer' from buffer 'master there', which does not hold it", [](DiskPlan &made) {
        *made.named("return master").mutable_reads(0) = made.named("fetch master").writes(0); // from the host, where this rank's is
      });
}

// Every rank's part, not that of the first.
TEST(DiskUpdate, TakesEachRanksElements) {
  expectSentence({kOnDevice}, "'fetch master' brings the master copy of bucket 'layer' from element 0 on where that from 1024 on belongs",
                 [](DiskPlan &made) { made.named("fetch master").mutable_reads(0)->clear_strides(); });
  expectSentence({kOnDevice}, "'bring' brings back the master copy of bucket 'layer' from element 1024 on where that from 0 on belongs",
                 [](DiskPlan &made) { made.named("bring").mutable_writes(0)->clear_strides(); });
  expectSentence(
      {kOnDisk},
      "'bring' brings what step 7 'update' made of the master copy of bucket 'layer' to buffer 'joined', where something else belongs",
      [](DiskPlan &made) { made.named("bring").mutable_writes(0)->clear_strides(); });
  expectSentence({kOnDisk}, "updates other elements of the master copy of bucket 'layer' than its gradient has", [](DiskPlan &made) {
    made.named("update").mutable_reads(0)->clear_strides(), made.named("update").mutable_writes(0)->clear_strides();
  });
}

TEST(DiskUpdate, CopiesOnLanesOfDisks) {
  DiskPlan good(kApart);
  for (const char *name : {"fetch momentum", "fetch master"}) good.named(name).set_lane(UPDATE_READ);
  for (const char *name : {"return momentum", "return master"}) good.named(name).set_lane(UPDATE_WRITE);
  good.named("update").mutable_waits(1)->set_lane(UPDATE_READ);
  EXPECT_EQ(judged(good), "");
  for (Lane lane : {TO_HOST, UPDATE_WRITE}) {
    good.named("fetch momentum").set_lane(lane);
    EXPECT_NE(refusalOf([&] { validate(good.plan, 0); }).find("copies from disk to host memory on lane " + Lane_Name(lane)),
              std::string::npos);
  }
}

// What the disk wants after the last element is filled where the copy is made, and may not be more than that.
TEST(DiskUpdate, FillsTheRestOfABlock) {
  DiskPlan made(kApart);
  Ref room = made.named("fetch momentum").writes(0);
  made.fill("padding", part(room, 0, 64), 0, UPDATE_HOST);
  made.moveBefore("padding", "update"), made.liveThroughout();
  EXPECT_NE(judged(made).find("'padding' changes the momentum of bucket 'layer', which is for its update to do"), std::string::npos);
  made.named("padding").set_lane(COMPUTE);
  EXPECT_NE(refusalOf([&] { validate(made.plan, 0); }).find("uses buffer 'momentum there', which lies in host memory"), std::string::npos);
}
