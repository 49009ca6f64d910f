// The plan file and its validator: what was written comes back, and every kind of damage gets its own sentence.
#include "runtime/base/error.h"
#include "runtime/plan/attention.h"
#include "runtime/plan/epilogue.h"
#include "runtime/plan/layout.h"
#include "runtime/plan/validate.h"
#include "test/unit/plan_builder.h"
#include "test/unit/reseal.h"
#include "test/unit/run_fixtures.h"
#include <algorithm>
#include <cmath>
#include <google/protobuf/stubs/logging.h>
#include <sys/stat.h>
#include <vector>

using namespace zero;
using namespace zero::plan;
using zero::test::addTensor;
using zero::test::collect;
using zero::test::Folder;
using zero::test::part;
using zero::test::PlanBuilder;
using zero::test::refusalOf;
using zero::test::resealed;

namespace {

void expectError(const std::function<void()> &action, const std::string &part) {
  std::string text = refusalOf(action);
  EXPECT_NE(text.find(part), std::string::npos) << "expected: " << part << "\nfound: " << text;
}

// A plan with one step of every kind, all of them right.
PlanBuilder goodPlan(uint32_t world = 4) {
  PlanBuilder b(world);
  Ref a = b.floats("a", 64 * 32), w = b.floats("w", 32 * 16), c = b.floats("c", 64 * 16, false);
  MatMul *product = b.step("product", {a, w}, {c}).mutable_matmul();
  product->set_dtype(F32), product->set_c_dtype(F32);
  product->set_m(64), product->set_n(16), product->set_k(32), product->set_batch(1);
  product->set_lda(32), product->set_ldb(16), product->set_ldc(16);

  Ref q = b.floats("q", 2 * 4 * 8 * 16), k = b.floats("k", 2 * 2 * 8 * 16), lse = b.floats("lse", 2 * 4 * 8),
      mask = b.floats("mask", 8 * 8), bias = b.floats("bias", 4 * 8 * 8);
  Ref out = b.floats("out", 2 * 4 * 8 * 16), dq = b.floats("dq", 2 * 4 * 8 * 16), dk = b.floats("dk", 2 * 2 * 8 * 16),
      dv = b.floats("dv", 2 * 2 * 8 * 16), slopes = b.floats("slopes", 4 * 8 * 8);
  Attention *attention = b.step("attention", {q, k, k, mask, bias}, {out, lse}).mutable_attention();
  attention->set_batch(2), attention->set_heads(4), attention->set_kv_heads(2), attention->set_q_len(8), attention->set_kv_len(8);
  attention->set_dim(16), attention->set_scale(0.25f), attention->set_dtype(F32);
  attention->set_bias_parts(1);
  for (uint64_t extent : {1, 1, 8, 8}) attention->add_mask_shape(extent);
  *b.step("attention gradient", {q, k, k, mask, bias, out, lse, out}, {dq, dk, dv, slopes}).mutable_attention_grad() =
      b.program().steps(1).attention();

  Ref whole = b.floats("bucket", 16 * world), shard = part(whole, 0, 64, 64), staging = b.floats("staging", 16 * world);
  collect(b.step("collective", {whole}, b.staged(shard, staging), REDUCE), Collective::REDUCE_SCATTER, 16);
  collect(b.step("collective", {shard}, {whole}, GATHER), Collective::ALL_GATHER, 16);
  b.step("copy", {part(a, 0, 128)}, {part(a, 128, 128)}).mutable_copy();
  b.fill("fill", c, 1.0f);

  Kernel *kernel = b.plan.add_kernels();
  kernel->set_symbol("sgd_0");
  kernel->set_args(3), kernel->set_extent(16);
  for (int i = 0; i < 3; ++i) kernel->add_arg_bytes(64);
  Bucket *bucket = b.plan.add_buckets();
  bucket->set_name("layer");
  bucket->set_elements(16 * world), bucket->set_shard_elements(16);
  bucket->set_trainable(true), b.plan.mutable_optimizer()->set_kind(SGD);
  addTensor(*bucket, StateTensor::MASTER, whole, WHOLE);
  addTensor(*bucket, StateTensor::MOMENTUM, b.floats("momentum", 16), SHARD);
  Update *update = b.step("update", {shard, shard}, {shard}).mutable_update();
  update->set_dtype(F32), update->set_part(SHARD);
  update->mutable_launch()->set_extent(16);
  Parameter *parameter = b.plan.add_parameters();
  parameter->set_name("weight");
  parameter->add_shape(2), parameter->add_shape(8), parameter->add_pieces();
  parameter->mutable_source()->set_file("model.onnx");
  parameter->mutable_source()->set_bytes(64), parameter->mutable_source()->set_dtype(F32);
  Alias *alias = parameter->add_aliases();
  alias->set_name("weight.T"), alias->set_transposed(true);

  Input *input = b.plan.add_inputs();
  input->set_name("tokens");
  input->set_dtype(I64);
  input->add_shape(1), input->add_shape(8);
  *input->mutable_ref() = b.bytes("tokens", 64);
  Constant *constant = b.plan.add_constants();
  *constant->mutable_ref() = mask;
  return b;
}

constexpr uint64_t kKernelBytes = 100, kConstantBytes = 256;

// Two pieces of the parameter side by side: columns 0 to 4, and 5 to 7.
void tiles(Plan &p) {
  p.mutable_parameters(0)->clear_pieces();
  test::addPiece(*p.mutable_parameters(0), 0, 0, {0, 0}, {2, 5});
  test::addPiece(*p.mutable_parameters(0), 0, 10, {0, 5}, {2, 3});
}

// The bucket keeps a compute copy, which its update writes after the momentum.
void mixed(Plan &p) {
  Ref copy = p.buckets(0).tensors(0).ref();
  copy.set_buffer(0), copy.set_bytes(copy.bytes() / 2);
  addTensor(*p.mutable_buckets(0), StateTensor::COMPUTE, copy, WHOLE, BF16);
  Step *update = p.mutable_programs(0)->mutable_steps(7);
  *update->add_writes() = update->writes(0); // instead of a momentum
  *update->add_writes() = part(copy, 0, 32, 32);
  p.mutable_kernels(0)->set_args(5), p.mutable_kernels(0)->add_arg_bytes(64), p.mutable_kernels(0)->add_arg_bytes(32);
}

// The same kernel as PTX.
void forCuda(Plan &p) {
  p.mutable_target()->set_kind(Target::CUDA);
  p.mutable_target()->add_features("sm_90");
  for (Kernel &kernel : *p.mutable_kernels()) kernel.mutable_gpu()->set_blocks(1), kernel.mutable_gpu()->set_threads(32);
}

TEST(Validate, AcceptsAGoodPlan) {
  for (uint32_t world : {1, 4}) EXPECT_EQ("", refusalOf([&] { validate(goodPlan(world).plan, kConstantBytes); }));
  Plan tiled = goodPlan().plan;
  tiles(tiled);
  EXPECT_EQ("", refusalOf([&] { validate(tiled, kConstantBytes); }));
  Plan cuda = goodPlan().plan;
  forCuda(cuda);
  EXPECT_EQ("", refusalOf([&] { validate(cuda, kConstantBytes); }));
  Plan narrow = goodPlan().plan;
  mixed(narrow);
  EXPECT_EQ("", refusalOf([&] { validate(narrow, kConstantBytes); }));
}

// Each case breaks one thing and names a part of the sentence it must cause.
struct Damage {
  std::function<void(Plan &)> apply;
  const char *sentence;
};

Step *stepOf(Plan &plan, int i) { return plan.mutable_programs(0)->mutable_steps(i); }
enum { kProduct, kAttention, kGradient, kReduce, kGather, kCopy, kFill, kUpdate };

Step *librarySum(Plan &plan) {
  Step *sum = stepOf(plan, kReduce);
  sum->mutable_writes()->RemoveLast(), sum->mutable_collective()->clear_slice();
  sum->mutable_collective()->set_order(Collective::LIBRARY);
  return sum;
}

// In a plan for cuda: the product with what it has beside A, B and C.
Plan epiloguePlan(MatMul::Epilogue epilogue) {
  PlanBuilder b = goodPlan();
  Ref bias = b.floats("bias", 16), aux = b.floats("aux", 64 * 32); // A fits there as well
  forCuda(b.plan);
  Step *product = stepOf(b.plan, kProduct);
  aux.set_bytes(product->writes(0).bytes());
  EpilogueForm form = formOf(epilogue);
  if (form.reads()) *product->add_reads() = form.readsBias ? bias : aux;
  if (form.writesAux) *product->add_writes() = aux;
  product->mutable_matmul()->set_epilogue(epilogue);
  return b.plan;
}

TEST(Validate, WhatEpiloguesReadAndWrite) {
  for (MatMul::Epilogue epilogue : {MatMul::NONE, MatMul::BIAS, MatMul::GELU, MatMul::GELU_GRADIENT})
    EXPECT_EQ("", refusalOf([&] { validate(epiloguePlan(epilogue), kConstantBytes); }));
  Plan both = epiloguePlan(MatMul::GELU_GRADIENT); // of u v^T, with v = gelu(u), dv is a product of u, and multiplied by the slope at u
  stepOf(both, kProduct)->mutable_reads(0)->set_buffer(stepOf(both, kProduct)->reads(2).buffer());
  EXPECT_EQ("", refusalOf([&] { validate(both, kConstantBytes); }));
  const std::vector<std::pair<MatMul::Epilogue, Damage>> cases{
      {MatMul::BIAS,
       {[](Plan &p) { stepOf(p, kProduct)->mutable_matmul()->set_accumulate(true); },
        "is a product and bias, which is for one that overwrites"}},
      {MatMul::BIAS,
       {[](Plan &p) { stepOf(p, kProduct)->mutable_reads()->RemoveLast(); }, "reads 2 and writes 1 references; one of its kind reads 3"}},
      {MatMul::BIAS,
       {[](Plan &p) { stepOf(p, kProduct)->mutable_reads(2)->set_bytes(32); },
        "the bias of step 0 'product' of program 'step' has 32 bytes"}},
      {MatMul::GELU,
       {[](Plan &p) { stepOf(p, kProduct)->mutable_writes(1)->set_bytes(64); }, "aux of step 0 'product' of program 'step' has 64 bytes"}},
      {MatMul::GELU,
       {[](Plan &p) { *stepOf(p, kProduct)->mutable_writes(1) = stepOf(p, kProduct)->writes(0); },
        "has aux in the buffer of another operand"}},
      {MatMul::GELU,
       {[](Plan &p) { stepOf(p, kProduct)->mutable_reads(0)->set_buffer(stepOf(p, kProduct)->writes(1).buffer()); },
        "has aux in the buffer of another operand"}},
      {MatMul::GELU,
       {[](Plan &p) { stepOf(p, kProduct)->mutable_writes(1)->set_offset(8); }, "has aux that does not begin at a multiple of 16 bytes"}},
      {MatMul::GELU_GRADIENT,
       {[](Plan &p) { *stepOf(p, kProduct)->mutable_reads(2) = stepOf(p, kProduct)->writes(0); },
        "has aux in the buffer of another operand"}},
      {MatMul::GELU_GRADIENT, {[](Plan &p) { stepOf(p, kProduct)->mutable_matmul()->set_n(15); }, "where the step reaches"}},
      {MatMul::GELU_GRADIENT,
       {[](Plan &p) { stepOf(p, kProduct)->mutable_matmul()->set_epilogue(MatMul::Epilogue(9)); },
        "is a product with the unknown epilogue 9"}},
  };
  for (const auto &[epilogue, damage] : cases) {
    Plan plan = epiloguePlan(epilogue);
    damage.apply(plan);
    expectError([&] { validate(plan, kConstantBytes); }, damage.sentence);
  }
}

// Four products of 16 rows, that belong to three groups: with a matrix of each to multiply with, or to be added to.
Plan groupedPlan(MatMul::Grouped grouped) {
  PlanBuilder b = goodPlan();
  bool summed = grouped == MatMul::GROUPED_C;
  Ref groups = b.floats("groups", 2 * 4), others = b.floats("others", summed ? 64 * 16 : 3 * 32 * 16),
      result = b.floats("result", summed ? 3 * 32 * 16 : 64 * 16, false);
  Step *step = stepOf(b.plan, kProduct);
  *step->mutable_reads(1) = others, *step->add_reads() = groups, *step->mutable_writes(0) = result;
  MatMul *product = step->mutable_matmul();
  product->set_m(summed ? 32 : 16), product->set_k(summed ? 16 : 32), product->set_trans_a(summed), product->set_batch(4);
  product->set_stride_a(16 * 32), product->set_stride_b(summed ? 16 * 16 : 32 * 16), product->set_stride_c(summed ? 32 * 16 : 16 * 16);
  product->set_grouped(grouped), product->set_groups(3), product->set_all_groups(5);
  return b.plan;
}

TEST(Validate, ProductsOfGroups) {
  auto product = [](Plan &p) { return stepOf(p, kProduct)->mutable_matmul(); };
  for (MatMul::Grouped grouped : {MatMul::GROUPED_B, MatMul::GROUPED_C}) {
    bool summed = grouped == MatMul::GROUPED_C;
    EXPECT_EQ("", refusalOf([&] { validate(groupedPlan(grouped), kConstantBytes); }));
    const std::vector<Damage> cases{
        {[&](Plan &p) { product(p)->set_groups(4); }, summed ? "C of step 0 'product'" : "B of step 0 'product'"},
        {[&](Plan &p) { product(p)->set_groups(0); }, "has 0 groups"},
        {[&](Plan &p) { product(p)->set_all_groups(2); }, "has 3 groups of 2"},
        {[&](Plan &p) { product(p)->set_groups(uint64_t(1) << 40), product(p)->set_all_groups(uint64_t(1) << 40); },
         "has 1099511627776 groups"},
        {[&](Plan &p) { product(p)->set_grouped(MatMul::Grouped(7)); }, "grouped in the unknown way 7"},
        {[&](Plan &p) { summed ? product(p)->set_stride_c(0) : product(p)->set_stride_b(0); },
         "the matrices of all groups in the same place"},
        {[&](Plan &p) { stepOf(p, kProduct)->mutable_reads(2)->set_bytes(24); },
         "the groups of step 0 'product' of program 'step' has 24 bytes"},
        {[&](Plan &p) { stepOf(p, kProduct)->mutable_reads()->RemoveLast(); }, "reads 2 and writes 1 references; one of its kind reads 3"},
        {[](Plan &p) { forCuda(p); }, "in a plan for cpu"},
    };
    for (const Damage &damage : cases) {
      Plan plan = groupedPlan(grouped);
      damage.apply(plan);
      expectError([&] { validate(plan, kConstantBytes); }, damage.sentence);
    }
  }
  Plan half = groupedPlan(MatMul::GROUPED_C);
  product(half)->set_dtype(BF16), product(half)->set_c_dtype(BF16);
  expectError([&] { validate(half, kConstantBytes); }, "sums the products of groups in BF16; expected F32");
}

// Copies between all tiers, each on the lane of its link.
PlanBuilder tieredPlan() {
  PlanBuilder b(4);
  b.plan.mutable_arenas(1)->set_alignment(4096);
  int host = b.addArena(HOST, 64), disk = b.addArena(DISK, 4096);
  Ref work = b.bytes("work", 16384, false), below = b.bytesIn(host, "below", 8192), far = b.bytesIn(disk, "far", 16384);
  b.step("from disk", {part(far, 0, 4096, 4096)}, {part(work, 0, 4096, 4096)}, DISK_READ).mutable_copy();
  b.step("to disk", {part(work, 4096, 4096)}, {part(far, 4096, 4096)}, DISK_WRITE).mutable_copy();
  b.step("disk to host", {part(far, 0, 8192)}, {below}, DISK_READ).mutable_copy();
  b.step("to device", {part(below, 64, 100)}, {part(work, 4, 100)}, TO_DEVICE).mutable_copy();
  b.step("to host", {part(work, 4, 100)}, {part(below, 64, 100)}, TO_HOST).mutable_copy();
  b.fill("fill", work, 1.0f);
  return b;
}

TEST(Validate, OnlyCopiesReachOtherTiersEachOnItsLane) {
  EXPECT_EQ("", refusalOf([&] { validate(tieredPlan().plan, 0); }));
  Plan filled = goodPlan().plan; // a shard of 64 bytes in a buffer of one block
  filled.mutable_arenas(1)->set_alignment(4096);
  filled.mutable_buffers(2)->set_bucket(0), filled.mutable_buffers(2)->set_part(SHARD), filled.mutable_buffers(2)->set_dtype(F32);
  EXPECT_EQ("", refusalOf([&] { validate(filled, kConstantBytes); }));
  enum { kFromDisk, kToDisk, kDiskToHost, kToDevice, kToHost, kFill };
  enum { kWork, kBelow, kFar }; // buffers
  auto step = [](Plan &p, int i) { return p.mutable_programs(0)->mutable_steps(i); };
  const std::vector<Damage> cases{
      {[](Plan &p) { p.mutable_arenas(3)->set_alignment(64); }, "a power of two from 4096 to 4096"},
      {[=](Plan &p) { step(p, kFromDisk)->set_lane(COMPUTE); },
       "step 0 'from disk' of program 'step' copies from disk to the device's memory on lane COMPUTE; expected lane DISK_READ"},
      {[=](Plan &p) { step(p, kToDisk)->set_lane(DISK_READ); },
       "copies from the device's memory to disk on lane DISK_READ; expected lane DISK_WRITE"},
      {[=](Plan &p) { step(p, kFromDisk)->set_lane(UPDATE); },
       "copies from disk to the device's memory on lane UPDATE; expected lane DISK_READ"},
      {[=](Plan &p) { step(p, kDiskToHost)->set_lane(TO_HOST); },
       "copies from disk to host memory on lane TO_HOST; expected lane DISK_READ"},
      {[=](Plan &p) { step(p, kToDevice)->set_lane(TO_HOST); },
       "copies from host memory to the device's memory on lane TO_HOST; expected lane TO_DEVICE"},
      {[=](Plan &p) { step(p, kToHost)->set_lane(COMPUTE); },
       "copies from the device's memory to host memory on lane COMPUTE; expected lane TO_HOST"},
      {[=](Plan &p) { step(p, kToDisk)->mutable_reads(0)->set_buffer(kFar); }, "copies from disk to disk; one side must be in memory"},
      {[=](Plan &p) { step(p, kToHost)->mutable_reads(0)->set_buffer(kBelow); }, "copies from host memory to host memory; one side"},
      {[=](Plan &p) { step(p, kToHost)->mutable_writes(0)->set_buffer(kWork); },
       "copies from the device's memory to the device's memory on lane TO_HOST"},
      {[=](Plan &p) { step(p, kFill)->set_lane(DISK_READ); },
       "step 5 'fill' of program 'step' runs on lane DISK_READ, which is for copies"},
      {[=](Plan &p) { step(p, kFill)->mutable_writes(0)->set_buffer(kFar); },
       "step 5 'fill' of program 'step' uses buffer 'far', which lies on disk; only copies reach there"},
      {[=](Plan &p) { *step(p, kFill)->mutable_writes(0) = step(p, kToHost)->writes(0); },
       "uses buffer 'below', which lies in host memory"},
      {[=](Plan &p) { step(p, kFromDisk)->mutable_reads(0)->set_offset(2048), step(p, kFromDisk)->mutable_reads(0)->clear_strides(); },
       "the source of step 0 'from disk' of program 'step' does not start at a multiple of 4096 bytes"},
      {[=](Plan &p) { step(p, kFromDisk)->mutable_writes(0)->set_strides(0, 2048); },
       "the destination of step 0 'from disk' of program 'step' does not start"},
      {[=](Plan &p) {
         p.mutable_arenas(1)->set_alignment(64), p.mutable_arenas(1)->set_bytes(16448), p.mutable_programs(0)->set_arena_bytes(1, 16448),
             p.mutable_buffers(kWork)->set_offset(64);
       },
       "the destination of step 0 'from disk' of program 'step' does not start"},
      {[=](Plan &p) {
         for (Ref *ref : {step(p, kToDisk)->mutable_reads(0), step(p, kToDisk)->mutable_writes(0)}) ref->set_bytes(4000);
       },
       "the source of step 1 'to disk' of program 'step' has 4000 bytes, not a multiple of 4096 bytes"},
      {[=](Plan &p) {
         Input *input = p.add_inputs();
         input->set_name("x"), input->set_dtype(I32), input->add_shape(1), *input->mutable_ref() = step(p, kToDisk)->writes(0),
                                                                           input->mutable_ref()->set_bytes(4);
       },
       "input 'x' uses buffer 'far', which lies on disk"},
      {[=](Plan &p) {
         *p.mutable_programs(0)->mutable_loss() = step(p, kToDisk)->writes(0), p.mutable_programs(0)->mutable_loss()->set_bytes(4);
       },
       "the loss of program 'step' uses buffer 'far', which lies on disk"},
  };
  for (const Damage &damage : cases) {
    Plan plan = tieredPlan().plan;
    damage.apply(plan);
    expectError([&] { validate(plan, 0); }, damage.sentence);
  }
}

// A plan whose one program holds both micro-steps: the second has samples of its own.
Plan verticalPlan() {
  Plan plan = goodPlan().plan;
  plan.set_vertical(true), plan.set_accumulate(2);
  *plan.add_inputs() = plan.inputs(0);
  plan.mutable_inputs(1)->set_micro_step(1);
  return plan;
}

TEST(Validate, EachMicroStepOfAVerticalPlanHasItsInputs) {
  EXPECT_NO_THROW(validate(verticalPlan(), kConstantBytes));
  const std::vector<Damage> cases{
      {[](Plan &p) { p.set_vertical(false); }, "input 'tokens' is of micro-step 1, but the plan's programs hold one each"},
      {[](Plan &p) { p.set_accumulate(3); }, "input 'tokens' is there for 2 of 3 micro-steps"},
      {[](Plan &p) { p.mutable_inputs(1)->set_micro_step(2); }, "input 'tokens' of micro-step 2: the plan has 2 micro-steps"},
      {[](Plan &p) { p.mutable_inputs(1)->set_name("others"); }, "input 'others' of micro-step 1 has no like in the first micro-step"},
      {[](Plan &p) { p.mutable_inputs(1)->set_limit(5); },
       "input 'tokens' of micro-step 1 has another type or shape than that of the first"},
      {[](Plan &p) { p.mutable_inputs(1)->set_classes(5); },
       "input 'tokens' of micro-step 1 has another type or shape than that of the first"},
      {[](Plan &p) { p.mutable_inputs(1)->set_ignored(0); },
       "input 'tokens' of micro-step 1 has another type or shape than that of the first"},
      {[](Plan &p) { *p.add_inputs() = p.inputs(1); }, "input 'tokens' of micro-step 1 occurs twice"},
      {[](Plan &p) { p.mutable_inputs()->RemoveLast(); }, "input 'tokens' is there for 1 of 2 micro-steps"},
      {[](Plan &p) { p.mutable_programs(0)->set_role(Program::LAST); },
       "holds one of several micro-steps, but the plan's order of them is vertical"},
      {[](Plan &p) { *p.mutable_programs(0)->mutable_loss() = p.inputs(0).ref(), p.mutable_programs(0)->mutable_loss()->set_bytes(4); },
       "the loss of program 'step'"},
  };
  for (const Damage &damage : cases) {
    Plan plan = verticalPlan();
    damage.apply(plan);
    expectError([&] { validate(plan, kConstantBytes); }, damage.sentence);
  }
}

// Of a few positions each: the keys that a query sees are counted one by one.
TEST(Attention, PairsThatAreSeen) {
  Attention a;
  for (int queries : {1, 4, 7})
    for (int keys : {1, 4, 9})
      for (bool causal : {false, true}) {
        a.set_q_len(uint64_t(queries)), a.set_kv_len(uint64_t(keys)), a.set_causal(causal), a.clear_band();
        auto expectPairs = [&](int first, int last) {
          uint64_t pairs = 0;
          for (int i = 0; i < queries; ++i)
            for (int j = 0; j < keys; ++j) pairs += j >= i + first && j <= i + last && (!causal || j <= i + keys - queries);
          EXPECT_EQ(seenPairs(a), pairs) << queries << " queries, " << keys << " keys, " << first << " to " << last << " causal " << causal;
        };
        expectPairs(-queries, keys);
        for (int first = -queries; first < keys; ++first)
          for (int last = first; last < keys + 2; ++last) {
            a.mutable_band()->set_first(first), a.mutable_band()->set_last(last);
            expectPairs(first, last);
          }
      }
}

TEST(Validate, RefusesEveryKindOfDamage) {
  const std::vector<Damage> cases{
      {[](Plan &p) { p.set_format(99); }, "newer"},
      {[](Plan &p) { p.set_world(0); }, "0 ranks"},
      {[](Plan &p) { p.set_accumulate(0); }, "accumulates"},
      {[](Plan &p) { p.set_stage(4); }, "stage 4"},
      {[](Plan &p) { p.mutable_target()->set_kind(Target::Kind(9)); }, "unknown target"},
      {[](Plan &p) { p.mutable_arenas(0)->set_bytes(~0ull); }, "more than any machine"},
      {[](Plan &p) { p.mutable_arenas(0)->set_tier(Tier(7)); }, "unknown tier"},
      {[](Plan &p) { p.mutable_arenas(0)->set_name(std::string(5000, 'x')); }, "text of 5000"},
      {[](Plan &p) { p.mutable_buffers(0)->set_arena(2); }, "buffer 0 'a' names arena 2"},
      {[](Plan &p) { p.mutable_buffers(0)->set_offset(1); },
       "buffer 0 'a' starts at byte 1 of arena 'state', which is not a multiple of 64"},
      {[](Plan &p) { p.mutable_arenas(0)->set_alignment(4096); }, "of arena 'state', which is not a multiple of 4096"},
      {[](Plan &p) { p.mutable_arenas(0)->clear_alignment(); }, "arena 0 'state' aligns buffers to 0 bytes"},
      {[](Plan &p) { p.mutable_arenas(0)->set_alignment(96); }, "a power of two from 64 to 4096"},
      {[](Plan &p) { p.mutable_arenas(0)->set_alignment(32); }, "a power of two from 64 to 4096"},
      {[](Plan &p) { p.mutable_arenas(0)->set_alignment(1u << 31); }, "a power of two from 64 to 4096"},
      {[](Plan &p) { p.mutable_arenas(0)->set_tier(DISK); }, "a power of two from 4096 to 4096"},
      {[](Plan &p) { p.mutable_buffers(0)->set_bytes(1 << 30); }, "outside the"},
      {[](Plan &p) { p.mutable_buffers(1)->set_offset(~0ull - 63); }, "outside the"},
      {[](Plan &p) { p.mutable_buffers(2)->set_program(-1); }, "transient"},
      {[](Plan &p) { p.mutable_buffers(2)->set_program(-2); }, "belongs to program -2"},
      {[](Plan &p) { p.mutable_buffers(0)->set_program(0); }, "persistent arena"},
      {[](Plan &p) { p.mutable_buffers(2)->set_last(100); }, "which has 8 steps"},
      {[](Plan &p) { p.mutable_programs(0)->set_arena_bytes(1, 64); }, "outside the 64 bytes of arena 'work' of program 'step'"},
      {[](Plan &p) { p.mutable_programs(0)->set_arena_bytes(1, 1 << 30); }, "needs 1073741824 bytes of arena 'work'"},
      {[](Plan &p) { p.mutable_programs(0)->clear_arena_bytes(); }, "height of 0 arenas"},
      {[](Plan &p) { stepOf(p, kProduct)->mutable_reads(0)->set_buffer(99); }, "A of step 0 'product' of program 'step' names buffer 99"},
      {[](Plan &p) { stepOf(p, kProduct)->mutable_reads(0)->set_offset(64); }, "reaches byte"},
      {[](Plan &p) { stepOf(p, kProduct)->mutable_reads(0)->set_offset(~0ull); }, "overflows"},
      {[](Plan &p) { stepOf(p, kProduct)->mutable_reads(0)->add_strides(4); }, "on the last rank"},
      {[](Plan &p) { stepOf(p, kProduct)->mutable_reads(0)->add_strides(1ull << 63); }, "overflows"},
      {[](Plan &p) {
         for (int i = 0; i < 2; ++i) stepOf(p, kProduct)->mutable_reads(0)->add_strides(0);
       },
       "has strides along 2 axes, but the plan has 1"},
      {[](Plan &p) { p.clear_axes(); }, "the plan is for 4 ranks, but names no axis"},
      {[](Plan &p) { p.mutable_axes(0)->set_size(3); }, "the plan is for 4 ranks, but its axes 'data' (3) have 3"},
      {[](Plan &p) { p.mutable_axes(0)->set_size(0); }, "axis 'data' has 0 coordinates"},
      {[](Plan &p) { *p.add_axes() = p.axes(0); }, "axis 'data' occurs twice"},
      {[](Plan &p) { p.add_axes()->set_size(1); }, "an axis has no name"},
      {[](Plan &p) { p.set_model("model.onnx\n"); }, "the model has a text with a control character"},
      {[](Plan &p) { stepOf(p, kProduct)->set_name("\x1b[8m"); }, "has a text with a control character"},
      {[](Plan &p) {
         for (int i = 0; i < 8; ++i) p.add_axes()->set_name("axis" + std::to_string(i)), p.mutable_axes(i + 1)->set_size(1);
       },
       "the plan has 9 axes; expected at most 8"},
      {[](Plan &p) { p.mutable_buckets(0)->add_axes(1); },
       "bucket 0 'layer' runs along axis 1; expected ascending indices of the plan's 1 axes"},
      {[](Plan &p) { stepOf(p, kGather)->mutable_collective()->add_axes(7); }, "runs along axis 7"},
      {[](Plan &p) { stepOf(p, kAttention)->mutable_attention()->set_softcap(-1); }, "caps its scores at -1"},
      {[](Plan &p) {
         stepOf(p, kAttention)->mutable_attention()->clear_mask_shape();
         stepOf(p, kAttention)->mutable_reads()->DeleteSubrange(3, 1);
         stepOf(p, kAttention)->mutable_attention()->set_beyond(true);
       },
       "(beyond), but no mask that hides keys"},
      {[](Plan &p) { stepOf(p, kAttention)->mutable_attention()->mutable_band()->set_first(1); },
       "'attention' of program 'step' has queries that see keys from 1 to 0 after their own position"},
      {[](Plan &p) {
         stepOf(p, kGradient)->mutable_attention_grad()->mutable_band()->set_first(INT64_MIN),
             stepOf(p, kGradient)->mutable_attention_grad()->mutable_band()->set_last(-8);
       },
       "to -8 after their own position, of 8 and 8 positions; expected some of them"},
      {[](Plan &p) {
         auto *band = stepOf(p, kGradient)->mutable_attention_grad()->mutable_band();
         band->set_first(8), band->set_last(INT64_MAX);
       },
       "see keys from 8 to 9223372036854775807 after their own position"},
      {[](Plan &p) { stepOf(p, kProduct)->mutable_matmul()->set_m(65); }, "where the step reaches"},
      {[](Plan &p) { stepOf(p, kProduct)->mutable_matmul()->set_m(3); }, "where the step reaches"},
      {[](Plan &p) { stepOf(p, kProduct)->mutable_matmul()->set_k(33); }, "leading dimension"},
      {[](Plan &p) { stepOf(p, kProduct)->mutable_matmul()->set_k(0); }, "empty product"},
      {[](Plan &p) { stepOf(p, kProduct)->mutable_matmul()->set_m(1ull << 62); }, "overflows"},
      {[](Plan &p) { stepOf(p, kProduct)->mutable_matmul()->set_batch(2); }, "stride_c is 0"},
      {[](Plan &p) { stepOf(p, kProduct)->mutable_matmul()->set_trans_b(true); }, "leading dimension"},
      {[](Plan &p) { stepOf(p, kProduct)->mutable_matmul()->set_dtype(I64); }, "I64"},
      {[](Plan &p) { stepOf(p, kProduct)->mutable_matmul()->set_dtype(I32); }, "elements of type I32; expected F32, BF16 or F16"},
      {[](Plan &p) { stepOf(p, kProduct)->mutable_matmul()->set_dtype(BF16); }, "A of step 0 'product' of program 'step' has 8192 bytes"},
      {[](Plan &p) { stepOf(p, kProduct)->mutable_matmul()->set_c_dtype(BF16); }, "of type BF16 from F32; expected F32"},
      {[](Plan &p) { stepOf(p, kProduct)->mutable_matmul()->set_epilogue(MatMul::BIAS); }, "in a plan for cuda"},
      {[](Plan &p) { stepOf(p, kProduct)->mutable_matmul()->set_tf32(true); },
       "multiplies F32 in TF32, which is for F32 in a plan for cuda"},
      {[](Plan &p) { stepOf(p, kProduct)->mutable_matmul()->clear_c_dtype(); }, "of type DTYPE_UNSPECIFIED from F32"},
      {[](Plan &p) { stepOf(p, kAttention)->mutable_attention()->clear_dtype(); }, "attends to elements of type DTYPE_UNSPECIFIED"},
      {[](Plan &p) { stepOf(p, kAttention)->mutable_attention()->set_dtype(BF16); }, "Q of step 1"},
      {[](Plan &p) { stepOf(p, kAttention)->mutable_attention()->set_heads(3); }, "not a multiple"},
      {[](Plan &p) { stepOf(p, kAttention)->mutable_attention()->set_kv_len(9); }, "where the step reaches"},
      {[](Plan &p) { stepOf(p, kAttention)->mutable_attention()->set_dim(0); }, "empty dimension"},
      {[](Plan &p) { stepOf(p, kAttention)->mutable_attention()->set_mask_shape(2, 4); }, "mask whose dimension 2 is 4"},
      {[](Plan &p) { stepOf(p, kAttention)->mutable_attention()->add_mask_shape(1); }, "mask of 5 dimensions"},
      {[](Plan &p) { stepOf(p, kGradient)->mutable_writes(0)->set_bytes(64); }, "dQ of step 2"},
      {[](Plan &p) { stepOf(p, kAttention)->mutable_attention()->clear_bias_parts(); }, "one of its kind reads 4 and writes 2"},
      {[](Plan &p) { stepOf(p, kAttention)->mutable_reads(4)->set_bytes(64); }, "the bias of step 1"},
      {[](Plan &p) { stepOf(p, kGradient)->mutable_attention_grad()->clear_bias_parts(); }, "one of its kind reads 7 and writes 3"},
      {[](Plan &p) { stepOf(p, kGradient)->mutable_attention_grad()->set_bias_parts(2); }, "the bias's gradient of step 2"},
      {[](Plan &p) { stepOf(p, kGradient)->mutable_attention_grad()->set_bias_parts(3); },
       "in 3 parts of 2 samples; expected as many samples in each"},
      {[](Plan &p) { stepOf(p, kReduce)->mutable_collective()->set_count(17); }, "where the step reaches"},
      {[](Plan &p) { stepOf(p, kReduce)->mutable_collective()->set_count(15); }, "where the step reaches"},
      {[](Plan &p) { stepOf(p, kGather)->mutable_collective()->set_count(15); }, "where the step reaches"},
      {[](Plan &p) { stepOf(p, kReduce)->mutable_collective()->set_dtype(I32); }, "sums elements of type I32"},
      {[](Plan &p) { stepOf(p, kReduce)->mutable_collective()->set_dtype(F16); }, "sums elements of type F16; expected F32 or BF16"},
      {[](Plan &p) { stepOf(p, kReduce)->mutable_collective()->set_dtype(BF16); }, "where the step reaches 128"},
      {[](Plan &p) {
         Step *sum = stepOf(p, kReduce); // its shard lies among what is reduced, where there is room for half of it
         sum->mutable_collective()->set_dtype(BF16), sum->mutable_reads(0)->set_bytes(128), sum->mutable_writes(1)->set_bytes(128);
       },
       "puts sums in f32 among what it reads of type BF16"},
      {[](Plan &p) { *stepOf(p, kProduct)->mutable_writes(0) = part(stepOf(p, kProduct)->reads(0), 0, 64 * 16 * 4); },
       "has C in bytes of A"},
      {[](Plan &p) { *stepOf(p, kAttention)->mutable_writes(0) = stepOf(p, kAttention)->reads(0); },
       "has a result in bytes of what it reads"},
      {[](Plan &p) { *stepOf(p, kGradient)->mutable_writes(2) = stepOf(p, kGradient)->writes(1); }, "has a result in bytes of another"},
      {[](Plan &p) { stepOf(p, kCopy)->mutable_writes(0)->set_offset(64); }, "has its destination in bytes of its source"},
      {[](Plan &p) { *stepOf(p, kReduce)->mutable_writes(1) = stepOf(p, kReduce)->reads(0); },
       "has its staging room in bytes of what it reads"},
      {[](Plan &p) { stepOf(p, kGather)->mutable_reads(0)->set_strides(0, 0); }, "gathers from a place among what rank 1 gets from others"},
      {[](Plan &p) { stepOf(p, kReduce)->mutable_writes(0)->set_strides(0, 0); },
       "puts its sums among what rank 1 sends to others; expected its own part of it"},
      {[](Plan &p) { stepOf(p, kReduce)->mutable_writes(0)->set_offset(64), stepOf(p, kReduce)->mutable_writes(0)->clear_strides(); },
       "puts its sums among what rank 0 sends to others"},
      {[](Plan &p) { stepOf(p, kReduce)->mutable_collective()->clear_order(); },
       "sums over ranks in the order ORDER_UNSPECIFIED; expected RANK or LIBRARY"},
      {[](Plan &p) { stepOf(p, kReduce)->mutable_collective()->set_order(Collective::Order(7)); },
       "in the order 7; expected RANK or LIBRARY"},
      {[](Plan &p) { stepOf(p, kReduce)->mutable_collective()->clear_slice(); },
       "goes in slices of 0 elements, which do not cover the 16 that it sums"},
      {[](Plan &p) { stepOf(p, kReduce)->mutable_collective()->set_slice(17); }, "goes in slices of 17 elements"},
      {[](Plan &p) { stepOf(p, kReduce)->mutable_writes(1)->set_bytes(128); },
       "the staging room of step 3 'collective' of program 'step' has 128 bytes where the step reaches 256"},
      {[](Plan &p) { stepOf(p, kReduce)->mutable_collective()->set_slice(5); }, "has 256 bytes where the step reaches 80"},
      {[](Plan &p) { stepOf(p, kReduce)->mutable_collective()->set_order(Collective::LIBRARY); }, "one of its kind reads 1 and writes 1"},
      {[](Plan &p) { librarySum(p)->mutable_collective()->set_slice(16); }, "in slices of 16 elements, but sums in the order LIBRARY"},
      {[](Plan &p) {
         librarySum(p)->mutable_collective()->set_dtype(BF16);
         stepOf(p, kReduce)->mutable_reads(0)->set_bytes(128),
             *stepOf(p, kReduce)->mutable_writes(0) = p.programs(0).steps(kProduct).writes(0),
                        stepOf(p, kReduce)->mutable_writes(0)->set_bytes(64);
       },
       "sums elements of type BF16 in the order LIBRARY, which is for F32"},
      {[](Plan &p) { stepOf(p, kGather)->mutable_collective()->set_order(Collective::RANK); }, "gathers, but says how it sums"},
      {[](Plan &p) { stepOf(p, kGather)->mutable_collective()->set_slice(16); }, "gathers, but says how it sums"},
      {[](Plan &p) { p.set_scales_loss(true); }, "program 0 'step' leaves no gradient norm, but the plan scales its loss"},
      {[](Plan &p) { stepOf(p, kReduce)->mutable_writes()->RemoveLast(); }, "writes 1 references; one of its kind reads 1 and writes 2"},
      {[](Plan &p) { stepOf(p, kReduce)->mutable_collective()->set_kind(Collective::ALL_REDUCE); }, "all-reduce"},
      {[](Plan &p) { stepOf(p, kGather)->mutable_collective()->set_count(~0ull); }, "overflows"},
      {[](Plan &p) { stepOf(p, kGather)->mutable_collective()->set_dtype(DTYPE_UNSPECIFIED); }, "unknown element type"},
      {[](Plan &p) { stepOf(p, kCopy)->mutable_reads(0)->set_bytes(64); }, "where the step reaches 128"},
      {[](Plan &p) { stepOf(p, kFill)->mutable_writes(0)->set_bytes(7); }, "not a multiple of 2"},
      {[](Plan &p) { stepOf(p, kUpdate)->mutable_update()->set_bucket(1); }, "updates bucket 1"},
      {[](Plan &p) { stepOf(p, kUpdate)->mutable_update()->set_dtype(BF16); }, "a gradient of type BF16; expected F32"},
      {[](Plan &p) {
         mixed(p), stepOf(p, kUpdate)->mutable_writes()->RemoveLast();
         p.mutable_kernels(0)->set_args(4), p.mutable_kernels(0)->mutable_arg_bytes()->RemoveLast();
       },
       "writes 2 references, and no compute copy of bucket 'layer' after its states"},
      {[](Plan &p) { mixed(p), stepOf(p, kUpdate)->mutable_writes(2)->set_bytes(30), p.mutable_kernels(0)->set_arg_bytes(4, 30); },
       "the compute copy of step 7 'update' of program 'step' has 30 bytes where its shape asks for 32"},
      {[](Plan &p) {
         mixed(p), p.mutable_buckets(0)->mutable_tensors(2)->set_part(SHARD),
             p.mutable_buckets(0)->mutable_tensors(2)->mutable_ref()->set_bytes(32);
       },
       "the compute copy of bucket 0 'layer' is a shard, but its master copy is whole"},
      {[](Plan &p) { stepOf(p, kUpdate)->mutable_update()->mutable_launch()->set_kernel(1); }, "launches kernel 1"},
      {[](Plan &p) { stepOf(p, kUpdate)->mutable_update()->mutable_launch()->set_extent(16000000); },
       "step 7 'update' of program 'step' launches 16000000 iterations of kernel 'sgd_0', which is made for 16"},
      {[](Plan &p) { stepOf(p, kUpdate)->mutable_update()->mutable_launch()->set_extent(15); }, "launches 15 iterations"},
      {[](Plan &p) { stepOf(p, kUpdate)->mutable_reads(0)->set_bytes(60); },
       "argument 0 of step 7 'update' of program 'step' has 60 bytes where the step reaches 64"},
      {[](Plan &p) { p.mutable_kernels(0)->set_arg_bytes(1, 128); }, "has 64 bytes where the step reaches 128"},
      {[](Plan &p) { p.mutable_kernels(0)->mutable_arg_bytes()->RemoveLast(); }, "the bytes of 2 of its 3 arguments"},
      {[](Plan &p) { p.mutable_kernels(0)->set_extent(~0ull); }, "impossible extent"},
      {[](Plan &p) { p.mutable_kernels(0)->clear_extent(); }, "impossible extent of 0"},
      {[](Plan &p) { stepOf(p, kUpdate)->mutable_writes()->RemoveLast(); }, "2 arguments; it takes 3"},
      {[](Plan &p) { stepOf(p, kUpdate)->mutable_reads()->Swap(stepOf(p, kUpdate)->mutable_writes()); },
       "an update reads parameters and their gradient, and writes parameters"},
      {[](Plan &p) { stepOf(p, kProduct)->mutable_matmul()->set_accumulate(true); },
       "reads 2 and writes 1 references; one of its kind reads 3"},
      {[](Plan &p) {
         stepOf(p, kProduct)->mutable_matmul()->set_accumulate(true);
         *stepOf(p, kProduct)->add_reads() = p.programs(0).steps(kProduct).reads(0);
       },
       "adds to another place than it reads"},
      {[](Plan &p) { *stepOf(p, kFill)->add_reads() = p.programs(0).steps(kFill).writes(0); }, "reads 1 and writes 1 references"},
      {[](Plan &p) { stepOf(p, kAttention)->mutable_reads()->RemoveLast(); }, "one of its kind reads 5 and writes 2"},
      {[](Plan &p) { stepOf(p, kUpdate)->mutable_update()->clear_part(); }, "neither that it updates the whole bucket nor a shard"},
      {[](Plan &p) { stepOf(p, kFill)->clear_what(); }, "nothing this program knows"},
      {[](Plan &p) { stepOf(p, kFill)->set_lane(Lane(12)); }, "unknown lane 12"},
      {[](Plan &p) { test::waitFor(*stepOf(p, kProduct), GATHER, 2); }, "waits for tick 2 of lane GATHER, which has only 1"},
      {[](Plan &p) { p.mutable_programs(0)->add_result_waits()->set_tick(1000); }, "reading the results of program"},
      {[](Plan &p) { p.mutable_programs(0)->add_entries()->set_after(99); }, "follows program 99"},
      {[](Plan &p) { p.mutable_programs(0)->add_entries(), p.mutable_programs(0)->add_entries(); }, "two entries"},
      {[](Plan &p) { p.mutable_programs(0)->add_entries()->add_input_waits()->set_lane(Lane(11)); }, "unknown lane 11"},
      {[](Plan &p) { p.mutable_programs(0)->add_entries()->add_waits()->set_tick(1000); }, "waits for tick 1000"},
      {[](Plan &p) { p.mutable_programs(0)->add_entries()->add_waits()->set_step(1000); }, "a wait of step 1000"},
      {[](Plan &p) { test::waitFor(*stepOf(p, kProduct), Lane(11), 1); }, "unknown lane 11"},
      {[](Plan &p) { test::waitFor(*stepOf(p, kProduct), COMPUTE, 1); }, "waits for itself"},
      {[](Plan &p) {
         test::waitFor(*stepOf(p, kProduct), GATHER, 1);
         test::waitFor(*stepOf(p, kGather), REDUCE, 1);
         test::waitFor(*stepOf(p, kReduce), COMPUTE, 1);
       },
       "waits for itself"},
      {[](Plan &p) { p.mutable_kernels(0)->set_symbol("a b"); }, "not an identifier"},
      {[](Plan &p) { p.mutable_kernels(0)->set_args(1000); }, "at most 256"},
      {[](Plan &p) { p.mutable_kernels(0)->mutable_gpu(); }, "has a grid, but the plan is not for cuda"},
      {[](Plan &p) { forCuda(p), p.mutable_target()->clear_features(); }, "without naming one architecture"},
      {[](Plan &p) { forCuda(p), p.mutable_target()->set_features(0, "avx2"); }, "without naming one architecture"},
      {[](Plan &p) { forCuda(p), p.mutable_kernels(0)->clear_gpu(); }, "kernel 'sgd_0', which has no grid"},
      {[](Plan &p) { forCuda(p), p.mutable_kernels(0)->mutable_gpu()->set_blocks(0); }, "a grid of 0 blocks"},
      {[](Plan &p) { forCuda(p), p.mutable_kernels(0)->set_row(4), p.mutable_kernels(0)->mutable_gpu()->set_blocks(3); },
       "a grid of 3 blocks for "},
      {[](Plan &p) { forCuda(p), p.mutable_kernels(0)->mutable_gpu()->set_threads(48); }, "blocks of 48 threads"},
      {[](Plan &p) { forCuda(p), p.mutable_kernels(0)->mutable_gpu()->set_threads(2048); }, "blocks of 2048 threads"},
      {[](Plan &p) { forCuda(p), p.mutable_kernels(0)->mutable_gpu()->set_shared_bytes(1 << 20); }, "1048576 bytes of shared memory"},
      {[](Plan &p) { p.mutable_buckets(0)->set_elements(65); }, "not 4 shards"},
      {[](Plan &p) { p.mutable_buckets(0)->mutable_tensors(0)->mutable_ref()->set_bytes(32); },
       "the master copy of bucket 0 'layer' has 32 bytes where the whole bucket in F32 takes 256"},
      {[](Plan &p) { p.mutable_buckets(0)->mutable_tensors(1)->set_part(WHOLE); },
       "the momentum of bucket 0 'layer' has 64 bytes where the whole bucket in F32 takes 256"},
      {[](Plan &p) { p.mutable_buckets(0)->mutable_tensors(1)->set_part(PART_UNSPECIFIED); }, "neither the whole bucket nor a shard"},
      {[](Plan &p) { p.mutable_buckets(0)->mutable_tensors(1)->set_dtype(BF16); },
       "the momentum of bucket 0 'layer' has 64 bytes where a shard in BF16 takes 32"},
      {[](Plan &p) { p.mutable_buckets(0)->mutable_tensors(1)->set_dtype(I32); }, "is of type I32; expected F32, BF16 or F16"},
      {[](Plan &p) { p.mutable_buckets(0)->mutable_tensors(1)->set_role(StateTensor::MASTER); }, "keeps its master copy twice"},
      {[](Plan &p) { p.mutable_buckets(0)->mutable_tensors(1)->set_role(StateTensor::Role(9)); }, "a tensor of the unknown role 9"},
      {[](Plan &p) { p.mutable_buckets(0)->mutable_tensors(1)->set_role(StateTensor::GRADIENT); }, "keeps no momentum"},
      {[](Plan &p) { p.mutable_buckets(0)->set_trainable(false); }, "keeps a momentum, which nothing that is frozen has"},
      {[](Plan &p) {
         p.mutable_buckets(0)->set_trainable(false), p.mutable_buckets(0)->mutable_tensors(1)->set_role(StateTensor::COMPUTE);
       },
       "is frozen and keeps its parameters twice, as master and as compute copy"},
      {[](Plan &p) { p.mutable_buckets(0)->mutable_tensors(0)->set_role(StateTensor::COMPUTE); }, "keeps no master copy"},
      {[](Plan &p) { *p.mutable_buckets(0)->mutable_tensors(1)->mutable_ref() = part(p.buckets(0).tensors(0).ref(), 64, 64); },
       "the momentum of bucket 0 'layer' shares bytes with the master copy of bucket 0 'layer'"},
      {[](Plan &p) { p.mutable_buckets(0)->mutable_tensors(1)->mutable_ref()->set_buffer(2); }, "belongs to another program"},
      {[](Plan &p) { p.mutable_buffers(2)->set_bucket(7); }, "buffer 2 'c' works for bucket 7"},
      {[](Plan &p) { p.mutable_buffers(2)->set_part(SHARD); }, "without saying which bucket"},
      {[](Plan &p) { p.mutable_buffers(2)->set_bucket(0), p.mutable_buffers(2)->set_part(SHARD), p.mutable_buffers(2)->set_dtype(F32); },
       "buffer 2 'c' has 4096 bytes where its shape asks for 64"},
      {[](Plan &p) { p.mutable_buffers(0)->set_bucket(0); }, "buffer 0 'a' is persistent and names a bucket"},
      {[](Plan &p) { p.mutable_buckets(0)->set_shard_elements(1ull << 62); }, "overflows"},
      {[](Plan &p) { p.mutable_optimizer()->set_kind(ADAMW); }, "keeps no first moment"},
      {[](Plan &p) { p.mutable_parameters(0)->mutable_pieces(0)->set_bucket(5); }, "piece 0 of parameter 'weight' lies in bucket 5"},
      {[](Plan &p) { p.mutable_parameters(0)->mutable_pieces(0)->set_offset_elements(60); }, "ends at element 60"},
      {[](Plan &p) { p.mutable_parameters(0)->clear_pieces(); }, "parameter 'weight' has 0 pieces"},
      {[](Plan &p) { *p.mutable_parameters(0)->add_pieces() = p.parameters(0).pieces(0); },
       "pieces 0 and 1 of parameter 'weight' hold the same elements"},
      {[](Plan &p) { p.mutable_parameters(0)->mutable_pieces(0)->add_begin(0); }, "has 1 first indices and 0 sizes for the 2 dimensions"},
      {[](Plan &p) { tiles(p), p.mutable_parameters(0)->mutable_pieces()->RemoveLast(); },
       "the pieces of parameter 'weight' hold 10 of its 16 elements"},
      {[](Plan &p) { tiles(p), p.mutable_parameters(0)->mutable_pieces(1)->set_begin(1, 4); },
       "pieces 0 and 1 of parameter 'weight' hold the same elements"},
      {[](Plan &p) { tiles(p), p.mutable_parameters(0)->mutable_pieces(1)->set_begin(1, 6); },
       "piece 1 of parameter 'weight' takes indices 6 + 3 of dimension 1, which has 8"},
      {[](Plan &p) { tiles(p), p.mutable_parameters(0)->mutable_pieces(1)->set_size(1, ~0ull); }, "of dimension 1, which has 8"},
      {[](Plan &p) { tiles(p), p.mutable_parameters(0)->mutable_pieces(1)->set_offset_elements(8); },
       "parameters 'weight' and 'weight' share element 8 of bucket 'layer'"},
      {[](Plan &p) {
         *p.add_parameters() = p.parameters(0);
         p.mutable_parameters(1)->set_name("other");
       },
       "parameters 'weight' and 'other' share element 0 of bucket 'layer'"},
      {[](Plan &p) { p.mutable_parameters(0)->set_shape(0, -4); }, "negative dimension"},
      {[](Plan &p) { p.mutable_parameters(0)->mutable_source()->set_bytes(128); }, "the source of parameter 'weight' has 128 bytes"},
      {[](Plan &p) { *p.add_parameters() = p.parameters(0); }, "occurs twice"},
      {[](Plan &p) { p.mutable_parameters(0)->add_shape(1); }, "is transposed"},
      {[](Plan &p) { p.mutable_inputs(0)->set_role(Input::HYPER); }, "its role asks for"},
      {[](Plan &p) { p.mutable_inputs(0)->set_shape(0, 2); }, "input 'tokens' has 64 bytes"},
      {[](Plan &p) { p.mutable_inputs(0)->mutable_ref()->set_buffer(2); }, "belongs to another program"},
      {[](Plan &p) { p.mutable_inputs(0)->set_limit(-1); }, "negative index limit"},
      {[](Plan &p) { p.mutable_inputs(0)->set_classes(-1); }, "negative number of classes"},
      {[](Plan &p) { p.add_losses()->set_labels("classes"); }, "loss 0 reads the labels 'classes', which no input of the plan holds"},
      {[](Plan &p) { p.add_losses()->set_kind(OUTPUT), p.mutable_losses(0)->set_weight(INFINITY); }, "weight that is not finite"},
      {[](Plan &p) { p.add_losses()->set_kind(LossKind(7)); }, "loss 0 is of the unknown kind 7"},
      {[](Plan &p) {
         for (int i = 0; i < 17; ++i) p.add_losses()->set_kind(OUTPUT);
       },
       "17 losses; expected at most 16"},
      {[](Plan &p) { p.mutable_constants(0)->set_segment_offset(4); }, "constant segment of 256 bytes"},
      {[](Plan &p) { p.mutable_constants(0)->set_segment_offset(~0ull); }, "constant segment of 256 bytes"},
      {[](Plan &p) { *p.mutable_programs(0)->mutable_loss() = p.buckets(0).tensors(0).ref(); }, "the loss of program 'step'"},
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    Plan plan = goodPlan().plan;
    cases[i].apply(plan);
    SCOPED_TRACE("case " + std::to_string(i));
    expectError([&] { validate(plan, kConstantBytes); }, cases[i].sentence);
  }
}

// ------------------------------------------------------------------------------------------------------- the file

class PlanFileTest : public testing::Test {
protected:
  std::vector<std::byte> kernels{kKernelBytes, std::byte{7}}, constants{kConstantBytes, std::byte{9}};
  Folder folder;
  std::string path = folder / "plan.bin";
};

TEST_F(PlanFileTest, ComesBackAsWritten) {
  Plan plan = goodPlan().plan;
  plan.mutable_parameters(0)->mutable_source()->set_file(folder / "model.onnx");
  save(path, plan, kernels, constants);
  PlanFile loaded = load(path);
  plan.set_format(kFormat);
  EXPECT_EQ(loaded.plan.SerializeAsString(), plan.SerializeAsString());
  EXPECT_FALSE(loaded.signer);
  EXPECT_TRUE(std::equal(loaded.kernels.begin(), loaded.kernels.end(), kernels.begin(), kernels.end()));
  EXPECT_TRUE(std::equal(loaded.constants.begin(), loaded.constants.end(), constants.begin(), constants.end()));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(loaded.kernels.data()) % 4096, 0u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder / ""), {}), 1) << "a temporary file was left";
  std::string once = folder.read("plan.bin");
  save(path, plan, kernels, constants);
  EXPECT_EQ(once, folder.read("plan.bin")) << "the same plan must give the same bytes";
}

TEST_F(PlanFileTest, SegmentsMayBeEmpty) {
  PlanBuilder empty;
  for (auto part : {std::span<const std::byte>{}, std::span<const std::byte>(kernels)}) {
    save(path, empty.plan, part, {});
    PlanFile loaded = load(path);
    EXPECT_EQ(loaded.kernels.size(), part.size());
    EXPECT_EQ(loaded.constants.size(), 0u);
  }
}

TEST_F(PlanFileTest, KernelsForCudaAreText) {
  Plan plan = goodPlan().plan;
  forCuda(plan);
  save(path, plan, kernels, constants);
  EXPECT_EQ(load(path).kernels.size(), kernels.size());
  kernels[5] = std::byte{0};
  save(path, plan, kernels, constants);
  expectError([&] { load(path); }, "for cuda, but no text: they hold a zero byte");
}

// A plan that is reached by a link finds its model beside itself, or beside the link.
TEST_F(PlanFileTest, NamesOfFilesBehindALink) {
  for (const char *sub : {"there", "here"}) std::filesystem::create_directories(folder / sub);
  folder.write("there/model.onnx", "the model");
  Plan plan = goodPlan().plan;
  plan.set_model(folder / "there/model.onnx");
  save(folder / "there/p.bin", plan, kernels, constants);
  std::filesystem::create_symlink("../there/p.bin", folder / "here/link.bin");
  EXPECT_EQ(load(folder / "here/link.bin").plan.model(), folder / "here/../there/model.onnx");
  std::filesystem::create_symlink("../there/model.onnx", folder / "here/model.onnx");
  EXPECT_EQ(load(folder / "here/link.bin").plan.model(), folder / "here/model.onnx");
  std::filesystem::remove(folder / "here/model.onnx");
  plan.set_model(folder / "there/model.onnx");
  save(folder / "here/link.bin", plan, kernels, constants); // written where the link leads
  EXPECT_EQ(load(folder / "there/p.bin").plan.model(), folder / "there/model.onnx");
}

// A plan beside its model moves with it; one elsewhere finds it from any folder.
TEST_F(PlanFileTest, NamesOfFilesSurviveAMove) {
  for (const char *sub : {"a", "a/w", "b"}) std::filesystem::create_directories(folder / sub);
  folder.write("a/w/model.onnx", "the model");
  std::filesystem::create_symlink("w/model.onnx", folder / "a/link.onnx");
  auto namesOf = [&](const std::string &model, const std::string &path, const std::string &moved) {
    Plan plan = goodPlan().plan;
    plan.set_model(model);
    plan.mutable_parameters(0)->mutable_source()->set_file(model);
    plan.add_files()->set_file(model);
    save(path, plan, kernels, constants);
    if (moved != path) std::filesystem::rename(path, moved);
    Plan read = load(moved).plan;
    EXPECT_EQ(read.model(), read.parameters(0).source().file());
    EXPECT_EQ(read.model(), read.files(0).file());
    return read.model();
  };
  EXPECT_EQ(namesOf(folder / "a/w/model.onnx", folder / "a/p.bin", folder / "b/p.bin"), folder / "b/w/model.onnx");
  EXPECT_EQ(namesOf(folder / "a/link.onnx", folder / "a/p.bin", folder / "a/p.bin"), folder / "a/link.onnx");
  std::string real = std::filesystem::canonical(folder / "a/w/model.onnx");
  EXPECT_EQ(namesOf(folder / "a/../a/w/model.onnx", folder / "b/p.bin", folder / "a/p.bin"), real);
  EXPECT_EQ(namesOf("no/such/folder/m.onnx", folder / "a/p.bin", folder / "a/p.bin"), folder / "a/no/such/folder/m.onnx");
}

TEST_F(PlanFileTest, OnlyRegularFilesAreReplaced) {
  folder.write("real.bin", "old");
  std::filesystem::create_symlink("real.bin", folder / "link.bin");
  save(folder / "link.bin", goodPlan().plan, kernels, constants);
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link.bin"));
  EXPECT_EQ(folder.read("real.bin").substr(0, 8), "ZEROPLAN");
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  expectError([&] { save(folder / "pipe", goodPlan().plan, kernels, constants); }, "pipe' is not a regular file");
  EXPECT_TRUE(std::filesystem::is_fifo(folder / "pipe"));
}

TEST_F(PlanFileTest, DamageIsNamed) {
  save(path, goodPlan().plan, kernels, constants);
  const std::string good = folder.read("plan.bin");
  auto changed = [&](size_t offset, const std::string &bytes) { return std::string(good).replace(offset, bytes.size(), bytes); };
  auto tryBytes = [&](const std::string &bytes, const char *sentence) {
    folder.write("plan.bin", bytes);
    expectError([&] { load(path); }, sentence);
    expectError([&] { load(path); }, path);
  };
  auto tryTable = [&](size_t offset, const std::string &bytes, const char *sentence) {
    tryBytes(resealed(changed(offset, bytes)), sentence);
  };
  tryBytes("", "0 bytes");
  tryBytes("ELF", "3 bytes");
  tryBytes(changed(0, "ONNXPLAN"), "is not a plan");
  tryBytes(changed(8, std::string("\x63\0\0\0", 4)), "newer than the format 13");
  tryBytes(changed(8, std::string("\x07\0\0\0", 4)), "plan format 7, expected 13; compile the model again");
  tryBytes(changed(12, "\xff"), "segment table");
  tryBytes(changed(16, "\x09"), "header and segment table do not match their checksum");
  tryBytes(good.substr(0, 4096), "was it cut off");
  tryBytes(good.substr(0, good.size() - 1), "was it cut off");
  tryTable(16 + 8, "\x01", "plan segment starts at byte 4097, not at byte 4096");
  tryTable(16 + 32 + 8, std::string("\0\x10\0\0", 4), "kernel segment starts at byte 4096, not at byte 8192");  // over the first
  tryTable(16 + 32 + 8, std::string("\0\x30\0\0", 4), "kernel segment starts at byte 12288, not at byte 8192"); // room before it
  tryTable(16 + 16, "\xff\xff\xff\xff\xff\xff\xff\xff", "was it cut off");
  tryTable(16 + 24, "\x01", "reserved bytes that are not zero");
  tryTable(16 + 32, std::string("\x01\0\0\0", 4), "occurs twice");
  tryTable(16, std::string("\x09\0\0\0", 4), "no plan segment");
  for (size_t offset : {4096ul + 50, 8192ul + 3, 12288ul})
    tryBytes(changed(offset, std::string(1, static_cast<char>(good[offset] ^ 1))), "segment does not match its checksum");
  tryBytes(changed(4000, "hidden"), "bytes 116 to 4096 belong to no segment and are not zero");
  tryBytes(changed(8192 + 2000, "hidden"), "belong to no segment and are not zero");
  tryBytes(changed(good.size() - 1, "x"), "belong to no segment and are not zero");
  tryBytes(good + "more", "4 bytes after its last segment are no signature");
  tryBytes(good + std::string(104, '\0'), "104 bytes after its last segment are no signature");
  expectError([&] { load(folder / "absent.bin"); }, "No such file");
  expectError([&] { load(folder / ""); }, "not a file");
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  expectError([&] { load(folder / "pipe"); }, "not a file");
  expectError([&] { save("/nonexistent/plan.bin", goodPlan().plan, {}, {}); }, "cannot create '/nonexistent/plan.bin.partial'");
  Plan bad = goodPlan().plan;
  bad.set_world(0);
  save(path, bad, kernels, constants);
  expectError([&] { load(path); }, "0 ranks");
}

TEST_F(PlanFileTest, AKilledCompilerLeavesNothingThatGrows) {
  folder.write("plan.bin", "the one before"), folder.write("plan.bin.partial", std::string(100000, 'x')); // of a compiler that was killed
  save(path, goodPlan().plan, kernels, constants);
  EXPECT_EQ(load(folder / "plan.bin").plan.world(), goodPlan().plan.world());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder / ""), {}), 1);
  folder.write("theirs", "theirs");
  std::filesystem::create_symlink("theirs", folder / "plan.bin.partial");
  expectError([&] { save(path, goodPlan().plan, kernels, constants); }, "is a symbolic link");
  EXPECT_EQ(folder.read("theirs"), "theirs");
}

TEST_F(PlanFileTest, EveryByteCounts) {
  save(path, goodPlan().plan, kernels, constants);
  std::string file = folder.read("plan.bin");
  for (size_t i = 0; i < file.size(); ++i) {
    file[i] = static_cast<char>(file[i] ^ 0x10);
    EXPECT_NE(refusalOf([&] { parse(std::as_bytes(std::span(file)), "f"); }), "") << "byte " << i;
    file[i] = static_cast<char>(file[i] ^ 0x10);
  }
  EXPECT_EQ(refusalOf([&] { parse(std::as_bytes(std::span(file)), "f"); }), "");
}

// A kind of segment that a later compiler may add: checked as the others are, and left alone.
TEST_F(PlanFileTest, SegmentsOfOtherKindsAreLeftAlone) {
  std::string message = goodPlan().plan.SerializeAsString();
  const SegmentBytes parts[] = {{1, std::as_bytes(std::span(message))}, {7, kernels}, {3, constants}};
  std::vector<std::byte> file = compose(parts);
  EXPECT_TRUE(parse(file, "f").kernels.empty());
  file[8192] ^= std::byte(1);
  expectError([&] { parse(file, "f"); }, "segment of kind 7, does not match its checksum");
}

// What was checked is what is used, even where another process writes to the file.
TEST_F(PlanFileTest, IsReadOnce) {
  save(path, goodPlan().plan, kernels, constants);
  PlanFile loaded = load(path);
  std::filesystem::resize_file(path, 0);
  std::filesystem::resize_file(path, 1 << 16);
  EXPECT_TRUE(std::ranges::equal(loaded.kernels, kernels));
  EXPECT_TRUE(std::ranges::equal(loaded.constants, constants));
}

// What the parser and the validator see of hostile bytes when the checksum is no help: a crash would end the test, and
// most flips of structure must be refused.
TEST(Validate, SurvivesEveryBitFlip) {
  const std::string good = goodPlan().plan.SerializeAsString();
  google::protobuf::LogSilencer silence;
  size_t refused = 0;
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string message = good;
    message[bit / 8] = static_cast<char>(message[bit / 8] ^ (1 << (bit % 8)));
    Plan plan;
    if (!plan.ParseFromString(message) || !refusalOf([&] { validate(plan, kConstantBytes); }).empty()) ++refused;
  }
  EXPECT_GT(refused, good.size() * 8 / 2);
}

} // namespace
