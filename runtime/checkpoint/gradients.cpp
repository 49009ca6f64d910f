#include "runtime/base/error.h"
#include "runtime/checkpoint/export.h"
#include "runtime/plan/validate.h"
#include "runtime/storage/table_rows.h"
#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace zero::runtime {

GradientFile::GradientFile(const Rank &rank, const std::string &path, float factor)
    : rank(rank), map(rank.plan), offsets(static_cast<size_t>(rank.plan.parameters_size())), path(path), factor(factor),
      seen(static_cast<size_t>(rank.plan.buckets_size())) {
  std::vector<TensorSpec> specs;
  std::vector<int> owners;
  for (int i = 0; i < rank.plan.parameters_size(); ++i) {
    const plan::Parameter &parameter = rank.plan.parameters(i);
    if (!plan::isTrainable(rank.plan, parameter)) continue;
    specs.push_back({parameter.name(), Element::F32, {parameter.shape().begin(), parameter.shape().end()}});
    owners.push_back(i);
  }
  SafetensorsLayout layout = layoutSafetensors(specs);
  for (size_t i = 0; i < owners.size(); ++i) offsets[static_cast<size_t>(owners[i])] = layout.offsets[i];
  file = std::make_unique<SharedFile>(path, rank.communicator, [&](const File &empty) {
    empty.reserve(layout.bytes);
    empty.write(0, layout.header.data(), layout.header.size());
  });
}

void GradientFile::add(const plan::Step &step) {
  if (step.has_update_rows()) return addRows(step);
  const plan::Update &update = step.update();
  int index = static_cast<int>(update.bucket());
  const plan::Bucket &bucket = rank.plan.buckets(index);
  uint64_t from = plan::rangeOf(bucket, update.part(), rank.rank).begin + update.begin_elements();
  uint64_t count = plan::gradientOf(step).bytes() / plan::bytesOf(update.dtype());
  Range held{from, from + count}, own = ownedBy(bucket, rank.rank); // all ranks may hold a whole gradient; each writes its part
  uint64_t begin = std::max(held.begin, own.begin), end = std::min(held.end, own.end);
  for (const Slice &slice : map.slices(index, {begin, std::max(begin, end)}))
    readFloats(rank.state, plan::gradientOf(step), slice.at - held.begin, slice.count,
               [&](uint64_t first, std::span<const float> values) { write(slice.parameter, slice.start + first, values); });
  std::lock_guard lock(guard);
  seen[static_cast<size_t>(index)] += count;
}

// They replace what their updates were shown, of equal indices the first: that has the gradient.
void GradientFile::addRows(const plan::Step &step) {
  const plan::UpdateRows &update = step.update_rows();
  const plan::Ref &ref = step.reads(plan::kernelReads(step));
  TableRows table{update.index_type(), ref.bytes() / plan::bytesOf(update.index_type()), update.row_elements(), 0, 0};
  std::vector<std::byte> indices(ref.bytes());
  rank.state.read(ref, 0, indices);
  int parameter = map.piecesOf(static_cast<int>(update.tiles(0).bucket())).front().parameter;
  table.bytes = plan::elementsOf(rank.plan.parameters(parameter)); // all of it, in elements
  std::set<int64_t> done;
  for (uint64_t row = 0; row < table.count; ++row)
    if (auto part = partOf(table, indices.data(), row); part && done.insert(indexAt(table, indices.data(), row)).second)
      readFloats(rank.state, plan::gradientOf(step), part->inRows, part->bytes,
                 [&](uint64_t first, std::span<const float> values) { write(parameter, part->inWindow + first, values); });
}

void GradientFile::write(int parameter, uint64_t element, std::span<const float> values) const {
  std::vector<float> multiplied;
  if (factor != 1) {
    multiplied.resize(values.size());
    std::transform(values.begin(), values.end(), multiplied.begin(), [this](float value) { return value * factor; });
    values = multiplied;
  }
  file->file().write(offsets[static_cast<size_t>(parameter)] + element * sizeof(float), values.data(), values.size_bytes());
}

void GradientFile::finish() {
  for (int b = 0; b < rank.plan.buckets_size(); ++b)
    if (const plan::Bucket &bucket = rank.plan.buckets(b); bucket.trainable() && seen[static_cast<size_t>(b)] < bucket.shard_elements())
      throw Error(fmt::format("the plan's step does not update all of bucket '{}', so '{}' would lack its gradients",
                              rank.plan.buckets(b).name(), path));
  file->publish();
}

} // namespace zero::runtime
