// A model of three parameters in two buckets, its ranks as threads, and their memory without an engine.
#pragma once
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/first_values.h"
#include "runtime/checkpoint/initial.h"
#include "runtime/data/element.h"
#include "runtime/data/tensor_file.h"
#include "test/unit/plan_builder.h"
#include "test/unit/run_fixtures.h"
#include <cmath>
#include <map>

namespace zero::test {

using namespace zero::runtime;

constexpr uint64_t kShardOf2 = 32; // elements; shards are multiples of 64 bytes

// Bucket 0: w [5 x 7], b [3], padding; bucket 1: e [4 x 4] frozen. Whole parameters at stage 0 to 2, shards at 3; whole states at 0. In
// bf16 these parameters are compute copies, and the masters of what is trained lie as the states do.
inline plan::Plan makePlan(uint32_t world, uint32_t stage, bool bf16 = false) {
  plan::Plan plan;
  plan.set_world(world), plan.set_stage(stage);
  plan.add_axes()->set_name("data"), plan.mutable_axes(0)->set_size(world);
  uint32_t buffer = 0;
  for (bool trainable : {true, false}) {
    plan::Bucket *bucket = plan.add_buckets();
    uint64_t shard = (trainable ? 2 * kShardOf2 : 64) / world, all = shard * world;
    bucket->set_name(trainable ? "layer" : "frozen"), bucket->set_trainable(trainable);
    bucket->set_elements(all), bucket->set_shard_elements(shard);
    auto add = [&](plan::StateTensor::Role role, plan::Part part) {
      plan::Ref ref;
      plan::DType type = role == plan::StateTensor::COMPUTE ? plan::BF16 : plan::F32;
      ref.set_buffer(buffer++), ref.set_bytes((type == plan::F32 ? 4 : 2) * (part == plan::WHOLE ? all : shard));
      addTensor(*bucket, role, ref, part, type);
    };
    plan::Part parameters = stage == 3 ? plan::SHARD : plan::WHOLE, states = stage == 0 ? plan::WHOLE : plan::SHARD;
    if (trainable || !bf16) add(plan::StateTensor::MASTER, bf16 ? states : parameters);
    for (auto role : {plan::StateTensor::FIRST_MOMENT, plan::StateTensor::SECOND_MOMENT})
      if (trainable) add(role, states);
    if (bf16) add(plan::StateTensor::COMPUTE, parameters);
  }
  auto add = [&](const char *name, std::vector<int64_t> shape, uint32_t bucket, uint64_t offset) {
    plan::Parameter *p = plan.add_parameters();
    p->set_name(name);
    addPiece(*p, bucket, offset);
    p->mutable_shape()->Add(shape.begin(), shape.end());
    p->mutable_init()->set_rule(plan::Init::NORMAL), p->mutable_init()->set_std(1),
        p->mutable_init()->set_seed(static_cast<uint64_t>(name[0]));
    return p;
  };
  add("w", {5, 7}, 0, 0);
  add("b", {3}, 0, 35);
  add("e", {4, 4}, 1, 0);
  return plan;
}

// One rank's memory, which lends a buffer for each piece, as a device would whose memory is not this process's.
struct Memory final : State {
  std::map<uint32_t, std::vector<float>> buffers;
  float *at(const plan::Ref &ref) {
    auto &values = buffers[ref.buffer()];
    values.resize(ref.bytes() / 4);
    return values.data();
  }
  void read(const plan::Ref &ref, uint64_t offset, uint64_t bytes, const TakePiece &take) const override {
    const std::byte *all = const_cast<Memory &>(*this).bytes(ref, offset, bytes);
    inPieces(bytes, [&](uint64_t first, std::span<std::byte> piece) {
      std::copy_n(all + first, piece.size(), piece.begin());
      take(first, piece);
    });
  }
  void write(const plan::Ref &ref, uint64_t offset, uint64_t bytes, const FillPiece &fill) override {
    std::byte *all = this->bytes(ref, offset, bytes);
    inPieces(bytes, [&](uint64_t first, std::span<std::byte> piece) {
      fill(first, piece);
      std::copy(piece.begin(), piece.end(), all + first);
    });
  }

private:
  std::byte *bytes(const plan::Ref &ref, uint64_t offset, uint64_t size) {
    EXPECT_LE(offset + size, ref.bytes());
    return reinterpret_cast<std::byte *>(at(ref)) + offset;
  }
  static void inPieces(uint64_t bytes, const FillPiece &body) {
    for (uint64_t first = 0; first < bytes; first += kPieceBytes) {
      std::vector<std::byte> piece(std::min(kPieceBytes, bytes - first), std::byte(0xcc)); // one for each, gone after it
      body(first, piece);
    }
  }
};

using Body = std::function<void(const Rank &, Memory &)>;

inline std::vector<Memory> onRanks(const plan::Plan &plan, const Body &body) {
  std::vector<Memory> memories(plan.world());
  Ranks(static_cast<int>(plan.world())).run([&](Communicator &communicator) {
    auto rank = static_cast<uint64_t>(communicator.rank());
    Memory &memory = memories[rank];
    body({plan, rank, memory, communicator}, memory);
  });
  return memories;
}

// Every tensor of every bucket as one whole, from whichever ranks hold it.
inline std::vector<float> whole(const plan::Plan &plan, std::vector<Memory> &memories, plan::StateTensor::Role role,
                                const plan::Bucket &bucket) {
  const plan::StateTensor &tensor = *plan::tensorOf(bucket, role);
  std::vector<float> all(bucket.elements(), NAN);
  for (uint64_t r = 0; r < plan.world(); ++r) {
    Range held = heldIn(bucket, tensor, r);
    auto *values = static_cast<float *>(memories[r].at(tensor.ref()));
    std::copy(values, values + (held.end - held.begin), all.begin() + static_cast<long>(held.begin));
  }
  return all;
}

// Every rank's compute copies are the masters, rounded; of what is frozen, the first values.
inline void expectRounded(const plan::Plan &plan, std::vector<Memory> &memories) {
  for (const plan::Bucket &bucket : plan.buckets()) {
    const plan::StateTensor &copy = *plan::tensorOf(bucket, plan::StateTensor::COMPUTE);
    std::vector<float> masters(bucket.elements());
    if (bucket.trainable())
      masters = whole(plan, memories, plan::StateTensor::MASTER, bucket);
    else
      FirstValues(plan).read(plan.parameters(2), 0, std::span(masters).first(16));
    bool filled = false;
    for (uint64_t r = 0; r < plan.world(); ++r) {
      Range held = heldIn(bucket, copy, r);
      std::vector<uint16_t> found(held.end - held.begin), expected;
      std::memcpy(found.data(), memories[r].at(copy.ref()), copy.ref().bytes());
      for (uint64_t e = held.begin; e < held.end; ++e) expected.push_back(floatToBfloat(masters[e]));
      EXPECT_TRUE(found == expected) << "rank " << r << " of " << plan.world() << ", bucket '" << bucket.name() << "'";
      filled |= std::any_of(found.begin(), found.end(), [](uint16_t bits) { return bits != 0; }); // some ranks have padding alone
    }
    EXPECT_TRUE(filled) << "bucket '" << bucket.name() << "'";
  }
}

// Fills what is frozen; collective.
inline FrozenSums fillFrozen(const Rank &rank) {
  FrozenSums sums = initialiseParameters(rank, 1, Fill::Frozen);
  shareSums(rank.communicator, sums);
  return sums;
}

// Fills parameters from rules and states with numbers that tell their place.
inline void fillState(const Rank &rank, Memory &memory) {
  initialiseParameters(rank, 1);
  const plan::Bucket &bucket = rank.plan.buckets(0);
  for (int i = 0; i < 2; ++i) {
    const plan::StateTensor &moment = bucket.tensors(1 + i);
    Range held = heldIn(bucket, moment, rank.rank);
    auto *values = static_cast<float *>(memory.at(moment.ref()));
    for (uint64_t e = held.begin; e < held.end; ++e)
      values[e - held.begin] = e < 38 ? static_cast<float>(1000 * (i + 1) + static_cast<int>(e)) : 0; // padding stays zero
  }
}

inline std::vector<float> floats(const Tensor &tensor) {
  std::vector<float> values(tensor.bytes.size() / 4);
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

} // namespace zero::test
