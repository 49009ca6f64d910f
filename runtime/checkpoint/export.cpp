// Trained weights as .safetensors, and the choice between the two formats.
#include "runtime/checkpoint/export.h"
#include "runtime/base/error.h"
#include "runtime/checkpoint/export_onnx.h"
#include "runtime/checkpoint/first_values.h"
#include "runtime/checkpoint/transposed.h"
#include <algorithm>
#include <fmt/format.h>

namespace zero::runtime {
namespace {

struct WeightsLayout {
  SafetensorsLayout file;
  std::vector<size_t> parameter;          // tensor of each parameter that is exported
  std::vector<std::vector<size_t>> alias; // tensors of each such parameter's aliases
};

bool belongs(const plan::Plan &plan, const plan::Parameter &parameter, Exported which) {
  return which == Exported::All || plan::isTrainable(plan, parameter);
}

WeightsLayout layoutWeights(const plan::Plan &plan, Exported which) {
  WeightsLayout layout;
  std::vector<TensorSpec> specs;
  for (const plan::Parameter &parameter : plan.parameters()) {
    std::vector<uint64_t> shape(parameter.shape().begin(), parameter.shape().end());
    layout.parameter.push_back(specs.size());
    layout.alias.emplace_back();
    if (!belongs(plan, parameter, which)) continue;
    specs.push_back({parameter.name(), Element::F32, shape});
    for (const plan::Alias &alias : parameter.aliases()) {
      layout.alias.back().push_back(specs.size());
      std::vector<uint64_t> reversed(shape.rbegin(), shape.rend());
      if (alias.transposed() && shape.size() != 2)
        throw Error(fmt::format("the plan says that '{}' is '{}' transposed, but that has {} dimensions", alias.name(), parameter.name(),
                                shape.size()));
      specs.push_back({alias.name(), Element::F32, alias.transposed() ? reversed : shape});
    }
  }
  layout.file = layoutSafetensors(specs, {{"format", "pt"}});
  return layout;
}

void exportSafetensors(const Rank &rank, const std::string &path, Exported which) {
  WeightsLayout layout = layoutWeights(rank.plan, which);
  auto offset = [&](size_t tensor) { return layout.file.offsets[tensor]; };
  if (rank.rank == 0) makeFolders(parentOf(path)); // what was there at the start may have been removed
  SharedFile shared(path, rank.communicator, [&](const File &empty) {
    empty.reserve(layout.file.bytes);
    empty.write(0, layout.file.header.data(), layout.file.header.size());
  });
  const File &file = shared.file();
  PieceMap map(rank.plan);
  FirstValues asFrozen(rank.plan);
  std::vector<float> part;
  for (int b = 0; b < rank.plan.buckets_size(); ++b) {
    const plan::Bucket &bucket = rank.plan.buckets(b);
    const plan::StateTensor &master = plan::masterOf(bucket);
    Range held = heldIn(bucket, master, rank.rank);
    for (const Slice &slice : map.slices(b, ownedBy(bucket, rank.rank))) {
      const plan::Parameter &parameter = rank.plan.parameters(slice.parameter);
      if (!belongs(rank.plan, parameter, which)) continue;
      auto p = static_cast<size_t>(slice.parameter);
      auto write = [&](uint64_t first, std::span<const float> values) {
        uint64_t at = (slice.start + first) * sizeof(float);
        file.write(offset(layout.parameter[p]) + at, values.data(), values.size_bytes());
        for (int a = 0; a < parameter.aliases_size(); ++a)
          if (!parameter.aliases(a).transposed())
            file.write(offset(layout.alias[p][static_cast<size_t>(a)]) + at, values.data(), values.size_bytes());
      };
      if (master.dtype() == plan::F32) {
        readFloats(rank.state, master.ref(), slice.at - held.begin, slice.count, write);
        continue;
      }
      for (uint64_t first = 0; first < slice.count; first += part.size()) { // frozen, it rests rounded
        part.resize(std::min(kPieceBytes / sizeof(float), slice.count - first));
        asFrozen.read(parameter, slice.start + first, part);
        write(first, part);
      }
    }
  }
  shared.barrier(); // transposed copies are made from what all ranks have written
  for (size_t p = 0; p < layout.parameter.size(); ++p) {
    const plan::Parameter &parameter = rank.plan.parameters(static_cast<int>(p));
    for (size_t a = 0; a < layout.alias[p].size(); ++a)
      if (parameter.aliases(static_cast<int>(a)).transposed())
        writeTransposed({file, offset(layout.parameter[p])}, {file, offset(layout.alias[p][a])}, static_cast<uint64_t>(parameter.shape(0)),
                        static_cast<uint64_t>(parameter.shape(1)), sizeof(float), rank.rank, rank.plan.world());
  }
  shared.publish();
}

} // namespace

void checkExport(const plan::Plan &plan, const std::string &path, Exported which) {
  if (path.ends_with(".onnx") && which == Exported::Trained)
    throw Error(fmt::format("--export '{}' with --only-trained: an ONNX file holds the whole model; export to .safetensors", path));
  if (path.ends_with(".onnx"))
    checkOnnxExport(plan, path);
  else if (path.ends_with(".safetensors"))
    layoutWeights(plan, which);
  else
    throw Error(fmt::format("--export '{}' has an ending that is not known: .safetensors or .onnx", path));
}

std::vector<ExportedFile> exportedFiles(const plan::Plan &plan, const std::string &path, Exported which) {
  if (path.ends_with(".onnx")) return exportedOnnxFiles(plan, path);
  return {{path, layoutWeights(plan, which).file.bytes}};
}

void exportWeights(const Rank &rank, const std::string &path, Exported which) {
  checkExport(rank.plan, path, which);
  if (path.ends_with(".onnx"))
    exportOnnx(rank, path);
  else
    exportSafetensors(rank, path, which);
}

} // namespace zero::runtime
