// Plans that keep several lanes busy, for every device that is to run them alike.
#pragma once
#include "runtime/engine/engine.h"
#include "runtime/plan/validate.h"
#include "test/unit/mpi_environment.h"
#include "test/unit/plan_builder.h"
#include <cmath>

namespace zero::test {

using namespace zero::plan;
using namespace zero::runtime;

inline constexpr uint64_t kSide = 24, kElements = kSide * kSide;

// Rounds that keep four lanes busy: parameters are gathered, multiplied with the input, reduced, and added to the parameters by a product
// of their own on the update lane. Every wait is needed.
struct RoundsPlan : PlanBuilder {
  Ref own, input, result;
  explicit RoundsPlan(uint32_t world) : PlanBuilder(world) {
    own = floats("own", kElements), input = floats("input", kElements), result = floats("result", kElements);
    Ref unit = floats("unit", kElements), staging = floats("staging", kElements * world);
    Constant *constant = plan.add_constants();
    *constant->mutable_ref() = unit;
    for (uint64_t i = 0; i < kElements; ++i) constants.push_back(i / kSide == i % kSide ? 0.5f / static_cast<float>(world) : 0.001f);
    const uint64_t rounds = 4;
    for (uint64_t round = 0; round < rounds; ++round) {
      Ref whole = floats("whole", kElements * world), product = floats("product", kElements * world), sum = floats("sum", kElements);
      Step &gather = step("gather", {own}, {whole}, GATHER);
      if (round > 0) waitFor(gather, UPDATE, round);
      collect(gather, Collective::ALL_GATHER, kElements);
      for (uint32_t r = 0; r < world; ++r) {
        Step &use = step("use", {part(whole, r * kElements * 4, kElements * 4), input}, {part(product, r * kElements * 4, kElements * 4)});
        if (r == 0) waitFor(use, GATHER, round + 1);
        multiply(use, false);
      }
      Step &reduce = step("reduce", {product}, staged(sum, staging), REDUCE);
      waitFor(reduce, COMPUTE, world * (round + 1));
      collect(reduce, Collective::REDUCE_SCATTER, kElements);
      Step &update = step("update", {sum, unit, own}, {own}, UPDATE);
      waitFor(update, REDUCE, round + 1);
      multiply(update, true);
    }
    Step &last = step("result", {own}, {result});
    waitFor(last, UPDATE, rounds);
    last.mutable_copy();
    auto *after = program().add_entries(); // itself: what it gathers was updated there, and whoever has seen that has seen the rest
    auto *wait = after->add_waits();
    wait->set_lane(UPDATE), wait->set_tick(rounds);
  }

  PlanFile file() const {
    PlanFile file = PlanBuilder::file();
    file.constants = std::as_bytes(std::span(constants));
    return file;
  }

private:
  static void multiply(Step &step, bool accumulate) {
    MatMul *product = step.mutable_matmul();
    product->set_dtype(F32), product->set_c_dtype(F32), product->set_batch(1), product->set_accumulate(accumulate);
    product->set_m(kSide), product->set_n(kSide), product->set_k(kSide);
    product->set_lda(kSide), product->set_ldb(kSide), product->set_ldc(kSide);
  }
  std::vector<float> constants;
};

// Floats in memory that transfers take.
struct HostFloats {
  HostFloats(Engine &engine, size_t count) : memory(engine.hostMemory(count * sizeof(float))), count(count) {}
  std::span<float> all() const { return {reinterpret_cast<float *>(memory.get()), count}; }
  std::span<std::byte> bytes() const { return {memory.get(), count * sizeof(float)}; }
  HostMemory memory;
  size_t count;
};

// What three runs leave, each with an input of its own that is written while the one before is under way.
inline std::vector<float> resultsOf(const PlanFile &file, const Ref &own, const Ref &input, const Ref &result, Device &device) {
  validate(file.plan, file.constants.size());
  Engine engine(file, device, *world, {});
  engine.write(own, 0, own.bytes(), [](uint64_t, std::span<std::byte> piece) {
    auto *values = reinterpret_cast<float *>(piece.data());
    for (uint64_t i = 0; i < kElements; ++i) values[i] = std::sin(static_cast<float>(i + 1 + static_cast<uint64_t>(world->rank())));
  });
  constexpr int kRuns = 3;
  const std::vector<HostFloats> inputs{{engine, kElements}, {engine, kElements}}, outputs{{engine, kElements}, {engine, kElements}};
  std::vector<HostTransfer> writes, reads;
  for (size_t slot : {0, 1}) {
    writes.push_back(engine.transfer(input, inputs[slot].bytes()));
    reads.push_back(engine.transfer(result, outputs[slot].bytes()));
  }
  std::vector<float> all;
  auto finish = [&](size_t slot) {
    engine.finish();
    all.insert(all.end(), outputs[slot].all().begin(), outputs[slot].all().end());
  };
  for (size_t run = 0; run < kRuns; ++run) {
    size_t slot = run % 2;
    if (run >= 2) finish(slot);
    for (uint64_t i = 0; i < kElements; ++i) inputs[slot].all()[i] = std::cos(static_cast<float>(i + 1000 * run)) / 8;
    engine.submit({.program = 0, .writes = std::span(writes).subspan(slot, 1), .reads = std::span(reads).subspan(slot, 1)});
  }
  finish(1), finish(0);
  return all;
}

// What a rank keeps on disk and in host memory, and copies of it to its memory and back: of its own shard of the work.
struct TieredPlan : PlanBuilder {
  static constexpr uint64_t kShard = 3 << 18; // floats: more than a stripe, and no whole number of them
  Ref work, shard, far, near, result;
  explicit TieredPlan(uint32_t ranks) : PlanBuilder(ranks) {
    plan.mutable_arenas(0)->set_alignment(4096);
    work = floats("work", kShard * ranks), result = floats("result", kShard);
    near = bytesIn(addArena(HOST, 64), "near", kShard * 4), far = bytesIn(addArena(DISK, 4096), "far", kShard * 4 + 4096);
    shard = part(work, 0, kShard * 4, kShard * 4);
    Ref state = part(far, 4096, kShard * 4);
    step("save", {shard}, {state}, DISK_WRITE).mutable_copy();
    Step &keep = step("keep", {shard}, {near}, TO_HOST);
    keep.mutable_copy();
    fill("change", work, -1.0f);
    waitFor(*program().mutable_steps(2), DISK_WRITE, 1), waitFor(*program().mutable_steps(2), TO_HOST, 1);
    Step &load = step("load", {state}, {result}, DISK_READ);
    load.mutable_copy(), waitFor(load, DISK_WRITE, 1);
    Step &bring = step("bring", {near}, {shard}, TO_DEVICE);
    bring.mutable_copy(), waitFor(bring, COMPUTE, 1);
  }
};

} // namespace zero::test
