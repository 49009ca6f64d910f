//===- names.cpp - how numbers, kinds and places are written ------------------------------------------===//
#include "runtime/inspect/names.h"
#include "runtime/inspect/inspect.h"
#include "runtime/plan/mesh.h"
#include "runtime/plan/validate.h"
#include <algorithm>
#include <fmt/format.h>

namespace zero::inspect {
namespace {

bool isNumber(std::string_view part) {
  return !part.empty() && std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
}

} // namespace

const char *kindName(int kind) {
  static constexpr const char *names[kKinds] = {"?",          "parameter", "gradient", "optimizer", "constant", "input",
                                                "activation", "gathered",  "staging",  "scalar",    "fetched"};
  return kind >= 0 && kind < kKinds ? names[kind] : "?";
}

const char *elementName(int type) {
  static constexpr const char *names[] = {"?", "f32", "bf16", "f16", "i64", "i32", "bool"};
  return plan::DType_IsValid(type) ? names[type] : "?";
}

const char *tierName(int tier) {
  static constexpr const char *names[] = {"device", "host", "disk"};
  return tier >= 0 && tier < 3 ? names[tier] : "?";
}

const char *roleName(int role) {
  static constexpr const char *names[] = {"step", "first", "middle", "last", "eval"};
  return role >= 0 && role < 5 ? names[role] : "?";
}

const char *collectiveName(int kind) {
  static constexpr const char *names[] = {"all_gather", "reduce_scatter", "all_reduce"};
  return kind >= 0 && kind < 3 ? names[kind] : "?";
}

std::string grouped(uint64_t n) {
  std::string digits = std::to_string(n), text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i && (digits.size() - i) % 3 == 0) text += ' ';
    text += digits[i];
  }
  return text;
}

std::string human(uint64_t bytes) {
  static constexpr const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = double(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 6) value /= 1024, ++unit;
  return unit ? fmt::format("{:.1f} {}", value, units[unit]) : fmt::format("{} B", bytes);
}

std::string counted(uint64_t n, const std::string &noun) { return grouped(n) + " " + noun + (n == 1 ? "" : "s"); }

std::string layerOf(std::string_view name) {
  name = name.substr(0, name.rfind('#')); // "value#1" is a second result
  if (name.starts_with("/")) name.remove_prefix(1);
  if (name.starts_with("node_")) name.remove_prefix(5);
  size_t module = name.rfind('/');
  std::string path(name);
  std::replace(path.begin(), path.end(), '/', '.');
  for (size_t begin = 0; begin < path.size();) {
    size_t end = std::min(path.find('.', begin), path.size());
    if (begin && isNumber(std::string_view(path).substr(begin, end - begin))) return path.substr(0, end);
    begin = end + 1;
  }
  return module == std::string_view::npos ? path : path.substr(0, module);
}

BucketNames::BucketNames(const plan::Plan &plan) : plan(plan), contents(plan), pieces(plan) {}

std::string BucketNames::parametersIn(const plan::Ref &ref) const {
  plan::Content content = contents.of(ref);
  plan::BufferKind kind = plan.buffers(int(ref.buffer())).kind();
  bool holdsParameters = kind == plan::PARAMETER || kind == plan::GATHERED || kind == plan::GRADIENT || kind == plan::FETCHED;
  if (!holdsParameters || content.part != plan::WHOLE || plan::dependsOnRank(ref)) return "";
  uint64_t element = plan::bytesOf(content.dtype);
  uint64_t begin = content.begin + (ref.offset() - content.offset) / element, end = begin + ref.bytes() / element;
  std::string first;
  size_t others = 0;
  for (const plan::PieceMap::Entry &piece : pieces.piecesOf(content.bucket)) {
    if (piece.begin >= end || piece.end <= begin) continue;
    if (first.empty())
      first = plan.parameters(piece.parameter).name();
    else
      ++others;
  }
  return others ? fmt::format("{} and {} more", first, others) : first;
}

std::vector<std::pair<std::string, uint64_t>> BucketNames::layersOf(const plan::Buffer &buffer) const {
  if (!buffer.has_bucket()) return {{layerOf(buffer.name()), buffer.bytes()}};
  const plan::Bucket &bucket = plan.buckets(int(buffer.bucket()));
  // A shard holds every layer of its bucket in the same proportion as far as the plan can tell: the ranks differ.
  std::vector<std::pair<std::string, uint64_t>> layers;
  uint64_t whole = std::max<uint64_t>(1, bucket.elements()), given = 0;
  for (const plan::PieceMap::Entry &piece : pieces.piecesOf(int(buffer.bucket()))) {
    // Its own name ends in ".weight" or ".bias": where it stands in no numbered layer, its module is the rest.
    const plan::Parameter &parameter = plan.parameters(piece.parameter);
    std::string layer = layerOf(parameter.name());
    if (layer == parameter.name()) layer = layer.substr(0, layer.rfind('.'));
    auto bytes = uint64_t(static_cast<unsigned __int128>(buffer.bytes()) * (piece.end - piece.begin) / whole);
    if (layers.empty() || layers.back().first != layer) layers.push_back({layer, 0});
    layers.back().second += bytes;
    given += bytes;
  }
  if (layers.empty()) layers.push_back({bucket.name(), 0});
  layers.back().second += buffer.bytes() - std::min(given, buffer.bytes()); // padding, and what rounding left
  return layers;
}

} // namespace zero::inspect
