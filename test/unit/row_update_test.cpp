// Rows of a table that are set apart and updated last: the same bits as without, wherever the table rests; and what the validator and the
// judge ask of plans that do so.
#include "runtime/checkpoint/export.h"
#include "runtime/comm/local/local.h"
#include "runtime/data/tensor_file.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/engine/engine.h"
#include "runtime/footprint/footprint.h"
#include "runtime/inspect/inspect.h"
#include "test/unit/row_plan.h"
#include <cmath>

using namespace zero;
using namespace zero::plan;
using namespace zero::runtime;
using namespace zero::test;

namespace {

constexpr auto kTiers = {DEVICE, HOST, DISK};
const std::vector<int64_t> kIndices{3, 83, 3, 124, 0, 83, 83}; // row 83 lies in both tiles

void write(Engine &engine, const Ref &ref, float scale) {
  std::vector<float> values(ref.bytes() / sizeof(float));
  for (size_t i = 0; i < values.size(); ++i) values[i] = scale * std::sin(static_cast<float>(i + ref.buffer()));
  static_cast<State &>(engine).write(ref, 0, std::as_bytes(std::span(values)));
}

// The table and its momentum after three steps, and the gradients of the first; `group` has hyper-parameters of its own.
std::vector<float> trained(RowPlan made, uint32_t group) {
  Folder folder;
  PlanFile file = made.made();
  validate(file.plan, 0);
  auto factory = connectLocal();
  auto device = makeCpuDevice({.threads = 2, .diskPaths = {folder / "disk"}});
  Engine engine(file, *device, *factory, {.groups = {group}});
  for (int t : {0, 1})
    for (const Ref &ref : {made.masters[size_t(t)], made.momenta[size_t(t)], made.logits[size_t(t)]}) write(engine, ref, 1);
  write(engine, made.lookups, 0.3f);
  static_cast<State &>(engine).write(made.indices, 0, std::as_bytes(std::span(kIndices)));
  std::array<float, 16> hyper{};
  hyper[LR] = 0.1f, hyper[WEIGHT_DECAY] = 0.01f, hyper[MOMENTUM] = 0.9f;
  std::vector<HostTransfer> writes{group ? engine.hyperTransfer(group, std::as_writable_bytes(std::span(hyper)))
                                         : engine.transfer(made.hyper, std::as_writable_bytes(std::span(hyper)))};
  auto communicator = factory->create();
  Rank rank{file.plan, 0, engine, *communicator};
  GradientFile gradients(rank, folder / "g.safetensors", 1);
  UpdateHook hook = [&](const Step &step) { gradients.add(step); };
  for (int step = 0; step < 3; ++step) {
    engine.submit({.program = 0, .writes = writes, .beforeUpdate = step == 0 ? &hook : nullptr});
    engine.finish();
  }
  gradients.finish();
  std::vector<float> all(RowPlan::kTable);
  TensorFile read = openTensorFile(folder / "g.safetensors");
  std::memcpy(all.data(), read.find("table")->bytes.data(), all.size() * sizeof(float));
  for (size_t t : {size_t(0), size_t(1)})
    for (const Ref &ref : {made.masters[t], made.momenta[t]}) {
      std::vector<float> values(RowPlan::kElements[t]);
      static_cast<State &>(engine).read(ref, 0, std::as_writable_bytes(std::span(values)));
      all.insert(all.end(), values.begin(), values.end());
    }
  return all;
}

TEST(RowUpdate, GivesTheBitsOfOneUpdate) {
  for (uint32_t group : {0u, 1u}) {
    std::vector<float> expected = trained(RowPlan(false, DEVICE), group);
    for (Tier tier : kTiers) EXPECT_TRUE(trained(RowPlan(true, tier), group) == expected) << Tier_Name(tier) << " " << group;
  }
}

TEST(RowUpdate, AGoodPlanHolds) {
  for (Tier tier : kTiers)
    for (bool apart : {false, true}) EXPECT_EQ(judged(RowPlan(apart, tier)), "") << Tier_Name(tier);
}

// What breaks a plan of rows, and the sentence that the validator has for it.
struct Damage {
  std::function<void(RowPlan &)> apply;
  const char *sentence;
};

TEST(RowUpdate, WrongPlansAreRefused) {
  auto apart = [](RowPlan &p) { return p.named("update 0").mutable_update()->mutable_apart(); };
  auto rows = [](RowPlan &p) { return p.named("update rows").mutable_update_rows(); };
  auto write = [](RowPlan &p) { return p.named("rows of master 0").mutable_write_rows(); };
  const std::vector<Damage> cases{
      {[](RowPlan &p) {
         p.plan.mutable_target()->set_kind(Target::CUDA), p.plan.mutable_target()->add_features("sm_90");
         for (Kernel &kernel : *p.plan.mutable_kernels())
           kernel.mutable_gpu()->set_blocks(static_cast<uint32_t>(kernel.extent())), kernel.mutable_gpu()->set_threads(32);
       },
       "is about rows of a table, which plans for cuda cannot have"},
      {[&](RowPlan &p) { apart(p)->set_index_type(F32); }, "has indices of type F32; expected I64 or I32"},
      {[&](RowPlan &p) { apart(p)->set_row_bytes(0); }, "has rows of 0 bytes; expected a multiple of 4"},
      {[&](RowPlan &p) { apart(p)->set_row_bytes(94); }, "has rows of 94 bytes; expected a multiple of 4"},
      {[&](RowPlan &p) { apart(p)->set_row_bytes(92); },
       "the rows of step 3 'update 0' of program 'step' has 2016 bytes where the step reaches"},
      {[&](RowPlan &p) { apart(p)->set_row_bytes(uint64_t(1) << 62); }, "has a size that overflows"},
      {[&](RowPlan &p) { apart(p)->set_begin(uint64_t(1) << 47); },
       "the window of step 3 'update 0' of program 'step' has a size that overflows"},
      {[](RowPlan &p) { p.named("update 0").mutable_reads(4)->set_bytes(0); }, "has 0 bytes of indices; expected some, in units of 8"},
      {[](RowPlan &p) { p.named("update 0").mutable_reads(4)->set_bytes(44); }, "has 44 bytes of indices; expected some, in units of 8"},
      {[](RowPlan &p) { p.named("update 0").mutable_writes(2)->set_offset(4), p.named("update 0").mutable_writes(2)->set_bytes(2012); },
       "what step 3 'update 0' of program 'step' sets apart is written to another place than it is read from"},
      {[](RowPlan &p) { *p.named("update 0").mutable_writes(3) = p.masters[0]; },
       "the gradient of step 3 'update 0' of program 'step' is written to another place than it is read from"},
      {[](RowPlan &p) { p.named("update 0").mutable_writes()->RemoveLast(); }, "5 arguments; it takes 6"},
      {[](RowPlan &p) { p.named("update 0").mutable_reads()->DeleteSubrange(2, 2), p.boundKernels(); },
       "reads 4 and writes 4 references; one of its kind reads at least 5 and writes 3"},
      {[](RowPlan &p) { *p.named("update 0").mutable_reads(5) = *p.named("update 0").mutable_writes(2) = p.momenta[0]; },
       "the rows of step 3 'update 0' of program 'step' has 8192 bytes where the step reaches 2016"},
      {[](RowPlan &p) {
         for (Ref *ref : {p.named("update 0").mutable_reads(5), p.named("update 0").mutable_writes(2)}) *ref = part(p.momenta[0], 0, 2016);
       },
       "has its rows in the buffer of the table; expected one of their own"},
      {[](RowPlan &p) { p.named("update 0").set_lane(UPDATE_HOST); }, "sets rows apart, which updates on the device alone can do"},
      {[&](RowPlan &p) { rows(p)->set_row_elements(0); }, "updates rows of no elements"},
      {[&](RowPlan &p) { rows(p)->set_row_elements(23); }, "tensor 0 of step 6 'update rows' of program 'step' has 672 bytes where"},
      {[&](RowPlan &p) { rows(p)->clear_tiles(); }, "updates rows of no bucket"},
      {[&](RowPlan &p) { rows(p)->mutable_tiles(0)->set_bucket(2); }, "updates rows of bucket 2, but the plan has 2"},
      {[&](RowPlan &p) { rows(p)->mutable_tiles(1)->set_begin(1999); },
       "updates rows of bucket 'tile 1', which does not hold the elements of one parameter from 1999 on and nothing else"},
      {[&](RowPlan &p) { rows(p)->mutable_tiles()->SwapElements(0, 1); }, "has tiles of several tables, or not in the order of one"},
      {[](RowPlan &p) { p.named("update rows").mutable_writes()->RemoveLast(), p.boundKernels(); },
       "reads 5 and writes 1 references; one of its kind reads at least 4 and writes 2"},
      {[&](RowPlan &p) { write(p)->set_row_bytes(95); }, "has rows of 95 bytes; expected a multiple of 2"},
      {[&](RowPlan &p) { write(p)->set_row_bytes(48); },
       "the rows of step 7 'rows of master 0' of program 'step' has 672 bytes where the step reaches 336"},
      {[](RowPlan &p) { p.named("rows of master 0").mutable_reads()->RemoveLast(); },
       "reads 2 and writes 1 references; one of its kind reads 3"},
      {[](RowPlan &p) { p.named("rows of master 0").mutable_writes(0)->set_bytes(4096); }, "the window of step 7"},
      {[](RowPlan &p) {
         for (Ref *ref : {p.named("rows of master 0").mutable_reads(2), p.named("rows of master 0").mutable_writes(0)}) ref->set_bytes(0);
       },
       "has an empty window of its table"},
      {[](RowPlan &p) { p.named("rows of master 0").set_lane(DISK_WRITE); },
       "writes rows in the device's memory on lane DISK_WRITE; expected one that computes"},
  };
  for (const Damage &damage : cases) {
    RowPlan made(true, DEVICE);
    damage.apply(made);
    std::string found = refusalOf([&] { validate(made.plan, 0); });
    EXPECT_NE(found.find(damage.sentence), std::string::npos) << "expected: " << damage.sentence << "\nfound: " << found;
  }
}

TEST(RowUpdate, RowsGoOverTheLinksOfTheirTiers) {
  auto refusal = [](Tier tier, const std::function<void(Step &)> &change) {
    RowPlan made(true, tier);
    change(made.named("rows of master 1"));
    return refusalOf([&] { validate(made.plan, 0); });
  };
  EXPECT_EQ(refusal(HOST, [](Step &step) { step.set_lane(UPDATE_WRITE); }), "");
  EXPECT_NE(refusal(HOST, [](Step &step) { step.set_lane(DISK_WRITE); })
                .find("writes rows to host memory on lane DISK_WRITE; expected lane TO_HOST, or UPDATE_WRITE"),
            std::string::npos);
  EXPECT_NE(refusal(DISK, [](Step &step) { step.set_lane(COMPUTE), step.clear_waits(); })
                .find("writes rows to disk on lane COMPUTE; expected lane DISK_WRITE, or UPDATE_WRITE"),
            std::string::npos);
  EXPECT_NE(refusal(DISK, [](Step &step) { step.mutable_reads(2)->set_offset(64), step.mutable_writes(0)->set_offset(64); })
                .find("does not begin at a multiple of 4096 bytes, or its last block ends beyond its buffer"),
            std::string::npos);
}

void expectSentence(std::initializer_list<Tier> tiers, const std::string &sentence, const std::function<void(RowPlan &)> &change) {
  for (Tier tier : tiers) test::expectSentence<RowPlan>(RowPlan(true, tier), sentence, change);
}

TEST(RowUpdate, WhatIsSetApartIsUpdated) {
  expectSentence(kTiers, "the rows of bucket 'tile 1' that step",
                 [](RowPlan &p) { p.named("update rows").mutable_update_rows()->mutable_tiles()->RemoveLast(); });
  expectSentence({DEVICE}, "updates rows of bucket 'tile 1', of which none were set apart",
                 [](RowPlan &p) { p.moveBefore("update rows", "update 1"); });
  expectSentence({DEVICE}, "'update 1' updates bucket 'tile 1' after step", [](RowPlan &p) {
    p.moveBefore("update rows", "update 1");
    p.program().mutable_steps()->Add()->CopyFrom(p.named("update 1"));
    p.named("update 1").set_name("again"), p.program().mutable_steps()->rbegin()->set_name("update 1");
    p.moveBefore("again", "update rows"), p.liveThroughout();
  });
  expectSentence(kTiers, "sets apart rows of its table from byte 7996 on where bucket 'tile 1' has those from 8000 on",
                 [](RowPlan &p) { p.named("update 1").mutable_update()->mutable_apart()->set_begin(7996); });
  expectSentence(kTiers, "'update rows' does not update the rows that step",
                 [](RowPlan &p) { p.named("update rows").mutable_reads()->SwapElements(0, 2); });
  auto leaves = [](const char *before) { // the rows, and are updated where they come to
    return [before](RowPlan &p) {
      Ref rows = p.named("no rows yet").writes(0), there = p.floats("there", rows.bytes() / 4, false);
      p.step("leave", {rows}, {there}).mutable_copy();
      for (int read : {0, 2}) p.named("update rows").mutable_reads(read)->set_buffer(there.buffer());
      p.moveBefore("leave", before), p.liveThroughout();
    };
  };
  RowPlan whole(true, DEVICE);
  leaves("add")(whole);
  EXPECT_EQ(judged(whole), "");
  expectSentence({DEVICE}, "'update rows' does not update the rows that step", leaves("update 1")); // which sets some apart after that
  expectSentence(kTiers, "sets no rows of bucket 'tile 0' apart as its other updates do, or alone does so", [](RowPlan &p) {
    Step &update = p.named("update 0"), *rest = p.program().add_steps();
    *rest = update, rest->set_name("rest"), rest->clear_waits();
    rest->mutable_update()->set_begin_elements(2048 - 1024), rest->mutable_update()->clear_apart();
    rest->mutable_reads()->DeleteSubrange(4, 2), rest->mutable_writes()->DeleteSubrange(2, 2);
    for (Ref &ref : *rest->mutable_reads())
      if (ref.bytes() == 8192) ref = part(ref, 4096, 4096);
    for (Ref &ref : *rest->mutable_writes()) ref = part(ref, 4096, 4096);
    rest->mutable_update()->mutable_launch()->set_kernel(static_cast<uint32_t>(p.plan.kernels_size()));
    rest->mutable_update()->mutable_launch()->set_extent(1024);
    p.plan.add_kernels()->set_symbol("rest"), p.boundKernels();
    p.moveBefore("rest", "add"), p.liveThroughout();
  });
}

TEST(RowUpdate, WhatIsMadeOfRowsComesToItsPlace) {
  expectSentence(kTiers, "makes of rows, bytes 0 to 4000 of the master copy of bucket 'tile 1' never come to their place",
                 [](RowPlan &p) { p.remove("rows of master 1"); });
  expectSentence(kTiers, "makes of rows, bytes 4096 to 8000 of the momentum of bucket 'tile 0' never come to their place", [](RowPlan &p) {
    for (Ref *ref : {p.named("rows of momentum 0").mutable_reads(2), p.named("rows of momentum 0").mutable_writes(0)}) ref->set_bytes(4096);
  });
  expectSentence(kTiers, "writes rows to bytes 0 to 8192 of the momentum of bucket 'tile 0', which go on from 0 and end at 8000",
                 [](RowPlan &p) {
                   for (Ref *ref : {p.named("rows of momentum 0").mutable_reads(2), p.named("rows of momentum 0").mutable_writes(0)})
                     ref->set_bytes(8192);
                 });
  expectSentence(kTiers, "'rows of momentum 1' writes to the momentum of bucket 'tile 1' what step",
                 [](RowPlan &p) { *p.named("rows of momentum 1").mutable_reads(0) = p.named("rows of master 1").reads(0); });
  expectSentence(kTiers, "'rows of master 1' writes other rows of the master copy of bucket 'tile 1' than step",
                 [](RowPlan &p) { p.named("rows of master 1").mutable_write_rows()->set_begin(0); });
  expectSentence({DEVICE}, "'rows of master 1' writes rows where no tensor rests whose rows were updated",
                 [](RowPlan &p) { p.moveBefore("rows of master 1", "update rows"); });
  expectSentence({DEVICE}, "'rows of master 1' writes rows where no tensor rests whose rows were updated", [](RowPlan &p) {
    for (Ref *ref : {p.named("rows of master 1").mutable_reads(2), p.named("rows of master 1").mutable_writes(0)}) *ref = p.logits[1];
  });
  for (Tier tier : {HOST, DISK}) // what the update made of all rows returns after the looked-up ones
    expectSentence({tier}, "writes over the rows that step", [](RowPlan &p) {
      auto last =
          std::find_if(p.program().steps().rbegin(), p.program().steps().rend(), [](const Step &step) { return step.name() == "return"; });
      Step again = *last;
      again.set_name("late"), *p.program().add_steps() = again, p.liveThroughout();
    });
}

TEST(RowUpdate, ZeroInspectHasWordsForIt) {
  RowPlan made(true, DISK);
  std::string text = inspect::scheduleText(made.plan, false);
  for (const char *words :
       {"update tile 1 by sgd_1, 7 rows set apart", "update 7 rows of tile 0 to tile 1 by sgd_rows", "write 7 rows of 96 bytes"})
    EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
  Step &write = made.named("rows of master 0");
  EXPECT_EQ(inspect::workOf(made.plan, write).touched, 7u * 2 * 2 * 4096); // two blocks of each row, read and written
  EXPECT_EQ(inspect::workOf(RowPlan(true, HOST).plan, write).touched, 7u * 2 * 96);
  EXPECT_EQ(inspect::workOf(made.plan, made.named("update 0")).touched, 2u * 2016);
  auto rows = [](const RowPlan &plan) {
    for (const FootprintPart &part : besideArenas(plan.file(), 1))
      if (part.key == "rows") return part.bytes;
    return uint64_t(0);
  };
  EXPECT_EQ(rows(RowPlan(true, HOST)), 0u);
  EXPECT_EQ(rows(RowPlan(false, DISK)), 0u);
  EXPECT_GT(rows(made), uint64_t(1) << 20);
}

} // namespace
