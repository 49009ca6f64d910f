#include "runtime/plan/state.h"
#include "runtime/base/error.h"
#include "runtime/plan/validate.h"
#include <algorithm>
#include <cmath>

namespace zero::plan {

const StateTensor *tensorOf(const Bucket &bucket, StateTensor::Role role) {
  for (const StateTensor &tensor : bucket.tensors())
    if (tensor.role() == role) return &tensor;
  return nullptr;
}

const StateTensor &readOf(const Bucket &bucket) {
  const StateTensor *compute = tensorOf(bucket, StateTensor::COMPUTE);
  return compute ? *compute : masterOf(bucket);
}

const StateTensor &masterOf(const Bucket &bucket) {
  if (const StateTensor *tensor = tensorOf(bucket, StateTensor::MASTER)) return *tensor;
  if (const StateTensor *tensor = tensorOf(bucket, StateTensor::COMPUTE); tensor && !bucket.trainable()) return *tensor;
  throw Error("bucket '" + bucket.name() + "' keeps no " + roleName(StateTensor::MASTER));
}

uint64_t elementsOf(const Bucket &bucket, Part part) { return part == WHOLE ? bucket.elements() : bucket.shard_elements(); }

Range rangeOf(const Bucket &bucket, Part part, uint64_t place) {
  if (part == WHOLE) return {0, bucket.elements()};
  return {place * bucket.shard_elements(), (place + 1) * bucket.shard_elements()};
}

std::vector<StateTensor::Role> momentsOf(OptimizerKind optimizer) {
  if (optimizer == SGD) return {StateTensor::MOMENTUM};
  return {StateTensor::FIRST_MOMENT, StateTensor::SECOND_MOMENT};
}

const char *roleName(StateTensor::Role role) {
  switch (role) {
  case StateTensor::MASTER:
    return "master copy";
  case StateTensor::COMPUTE:
    return "compute copy";
  case StateTensor::GRADIENT:
    return "gradient accumulator";
  case StateTensor::FIRST_MOMENT:
    return "first moment";
  case StateTensor::SECOND_MOMENT:
    return "second moment";
  case StateTensor::MOMENTUM:
    return "momentum";
  default:
    return "tensor of an unknown role";
  }
}

const Launch *launchOf(const Step &step) {
  if (step.has_update_rows()) return &step.update_rows().launch();
  if (step.has_update()) return &step.update().launch();
  return step.has_launch() ? &step.launch() : nullptr;
}

int kernelReads(const Step &step) {
  int others = step.has_update_rows() ? 1 : step.has_update() && step.update().has_apart() ? 2 : 0;
  return std::max(step.reads_size() - others, 0);
}

int kernelWrites(const Step &step) { return std::max(step.writes_size() - (step.has_update() && step.update().has_apart() ? 2 : 0), 0); }

uint64_t rowsOf(const Step &step) {
  if (step.has_write_rows()) return step.reads(1).bytes() / bytesOf(step.write_rows().index_type());
  if (step.has_update_rows()) return step.reads(kernelReads(step)).bytes() / bytesOf(step.update_rows().index_type());
  if (step.has_update() && step.update().has_apart())
    return step.reads(kernelReads(step)).bytes() / bytesOf(step.update().apart().index_type());
  return 0;
}

uint64_t expectedRows(const Step &step) {
  const TableRows &table = step.write_rows();
  double all = double(table.table_rows()) * double(table.row_bytes()), share = all > 0 ? double(step.writes(0).bytes()) / all : 1;
  return static_cast<uint64_t>(std::ceil(double(rowsOf(step)) * std::min(share, 1.0)));
}

Contents::Contents(const Plan &plan) : plan(plan) {
  for (int b = 0; b < plan.buckets_size(); ++b)
    for (const StateTensor &tensor : plan.buckets(b).tensors()) {
      const Ref &ref = tensor.ref();
      kept[{ref.buffer(), ref.offset()}] = {ref.offset() + ref.bytes(), {b, tensor.part(), tensor.dtype(), ref.offset()}};
    }
}

Content Contents::of(const Ref &ref) const {
  const Buffer &buffer = plan.buffers(static_cast<int>(ref.buffer()));
  if (buffer.has_bucket()) return {static_cast<int>(buffer.bucket()), buffer.part(), buffer.dtype(), 0, buffer.begin_elements()};
  auto next = kept.upper_bound({ref.buffer(), ref.offset()});
  if (next == kept.begin()) return {};
  const auto &[place, tensor] = *std::prev(next);
  return place.first == ref.buffer() && ref.offset() < tensor.first ? tensor.second : Content{};
}

} // namespace zero::plan
