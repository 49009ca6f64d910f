#include "runtime/checkpoint/index.h"
#include "runtime/base/error.h"
#include "runtime/checkpoint/checksums.h"
#include <algorithm>
#include <bit>
#include <charconv>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <set>

namespace zero::runtime {
namespace {

constexpr uint64_t kFormat = 3;
constexpr uint64_t kLargest = uint64_t(1) << 62; // no count overflows when two are added
constexpr std::string_view kSum = ",\n \"crc32c\": \"";

std::string sumLine(std::string_view text) { return fmt::format("{}{:08x}\"\n}}\n", kSum, checksum(text.data(), text.size())); }

// Reads fields of one JSON object, each of the kind and in the range it must have.
class Fields {
public:
  Fields(const nlohmann::json &object, const std::string &name) : object(object), name(name) {
    if (!object.is_object()) throw wrong("an entry that is no object");
  }

  uint64_t number(const char *field, uint64_t low, uint64_t high) const {
    auto at = object.find(field);
    if (at == object.end() || !at->is_number_unsigned() || at->get<uint64_t>() < low || at->get<uint64_t>() > high)
      throw wrong(fmt::format("{} for '{}'", at == object.end() ? "nothing" : at->dump(), field));
    return at->get<uint64_t>();
  }

  std::string text(const char *field, const std::set<std::string> &choices = {}) const {
    auto at = object.find(field);
    if (at == object.end() || !at->is_string() || at->get<std::string>().empty() || (!choices.empty() && !choices.contains(*at)))
      throw wrong(fmt::format("{} for '{}'", at == object.end() ? "nothing" : at->dump(), field));
    return *at;
  }

  uint64_t sum(const char *field, size_t digits) const {
    std::string written = text(field);
    uint64_t value = 0;
    auto [end, error] = std::from_chars(written.data(), written.data() + written.size(), value, 16);
    if (error != std::errc() || end != written.data() + written.size() || written.size() != digits)
      throw wrong(fmt::format("'{}' for '{}'", written, field));
    return value;
  }

  bool flag(const char *field) const { // older checkpoints have none: false
    auto at = object.find(field);
    if (at != object.end() && !at->is_boolean()) throw wrong(fmt::format("{} for '{}'", at->dump(), field));
    return at != object.end() && at->get<bool>();
  }

  Damaged wrong(const std::string &what) const {
    return Damaged(fmt::format("'{}' is not the index of a checkpoint, or is damaged: it has {}", name, what));
  }

private:
  const nlohmann::json &object;
  const std::string &name;
};

void readPieces(const nlohmann::json &list, const std::string &name, Index &index) {
  for (const nlohmann::json &entry : list) {
    Fields piece(entry, name);
    std::string file = piece.text("file");
    if (file.find('/') != std::string::npos) throw Damaged(fmt::format("'{}' names a piece file '{}' outside its folder", name, file));
    index.pieces[piece.text("parameter")][piece.text("tensor", {"param", "m", "v", "momentum"})].push_back(
        {piece.number("start", 0, kLargest), piece.number("count", 1, kLargest), file, piece.text("key")});
  }
  for (auto &[parameter, tensors] : index.pieces)
    for (auto &[tensor, pieces] : tensors) {
      std::sort(pieces.begin(), pieces.end(), [](const IndexPiece &a, const IndexPiece &b) { return a.start < b.start; });
      uint64_t end = 0;
      for (const IndexPiece &piece : pieces) {
        if (piece.start != end)
          throw Damaged(fmt::format("'{}' {} element {} of '{}' ({})", name, piece.start > end ? "lacks" : "has twice",
                                    std::min(end, piece.start), parameter, tensor));
        end = piece.start + piece.count;
        if (end > kLargest) throw Damaged(fmt::format("'{}' has more elements of '{}' than there can be", name, parameter));
      }
    }
}

void readSettings(const nlohmann::json &json, const Fields &fields, Index &index) {
  auto settings = json.find("settings");
  if (settings == json.end()) return; // older checkpoints have none
  if (!settings->is_object()) throw fields.wrong("settings that are no object");
  for (const auto &[flag, value] : settings->items()) {
    if (!value.is_string()) throw fields.wrong(fmt::format("{} for '{}'", value.dump(), flag));
    index.progress.settings.emplace_back(flag, value);
  }
}

void readFrozen(const nlohmann::json &json, const Fields &fields, const std::string &name, Index &index) {
  auto frozen = json.find("frozen");
  if (frozen == json.end()) return;
  if (!frozen->is_array()) throw fields.wrong("no list of what is frozen");
  for (const nlohmann::json &entry : *frozen) {
    Fields one(entry, name);
    std::string parameter = one.text("parameter");
    if (index.pieces.contains(parameter) || !index.frozen.emplace(parameter, one.sum("sum", 16)).second)
      throw one.wrong(fmt::format("the frozen parameter '{}' twice", parameter));
  }
}

void readFiles(const nlohmann::json &json, const Fields &fields, const std::string &name, Index &index) {
  auto files = json.find("files");
  if (files == json.end()) return; // older checkpoints have none
  if (!files->is_array()) throw fields.wrong("no list of files");
  for (const nlohmann::json &entry : *files) {
    Fields one(entry, name);
    if (!index.files.emplace(one.text("file"), static_cast<uint32_t>(one.sum("sum", 8))).second)
      throw one.wrong(fmt::format("the file '{}' twice", one.text("file")));
  }
  for (const auto &[parameter, tensors] : index.pieces)
    for (const auto &[tensor, pieces] : tensors)
      for (const IndexPiece &piece : pieces)
        if (!index.files.contains(piece.file)) throw fields.wrong(fmt::format("no sum of its file '{}'", piece.file));
}

} // namespace

std::string indexText(const Index &index) {
  nlohmann::ordered_json json = {
      {"format", kFormat},           {"step", index.progress.step},         {"position", index.progress.position},
      {"seed", index.progress.seed}, {"shuffled", index.progress.shuffled}, {"world", index.world},
      {"stage", index.stage},        {"optimizer", index.optimizer}};
  if (index.progress.skipped || index.progress.scale) json["skipped"] = index.progress.skipped;
  if (index.progress.scale) json["loss_scale"] = index.progress.scale->value, json["good_steps"] = index.progress.scale->good;
  json["settings"] = nlohmann::ordered_json::object();
  for (const auto &[flag, value] : index.progress.settings) json["settings"][flag] = value;
  if (!index.frozen.empty()) {
    auto frozen = nlohmann::ordered_json::array();
    for (const auto &[parameter, sum] : index.frozen) frozen.push_back({{"parameter", parameter}, {"sum", fmt::format("{:016x}", sum)}});
    json["frozen"] = std::move(frozen);
  }
  auto list = nlohmann::ordered_json::array();
  for (const auto &[parameter, tensors] : index.pieces)
    for (const auto &[tensor, pieces] : tensors)
      for (const IndexPiece &piece : pieces)
        list.push_back({{"tensor", tensor},
                        {"parameter", parameter},
                        {"start", piece.start},
                        {"count", piece.count},
                        {"file", piece.file},
                        {"key", piece.key}});
  json["pieces"] = std::move(list);
  auto files = nlohmann::ordered_json::array();
  for (const auto &[file, sum] : index.files) files.push_back({{"file", file}, {"sum", fmt::format("{:08x}", sum)}});
  json["files"] = std::move(files);
  // A flag's value may be any bytes, which JSON cannot hold.
  std::string text = json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  text.resize(text.size() - 2); // the end of the object, which follows its sum
  return text + sumLine(text);
}

Index parseIndex(std::string_view text, const std::string &name) {
  // The sum first: a format that only a damaged byte names is no later format.
  if (size_t at = text.rfind(kSum); at != std::string_view::npos && text.substr(at) != sumLine(text.substr(0, at)))
    throw Damaged(fmt::format("'{}' is damaged: it is not what was written", name));
  nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  Fields fields(json, name); // refuses what is no JSON
  uint64_t format = fields.number("format", 1, UINT64_MAX);
  if (format > kFormat) throw Error(fmt::format("'{}' has format {}; this zerorun knows formats up to {}", name, format, kFormat));
  if (format > 1 && text.rfind(kSum) == std::string_view::npos) throw fields.wrong("no checksum");
  Index index;
  index.progress = {fields.number("step", 0, kLargest), fields.number("position", 0, kLargest), fields.number("seed", 0, UINT64_MAX),
                    fields.flag("shuffled")};
  if (json.contains("skipped")) index.progress.skipped = fields.number("skipped", 0, index.progress.step);
  if (json.contains("loss_scale"))
    index.progress.scale = {fields.number("loss_scale", 1, kLargest), fields.number("good_steps", 0, kLargest)};
  if (index.progress.scale && !std::has_single_bit(index.progress.scale->value)) throw fields.wrong("a loss scale that is no power of two");
  readSettings(json, fields, index);
  index.world = fields.number("world", 1, 1u << 30), index.stage = fields.number("stage", 0, 3);
  index.optimizer = fields.text("optimizer", {"adamw", "sgd"});
  auto pieces = json.find("pieces");
  if (pieces == json.end() || !pieces->is_array()) throw fields.wrong("no list of pieces");
  readPieces(*pieces, name, index);
  readFrozen(json, fields, name, index);
  readFiles(json, fields, name, index);
  return index;
}

} // namespace zero::runtime
