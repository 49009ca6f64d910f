// What the judge asks of plans that keep parameters twice.
#include "runtime/judge/judge.h"
#include "runtime/plan/validate.h"
#include "test/unit/plan_builder.h"
#include "test/unit/run_fixtures.h"
#include <functional>
#include <gtest/gtest.h>

using namespace zero;
using namespace zero::plan;
using namespace zero::test;

namespace {

constexpr uint64_t kShard = 32;

// Two ranks. A step reads the compute copy, the gradient is reduced, and the update writes the masters' shard and its part of the compute
// copy, which is gathered. With `tier` other than DEVICE the compute copy rests there, is fetched, made new on the device and brought back.
struct MixedPlan : PlanBuilder {
  explicit MixedPlan(Tier tier) : PlanBuilder(2) {
    plan.mutable_optimizer()->set_kind(SGD);
    Bucket *bucket = plan.add_buckets();
    bucket->set_name("layer"), bucket->set_elements(2 * kShard), bucket->set_shard_elements(kShard), bucket->set_trainable(true);
    Ref master = floats("master", kShard), momentum = floats("momentum", kShard), hyper = hyperInput();
    Ref kept = tier == DEVICE ? bytes("copy", 4 * kShard) : bytesIn(addArena(tier, 64), "copy", 4 * kShard), copy = kept;
    addTensor(*bucket, StateTensor::MASTER, master, SHARD), addTensor(*bucket, StateTensor::MOMENTUM, momentum, SHARD);
    addTensor(*bucket, StateTensor::COMPUTE, kept, WHOLE, BF16);
    if (tier != DEVICE) {
      copy = transient("fetched", 4 * kShard, FETCHED, WHOLE, BF16);
      step("fetch", {kept}, {copy}, TO_DEVICE).mutable_copy();
    }
    Ref gradient = transient("gradient", 8 * kShard, GRADIENT, WHOLE, F32), staging = floats("staging", 2 * kShard, false);
    Ref own = part(gradient, 0, 4 * kShard, 4 * kShard), ownCopy = part(copy, 0, 2 * kShard, 2 * kShard);
    launch("backward", {copy}, {gradient});
    if (tier != DEVICE) waitFor(program().mutable_steps()->at(1), TO_DEVICE, 1);
    Step &reduce = step("reduce", {gradient}, {own, staging}, REDUCE);
    collect(reduce, Collective::REDUCE_SCATTER, kShard), waitFor(reduce, COMPUTE, 1);
    plan.add_kernels()->set_symbol("sgd");
    Step &update = step("update", {master, own, momentum, hyper}, {master, momentum, ownCopy});
    update.mutable_update()->set_dtype(F32), update.mutable_update()->set_part(SHARD);
    update.mutable_update()->mutable_launch()->set_kernel(1), update.mutable_update()->mutable_launch()->set_extent(1);
    waitFor(update, REDUCE, 1);
    Step &gather = step("gather", {ownCopy}, {copy}, GATHER);
    collect(gather, Collective::ALL_GATHER, kShard, BF16), waitFor(gather, COMPUTE, 2);
    if (tier != DEVICE) {
      Step &back = step("back", {copy}, {kept}, TO_HOST);
      back.mutable_copy(), waitFor(back, GATHER, 1);
    }
    for (Buffer &buffer : *plan.mutable_buffers())
      if (buffer.program() == 0) buffer.set_last(static_cast<uint32_t>(program().steps_size() - 1));
    boundKernels();
  }

  void launch(const char *name, const std::vector<Ref> &reads, const std::vector<Ref> &writes) {
    plan.add_kernels()->set_symbol(name);
    step(name, reads, writes).mutable_launch()->set_extent(1);
  }

  Ref transient(const char *name, uint64_t size, BufferKind kind, Part part, DType type) {
    Ref ref = bytes(name, size, false);
    Buffer *buffer = plan.mutable_buffers(static_cast<int>(ref.buffer()));
    buffer->set_kind(kind), buffer->set_bucket(0), buffer->set_part(part), buffer->set_dtype(type);
    return ref;
  }
};

std::string judged(const Plan &plan) {
  validate(plan, 0);
  std::string all;
  for (const std::string &sentence : judge::checkPlan(plan)) all += sentence + "\n";
  return all;
}

Step &named(Plan &plan, const std::string &name) {
  for (Step &step : *plan.mutable_programs(0)->mutable_steps())
    if (step.name() == name) return step;
  throw std::logic_error(name);
}

void expectSentence(Tier tier, const std::string &sentence, const std::function<void(Plan &)> &change) {
  Plan plan = MixedPlan(tier).plan;
  change(plan);
  std::string found = judged(plan);
  EXPECT_NE(found.find(sentence), std::string::npos) << "expected: " << sentence << "\nfound: " << found;
}

} // namespace

TEST(ComputeCopy, AGoodPlanHolds) {
  for (Tier tier : {DEVICE, HOST}) EXPECT_EQ(judged(MixedPlan(tier).plan), "");
}

TEST(ComputeCopy, ReachesTheOtherRanks) {
  expectSentence(DEVICE, "changes of the compute copy of bucket 'layer' never reaches the other ranks", [](Plan &plan) {
    plan.mutable_programs(0)->mutable_steps()->RemoveLast();
    for (Buffer &buffer : *plan.mutable_buffers())
      if (buffer.program() == 0) buffer.set_last(2);
  });
  expectSentence(HOST, "brings back the compute copy of bucket 'layer' without what the other ranks have changed of it", [](Plan &plan) {
    Step &gather = named(plan, "gather");
    *gather.mutable_reads(0) = gather.writes(0); // a copy in place
    gather.mutable_copy(), gather.set_lane(COMPUTE), gather.clear_waits();
    Step &back = named(plan, "back");
    back.clear_waits(), waitFor(back, COMPUTE, 3);
  });
}

TEST(ComputeCopy, IsWrittenByItsUpdateAlone) {
  auto elsewhere = [](Plan &plan) { // the update leaves it as it is
    Ref *written = named(plan, "update").mutable_writes(2);
    *written = part(named(plan, "backward").writes(0), 0, 2 * kShard);
  };
  expectSentence(DEVICE, "step 2 'update' does not write the compute copy of bucket 'layer'", elsewhere);
  expectSentence(DEVICE, "writes the compute copy of bucket 'layer' but is not its update", [](Plan &plan) {
    plan.mutable_programs(0)->set_role(Program::EVAL);
    plan.mutable_buckets(0)->set_trainable(false);
    plan.mutable_buckets(0)->mutable_tensors()->DeleteSubrange(0, 2);
    plan.mutable_programs(0)->mutable_steps()->DeleteSubrange(1, 3);
    Step &backward = named(plan, "backward");
    *backward.mutable_writes(0) = backward.reads(0);
    plan.mutable_kernels()->RemoveLast(), plan.mutable_kernels(0)->set_arg_bytes(1, 4 * kShard);
    for (Buffer &buffer : *plan.mutable_buffers())
      if (buffer.program() == 0) buffer.set_last(0);
  });
}

TEST(ComputeCopy, IsNotReadBehindItsUpdate) {
  expectSentence(DEVICE, "step 3 'gather' reads the compute copy of bucket 'layer' after its update, step 2 'update'", [](Plan &plan) {
    Step &gather = named(plan, "gather"); // becomes a copy of it
    *gather.mutable_reads(0) = plan.buckets(0).tensors(2).ref();
    *gather.mutable_writes(0) = part(named(plan, "backward").writes(0), 0, 4 * kShard);
    gather.mutable_copy(), gather.set_lane(COMPUTE), gather.clear_waits();
  });
}

TEST(ComputeCopy, ReturnsToItsTier) {
  expectSentence(HOST, "changes of the compute copy of bucket 'layer' never returns to host", [](Plan &plan) {
    plan.mutable_programs(0)->mutable_steps()->RemoveLast();
    for (Buffer &buffer : *plan.mutable_buffers())
      if (buffer.program() == 0) buffer.set_last(4);
  });
  expectSentence(HOST, "makes the compute copy of bucket 'layer' in buffer 'staging', where something else belongs", [](Plan &plan) {
    Step &reduce = named(plan, "reduce");
    *named(plan, "update").mutable_writes(2) = part(reduce.writes(1), 0, 2 * kShard);
  });
}
