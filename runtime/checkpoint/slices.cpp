#include "runtime/checkpoint/slices.h"
#include "runtime/data/element.h"

namespace zero::runtime {

Range ownedBy(const plan::Bucket &bucket, uint64_t rank) { return plan::rangeOf(bucket, plan::SHARD, rank); }

Range heldIn(const plan::Bucket &bucket, const plan::StateTensor &tensor, uint64_t rank) {
  return plan::rangeOf(bucket, tensor.part(), rank);
}

std::vector<const plan::StateTensor *> copiesOfParameters(const plan::Bucket &bucket) {
  const plan::StateTensor &master = plan::masterOf(bucket), &read = plan::readOf(bucket);
  if (&master == &read) return {&master};
  return {&master, &read};
}

void writeNumbers(State &state, const plan::StateTensor &tensor, uint64_t at, uint64_t count,
                  const std::function<void(uint64_t first, std::span<float> values)> &body) {
  if (tensor.dtype() == plan::F32) return writeFloats(state, tensor.ref(), at, count, body);
  uint64_t size = sizeOf(tensor.dtype());
  std::vector<float> values;
  state.write(tensor.ref(), at * size, count * size, [&](uint64_t first, std::span<std::byte> piece) {
    values.resize(piece.size() / size);
    body(first / size, values);
    convert(Element::F32, reinterpret_cast<const std::byte *>(values.data()), tensor.dtype(), piece.data(), values.size());
  });
}

} // namespace zero::runtime
