// What the judge and the validator ask of updates that the host's processors make.
#include "test/unit/run_fixtures.h"
#include "test/unit/update_plan.h"
#include <functional>
#include <gtest/gtest.h>

using namespace zero;
using namespace zero::plan;
using namespace zero::test;

namespace {

constexpr uint64_t kShard = 32;

// Two ranks. Master and momentum rest on the host, in shards; a step on the device reads the compute copy, which is whole there. The
// gradient is reduced and comes down, the host updates, and what that makes of the compute copy, or the master where both are F32, goes up
// and is gathered.
struct HostPlan : UpdatePlan {
  explicit HostPlan(DType type) : UpdatePlan(2) {
    plan.mutable_optimizer()->set_kind(SGD);
    Bucket *bucket = plan.add_buckets();
    bucket->set_name("layer"), bucket->set_elements(2 * kShard), bucket->set_shard_elements(kShard), bucket->set_trainable(true);
    uint64_t element = type == F32 ? 4 : 2;
    int host = addArena(HOST, 64), room = addArena(HOST, 64);
    plan.mutable_arenas(room)->set_persistent(false);
    Ref master = bytesIn(host, "master", 4 * kShard), momentum = bytesIn(host, "momentum", 4 * kShard), hyper = hyperInput();
    Ref copy = bytes("copy", 2 * kShard * element);
    addTensor(*bucket, StateTensor::MASTER, master, SHARD), addTensor(*bucket, StateTensor::MOMENTUM, momentum, SHARD);
    addTensor(*bucket, StateTensor::COMPUTE, copy, WHOLE, type);
    Ref gradient = holds(bytes("gradient", 8 * kShard, false), GRADIENT, WHOLE, F32), staging = floats("staging", 2 * kShard, false);
    Ref own = part(gradient, 0, 4 * kShard, 4 * kShard), ownCopy = part(copy, 0, kShard * element, kShard * element);
    Ref there = holds(bytesIn(room, "gradient on host", 4 * kShard), GRADIENT, SHARD, F32), numbers = bytesIn(room, "hyper on host", 64);
    Step &keep = step("keep", {hyper}, {numbers}, TO_HOST);
    keep.mutable_copy(), waitFor(keep, COMPUTE, 0); // of the host's inputs
    plan.add_kernels()->set_symbol("backward");
    step("backward", {copy}, {gradient}).mutable_launch()->set_extent(1);
    Step &reduce = step("reduce", {gradient}, {own, staging}, REDUCE);
    collect(reduce, Collective::REDUCE_SCATTER, kShard), waitFor(reduce, COMPUTE, 1);
    Step &down = step("down", {own}, {there}, TO_HOST);
    down.mutable_copy(), waitFor(down, REDUCE, 1);
    plan.add_kernels()->set_symbol("sgd");
    Ref made = type == F32 ? master : holds(bytesIn(room, "made", kShard * element), FETCHED, SHARD, type);
    Step &update = step("update", {master, there, momentum, numbers}, {master, momentum}, UPDATE_HOST);
    if (type != F32) *update.add_writes() = made;
    update.mutable_update()->set_dtype(F32), update.mutable_update()->set_part(SHARD);
    update.mutable_update()->mutable_launch()->set_kernel(1), update.mutable_update()->mutable_launch()->set_extent(1);
    waitFor(update, TO_HOST, 2);
    Step &bring = step("bring", {made}, {ownCopy}, TO_DEVICE);
    bring.mutable_copy(), waitFor(bring, UPDATE_HOST, 1);
    Step &gather = step("gather", {ownCopy}, {copy}, GATHER);
    collect(gather, Collective::ALL_GATHER, kShard, type), waitFor(gather, TO_DEVICE, 1);
    liveThroughout();
    boundKernels();
  }
};

// A micro-step between the first and the last of two ranks: the sum of gradients rests on the host, in shards; a gradient is reduced, comes
// down, and the host adds it there.
struct SumPlan : UpdatePlan {
  SumPlan() : UpdatePlan(2) {
    plan.mutable_optimizer()->set_kind(SGD);
    Bucket *bucket = plan.add_buckets();
    bucket->set_name("layer"), bucket->set_elements(2 * kShard), bucket->set_shard_elements(kShard), bucket->set_trainable(true);
    int host = addArena(HOST, 64), room = addArena(HOST, 64);
    plan.mutable_arenas(room)->set_persistent(false);
    Ref master = bytes("master", 8 * kShard), momentum = bytesIn(host, "momentum", 4 * kShard), sum = bytesIn(host, "sum", 4 * kShard);
    addTensor(*bucket, StateTensor::MASTER, master, WHOLE), addTensor(*bucket, StateTensor::MOMENTUM, momentum, SHARD);
    addTensor(*bucket, StateTensor::GRADIENT, sum, SHARD);
    Ref gradient = holds(bytes("gradient", 8 * kShard, false), GRADIENT, WHOLE, F32), staging = floats("staging", 2 * kShard, false);
    Ref own = part(gradient, 0, 4 * kShard, 4 * kShard), there = holds(bytesIn(room, "gradient on host", 4 * kShard), GRADIENT, SHARD, F32);
    plan.add_kernels()->set_symbol("backward"), plan.add_kernels()->set_symbol("add");
    step("backward", {master}, {gradient}).mutable_launch()->set_extent(1);
    Step &reduce = step("reduce", {gradient}, {own, staging}, REDUCE);
    collect(reduce, Collective::REDUCE_SCATTER, kShard), waitFor(reduce, COMPUTE, 1);
    Step &down = step("down", {own}, {there}, TO_HOST);
    down.mutable_copy(), waitFor(down, REDUCE, 1);
    Step &add = step("add", {sum, there}, {sum}, UPDATE_HOST);
    add.mutable_launch()->set_kernel(1), add.mutable_launch()->set_extent(1), waitFor(add, TO_HOST, 1);
    program().set_role(Program::MIDDLE);
    liveThroughout();
    boundKernels();
  }
};

void expectInSum(const std::string &sentence, const std::function<void(SumPlan &)> &change) {
  test::expectSentence<SumPlan>(SumPlan(), sentence, change);
}

void expectSentence(DType type, const std::string &sentence, const std::function<void(HostPlan &)> &change) {
  test::expectSentence<HostPlan>(HostPlan(type), sentence, change);
}

void expectRefusal(const std::string &sentence, const std::function<void(HostPlan &)> &change) {
  HostPlan made(BF16);
  change(made);
  EXPECT_NE(refusalOf([&] { validate(made.plan, 0); }).find(sentence), std::string::npos)
      << "expected: " << sentence << "\nfound: " << refusalOf([&] { validate(made.plan, 0); });
}

} // namespace

TEST(HostUpdate, AGoodPlanHolds) {
  for (DType type : {F32, BF16}) EXPECT_EQ(judged(HostPlan(type)), "");
}

TEST(HostUpdate, WaitsForItsGradient) {
  for (DType type : {F32, BF16}) {
    expectSentence(type, "step 4 'update'", [](HostPlan &made) { // it is under way
      made.named("update").mutable_waits(0)->set_tick(1);
    });
    expectSentence(type, "updates bucket 'layer' with a gradient that has not come to the host",
                   [](HostPlan &made) { made.moveBefore("update", "down"); });
    expectSentence(type, "changes the gradient of bucket 'layer' after step 2 'down', which took it to the host",
                   [](HostPlan &made) { made.moveBefore("down", "reduce"); });
  }
}

TEST(HostUpdate, ReachesTheDeviceAndTheOtherRanks) {
  for (DType type : {F32, BF16}) {
    expectSentence(type, "step 5 'bring'", [](HostPlan &made) { made.named("bring").clear_waits(); });
    expectSentence(type, "but not what an update on the host has made", [](HostPlan &made) { made.moveBefore("bring", "update"); });
    expectSentence(type, "changes of the compute copy of bucket 'layer' never reaches the device",
                   [](HostPlan &made) { made.remove("bring"), made.named("gather").clear_waits(); });
    expectSentence(type, "but not what an update on the host has made", [&](HostPlan &made) { // every rank's to the place of the first
      made.ref("bring", 0).clear_strides();
    });
    expectSentence(type, "never reaches the other ranks",
                   [](HostPlan &made) { made.program().mutable_steps()->RemoveLast(), made.liveThroughout(); });
    expectSentence(type, "brings the compute copy of bucket 'layer' when the other ranks' parts have already joined it",
                   [](HostPlan &made) { made.moveBefore("gather", "bring"); });
  }
}

TEST(HostUpdate, TakesTheGradientOfItsElements) {
  expectSentence(BF16, "step 3 'down' takes to the host the gradient of bucket 'layer' from element 0 on where that from 32 on belongs",
                 [](HostPlan &made) { made.named("down").mutable_reads(0)->clear_strides(); }); // every rank's: that of the first
  expectSentence(F32, "step 4 'update' updates bucket 'layer' with the gradient of other elements", [](HostPlan &made) {
    Ref *gradient = made.named("update").mutable_reads(1);
    *gradient = part(*gradient, 2 * kShard, 2 * kShard); // the half after
    made.boundKernels();
  });
}

TEST(HostUpdate, WorksOnStateWhereItRests) {
  expectSentence(BF16, "updates the momentum of bucket 'layer' in buffer 'gradient on host', where it does not rest", [](HostPlan &made) {
    *made.named("update").mutable_reads(2) = made.named("update").reads(1);
    made.ref("update", 1) = made.named("update").reads(1);
  });
}

TEST(HostUpdate, ReachesHostMemoryAlone) {
  expectRefusal("runs on lane UPDATE_HOST, but buffer 'hyper' lies in the device's memory; the host's processors reach host memory alone",
                [](HostPlan &made) { *made.named("update").mutable_reads(3) = made.named("keep").reads(0); });
  expectRefusal("runs on lane UPDATE_HOST, which is for updates that the host's processors make",
                [](HostPlan &made) { made.named("down").set_lane(UPDATE_HOST); });
  expectRefusal("step 4 'update' of program 'step' uses buffer 'master', which lies in host memory",
                [](HostPlan &made) { made.named("update").set_lane(UPDATE); });
}

TEST(HostUpdate, AddsGradientsToTheirSum) {
  EXPECT_EQ(judged(SumPlan()), "");
  expectInSum("step 3 'add'", [](SumPlan &made) { made.named("add").clear_waits(); });
  expectInSum("the gradient accumulator of bucket 'layer' is not brought up to date in host", [](SumPlan &made) { made.remove("add"); });
  expectInSum("adds to the gradient accumulator of bucket 'layer' what is no gradient of it that has come to the host",
              [](SumPlan &made) { made.moveBefore("add", "down"); });
  expectInSum("adds to the gradient accumulator of bucket 'layer' the gradient of other elements", [](SumPlan &made) {
    for (Ref *ref : {made.named("add").mutable_reads(0), made.named("add").mutable_writes(0)}) *ref = part(*ref, 2 * kShard, 2 * kShard);
    Ref *gradient = made.named("add").mutable_reads(1);
    *gradient = part(*gradient, 0, 2 * kShard);
    made.boundKernels();
  });
  expectInSum("in another place than it reads", [](SumPlan &made) { *made.named("add").mutable_reads(0) = made.named("add").reads(1); });
  expectInSum("runs on the host, but neither updates nor adds to a sum of gradients that rests there",
              [](SumPlan &made) { *made.named("add").mutable_writes(0) = made.plan.buckets(0).tensors(1).ref(); });
}

TEST(HostUpdate, LaunchesKernelsForTheHost) {
  auto forCuda = [](HostPlan &made) {
    made.plan.mutable_target()->set_kind(Target::CUDA), made.plan.mutable_target()->add_features("sm_90");
    for (int kernel : {0, 1}) made.plan.mutable_kernels(kernel)->mutable_gpu()->set_blocks(1);
    for (int kernel : {0, 1}) made.plan.mutable_kernels(kernel)->mutable_gpu()->set_threads(32);
  };
  expectRefusal("runs on lane UPDATE_HOST and launches kernel 'sgd', which has a grid: it is made for the GPU", forCuda);
  expectRefusal("kernel 1 'sgd' is for the device and comes after one for the host's processors; expected those last",
                [&](HostPlan &made) { forCuda(made), made.plan.mutable_kernels(0)->clear_gpu(); });
  HostPlan good(BF16);
  forCuda(good), good.plan.mutable_kernels(1)->clear_gpu();
  EXPECT_EQ(judged(good), "");
}
