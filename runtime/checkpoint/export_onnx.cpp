#include "runtime/checkpoint/export_onnx.h"
#include "runtime/base/error.h"
#include "runtime/checkpoint/finite.h"
#include "runtime/checkpoint/shared_file.h"
#include "runtime/checkpoint/transposed.h"
#include "runtime/data/element.h"
#include "runtime/plan/model_files.h"
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <map>

namespace fs = std::filesystem;

namespace zero::runtime {
namespace {

// The files to copy: where each is now and where its copy belongs beside the exported model.
std::map<std::string, std::string> filesOf(const plan::Plan &plan, const std::string &path) {
  std::map<std::string, std::string> files{{plan.model(), path}};
  for (const std::string &name : externalFiles(plan.model())) {
    fs::path relative = fs::path(name).lexically_normal();
    if (relative.is_absolute() || *relative.begin() == "..")
      throw Error(fmt::format("'{}' keeps weights in '{}', outside its own folder; export to .safetensors instead", plan.model(), name));
    files[(fs::path(parentOf(plan.model())) / relative).string()] = (fs::path(parentOf(path)) / relative).string();
  }
  return files;
}

std::string canonical(const std::string &path) {
  std::error_code failed;
  fs::path result = fs::weakly_canonical(path, failed);
  return failed ? path : result.string();
}

void checkSource(const plan::Source &source, const std::string &name, uint64_t elements,
                 const std::map<std::string, std::string> &canonicals) {
  std::string advice = "; export to .safetensors instead";
  if (source.file().empty())
    throw Error(fmt::format("'{}' has no bytes of its own in the model (one constant initializer serves several parameters, or it was made "
                            "by --init random), so the ONNX file cannot hold its trained values{}",
                            name, advice));
  if (!canonicals.contains(canonical(source.file())))
    throw Error(fmt::format("'{}' comes from '{}', which is neither the model nor a data file it names{}", name, source.file(), advice));
  if (source.dtype() != plan::F32 && source.dtype() != plan::F16 && source.dtype() != plan::BF16)
    throw Error(fmt::format("'{}' is stored as {} in the model, which training cannot write back{}", name,
                            nameOf(elementOf(source.dtype())), advice));
  if (source.bytes() != elements * sizeOf(source.dtype()))
    throw Error(fmt::format("'{}' has {} bytes in the model but {} elements{}", name, source.bytes(), elements, advice));
}

std::map<std::string, std::string> canonicalFiles(const plan::Plan &plan, const std::string &path) {
  std::map<std::string, std::string> result;
  for (const auto &[from, to] : filesOf(plan, path)) {
    if (canonical(from) == canonical(to))
      throw Error(fmt::format("--export '{}' would overwrite '{}', which the plan was compiled from; name another folder", path, from));
    result[canonical(from)] = to;
  }
  return result;
}

// The data files that a model names.
std::set<std::string> namedBy(const std::string &model) {
  std::set<std::string> places;
  for (const std::string &file : dataFilesOf(model)) places.insert(canonical(file));
  return places;
}

// Those that the models in a folder name, but for one, each with one that does.
void addNamed(const std::string &folder, const std::string &except, std::map<std::string, std::string> &named) {
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    std::string model = at->path().string();
    if (model.ends_with(".onnx") && canonical(model) != except)
      for (const std::string &place : namedBy(model)) named.emplace(place, model);
  }
  if (failed) throw Error(fmt::format("cannot read the folder '{}': {}", folder, failed.message()));
}

// A data file that is there already is replaced if it is that of an earlier export under this name. One that no model names, and that is
// as long as its successor, was left by an export that ended before its model had its name.
void requireOwnData(const std::string &path, const std::string &model, const std::map<std::string, std::string> &files) {
  std::map<std::string, std::string> present = files, others;
  std::erase_if(present, [&](const auto &file) { return file.first == model || !isThere(file.second); });
  if (present.empty()) return;
  std::set<std::string> own = namedBy(path), folders{parentOf(path)};
  for (const auto &[from, to] : present) folders.insert(parentOf(to));
  for (const std::string &folder : folders) addNamed(folder, canonical(path), others);
  for (const auto &[from, to] : present) {
    if (auto other = others.find(canonical(to)); other != others.end())
      throw Error(
          fmt::format("--export '{}' would overwrite '{}', which holds data of '{}'; name another folder", path, to, other->second));
    std::error_code failed;
    if (!own.contains(canonical(to)) && fs::file_size(from, failed) != fs::file_size(to, failed))
      throw Error(fmt::format("--export '{}' would overwrite '{}', which is not of an earlier export under this name; name another folder",
                              path, to));
  }
}

void copyInto(const std::string &from, const File &to) {
  File source(from, File::Mode::Read);
  uint64_t size = source.size();
  to.reserve(size);
  std::vector<std::byte> chunk(std::min<uint64_t>(size, 8u << 20));
  for (uint64_t at = 0; at < size;) {
    uint64_t part = std::min<uint64_t>(size - at, chunk.size());
    source.read(at, chunk.data(), part);
    to.write(at, chunk.data(), part);
    at += part;
  }
}

// Values of the parameter from element `start` on, which are finite.
void writeValues(const File &file, const plan::Source &source, const std::string &parameter, uint64_t start,
                 std::span<const float> values) {
  uint64_t size = sizeOf(source.dtype()), at = source.offset() + start * size;
  if (source.dtype() == plan::F32) return file.write(at, values.data(), values.size_bytes());
  std::vector<std::byte> stored(values.size() * size);
  std::vector<float> again(values.size());
  convert(Element::F32, reinterpret_cast<const std::byte *>(values.data()), source.dtype(), stored.data(), values.size());
  convert(elementOf(source.dtype()), stored.data(), plan::F32, reinterpret_cast<std::byte *>(again.data()), again.size());
  if (uint64_t i = firstNotFinite(again.data(), again.size()); i < again.size())
    throw Error(fmt::format("'{}' holds {} at element {}, which is beyond {}, the type that the model stores it in; nothing is exported; "
                            "export to .safetensors instead, which keeps f32",
                            parameter, values[i], start + i, nameOf(elementOf(source.dtype()))));
  file.write(at, stored.data(), stored.size());
}

} // namespace

void checkOnnxExport(const plan::Plan &plan, const std::string &path) {
  auto files = canonicalFiles(plan, path);
  requireOwnData(path, canonical(plan.model()), files);
  plan::ModelFiles model(plan);
  for (const std::string &name : model.names()) model.check(name);
  std::map<std::pair<std::string, uint64_t>, std::string> places;
  auto check = [&](const plan::Source &source, const std::string &name, uint64_t elements) {
    checkSource(source, name, elements, files);
    auto [other, fresh] = places.emplace(std::pair(canonical(source.file()), source.offset()), name);
    if (!fresh)
      throw Error(
          fmt::format("'{}' and '{}' are different parameters with one initializer in the model, so the ONNX file cannot hold both; "
                      "export to .safetensors instead",
                      other->second, name));
  };
  for (const plan::Parameter &parameter : plan.parameters()) {
    if (!plan::isTrainable(plan, parameter) && !parameter.has_source()) continue; // frozen and not from a file: nothing to write
    check(parameter.source(), parameter.name(), elementsOf(parameter));
    for (const plan::Alias &alias : parameter.aliases()) {
      check(alias.source(), alias.name(), elementsOf(parameter));
      if (alias.source().dtype() != parameter.source().dtype())
        throw Error(fmt::format("'{}' and its tied copy '{}' have different element types in the model; export to .safetensors instead",
                                parameter.name(), alias.name()));
      if (alias.transposed() && parameter.shape_size() != 2)
        throw Error(fmt::format("the plan says that '{}' is '{}' transposed, but that has {} dimensions", alias.name(), parameter.name(),
                                parameter.shape_size()));
    }
  }
}

std::vector<ExportedFile> exportedOnnxFiles(const plan::Plan &plan, const std::string &path) {
  std::vector<ExportedFile> files;
  for (const auto &[from, to] : canonicalFiles(plan, path)) files.push_back({to, File(from, File::Mode::Read).size()});
  return files;
}

void exportOnnx(const Rank &rank, const std::string &path) {
  std::map<std::string, std::unique_ptr<SharedFile>> copies; // by canonical source, the same order on every rank
  for (const auto &[from, to] : canonicalFiles(rank.plan, path)) {
    if (rank.rank == 0) makeFolders(parentOf(to));
    copies[from] = std::make_unique<SharedFile>(to, rank.communicator, [&, from = from](const File &empty) { copyInto(from, empty); });
  }
  auto file = [&](const plan::Source &source) -> const File & { return copies.at(canonical(source.file()))->file(); };
  PieceMap map(rank.plan);
  for (int b = 0; b < rank.plan.buckets_size(); ++b) {
    const plan::Bucket &bucket = rank.plan.buckets(b);
    if (!bucket.trainable()) continue; // the copy has these values
    const plan::Ref &master = plan::masterOf(bucket).ref();
    Range held = heldIn(bucket, plan::masterOf(bucket), rank.rank);
    for (const Slice &slice : map.slices(b, ownedBy(bucket, rank.rank))) {
      const plan::Parameter &parameter = rank.plan.parameters(slice.parameter);
      readFloats(rank.state, master, slice.at - held.begin, slice.count, [&](uint64_t first, std::span<const float> values) {
        writeValues(file(parameter.source()), parameter.source(), parameter.name(), slice.start + first, values);
        for (const plan::Alias &alias : parameter.aliases())
          if (!alias.transposed()) writeValues(file(alias.source()), alias.source(), alias.name(), slice.start + first, values);
      });
    }
  }
  for (auto &[from, copy] : copies) copy->barrier();
  for (const plan::Parameter &parameter : rank.plan.parameters())
    if (plan::isTrainable(rank.plan, parameter))
      for (const plan::Alias &alias : parameter.aliases())
        if (alias.transposed())
          writeTransposed({file(parameter.source()), parameter.source().offset()}, {file(alias.source()), alias.source().offset()},
                          static_cast<uint64_t>(parameter.shape(0)), static_cast<uint64_t>(parameter.shape(1)),
                          sizeOf(parameter.source().dtype()), rank.rank, rank.plan.world());
  // Data files first: whoever sees the new model sees its new data.
  for (auto &[from, copy] : copies)
    if (from != canonical(rank.plan.model())) copy->publish();
  copies.at(canonical(rank.plan.model()))->publish();
}

} // namespace zero::runtime
