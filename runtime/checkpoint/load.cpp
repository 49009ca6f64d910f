#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/checksums.h"
#include "runtime/checkpoint/files.h"
#include "runtime/checkpoint/tensors.h"
#include "runtime/data/mapped_file.h"
#include "runtime/data/tensor_file.h"
#include "runtime/plan/error.h"
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>

namespace zero::runtime {
namespace {

struct Piece {
  uint64_t start, count;
  std::string file, key;
};

// A piece file: its table of contents, and a descriptor to read parts of it.
struct PieceFile {
  File file;
  std::map<std::string, Tensor> tensors;

  explicit PieceFile(const std::string &path) : file(path, File::Mode::Read) {
    for (Tensor &tensor : openSafetensors(path).tensors) {
      tensor.bytes = std::span<const std::byte>(static_cast<const std::byte *>(nullptr), tensor.bytes.size()); // the mapping ends here
      tensors.emplace(tensor.name, tensor);
    }
  }
};

class Reader {
public:
  explicit Reader(const std::string &path) : path(path) {
    std::string name = (std::filesystem::path(path) / "index.json").string();
    MappedFile text(name);
    const char *begin = reinterpret_cast<const char *>(text.bytes().data());
    nlohmann::json index = nlohmann::json::parse(begin, begin + text.bytes().size(), nullptr, false);
    try {
      if (index.at("format").get<uint64_t>() != 1)
        throw Error(fmt::format("'{}' has format {}; this zerorun knows format 1", name, index["format"].dump()));
      progress = {index.at("step"), index.at("position"), index.at("seed"), {}};
      if (index.contains("settings"))
        for (const auto &[flag, value] : index["settings"].items()) progress.settings.emplace_back(flag, value);
      optimizer = index.at("optimizer");
      for (const auto &p : index.at("pieces")) {
        std::string file = p.at("file");
        if (file.empty() || file.find('/') != std::string::npos)
          throw Error(fmt::format("'{}' names a piece file '{}' outside its folder", name, file));
        pieces[p.at("parameter").get<std::string>()][p.at("tensor")].push_back({p.at("start"), p.at("count"), file, p.at("key")});
      }
    } catch (const nlohmann::json::exception &) {
      throw Error(fmt::format("'{}' is not the index of a checkpoint, or is damaged", name));
    }
    for (auto &[parameter, tensors] : pieces)
      for (auto &[tensor, list] : tensors)
        std::sort(list.begin(), list.end(), [](const Piece &a, const Piece &b) { return a.start < b.start; });
  }

  // Elements the checkpoint has of a parameter's tensor, counting each once.
  uint64_t elements(const std::string &parameter, const std::string &tensor) {
    uint64_t end = 0;
    for (const Piece &piece : find(parameter, tensor)) end = std::max(end, piece.start + piece.count);
    return end;
  }

  // Elements [start, start + count) of a parameter's tensor.
  void read(const std::string &parameter, const std::string &tensor, uint64_t start, uint64_t count, float *out) {
    const std::vector<Piece> &list = find(parameter, tensor);
    auto piece = std::upper_bound(list.begin(), list.end(), start, [](uint64_t at, const Piece &p) { return at < p.start; });
    if (piece != list.begin()) --piece;
    for (; count > 0; ++piece) {
      while (piece != list.end() && piece->start <= start && piece->start + piece->count <= start) ++piece;
      if (piece == list.end() || piece->start > start)
        throw Error(fmt::format("checkpoint '{}' lacks element {} of '{}' ({})", path, start, parameter, tensor));
      uint64_t skip = start - piece->start, part = std::min(count, piece->count - skip);
      readPiece(*piece, skip, part, out);
      start += part, count -= part, out += part;
    }
  }

  const std::map<std::string, std::map<std::string, std::vector<Piece>>> &all() const { return pieces; }
  Progress progress;
  std::string optimizer, path;

private:
  const std::vector<Piece> &find(const std::string &parameter, const std::string &tensor) {
    auto at = pieces.find(parameter);
    if (at == pieces.end() || !at->second.contains(tensor))
      throw Error(fmt::format("checkpoint '{}' has no {} of parameter '{}': it belongs to another model, or the parameter was frozen", path,
                              tensor, parameter));
    return at->second[tensor];
  }

  void readPiece(const Piece &piece, uint64_t skip, uint64_t count, float *out) {
    auto &open = files[piece.file];
    if (!open) open = std::make_unique<PieceFile>((std::filesystem::path(path) / piece.file).string());
    auto tensor = open->tensors.find(piece.key);
    if (tensor == open->tensors.end() || tensor->second.type != Element::F32 || tensor->second.bytes.size() != piece.count * sizeof(float))
      throw Error(
          fmt::format("'{}' has no tensor '{}' of {} F32 elements, which its index promises", open->file.path(), piece.key, piece.count));
    uint64_t begin = tensor->second.offset;
    auto sums = open->tensors.find(piece.key + ".crc32c");
    if (sums == open->tensors.end() || sums->second.type != Element::U32 ||
        sums->second.bytes.size() != checksumBlocks(piece.count) * sizeof(uint32_t))
      throw Error(
          fmt::format("'{}' has no tensor '{}' of {} U32 elements", open->file.path(), piece.key + ".crc32c", checksumBlocks(piece.count)));
    for (uint64_t b = skip / kChecksumBlock; b * kChecksumBlock < skip + count; ++b) {
      // The whole block is read and summed, whatever part of it is wanted.
      uint64_t first = b * kChecksumBlock, last = std::min(first + kChecksumBlock, piece.count);
      uint64_t from = std::max(first, skip), to = std::min(last, skip + count);
      bool whole = from == first && to == last;
      if (!whole) block.resize(last - first);
      float *values = whole ? out + (first - skip) : block.data();
      open->file.read(begin + first * sizeof(float), values, (last - first) * sizeof(float));
      uint32_t expected = 0;
      open->file.read(sums->second.offset + b * sizeof expected, &expected, sizeof expected);
      if (checksum(values, (last - first) * sizeof(float)) != expected)
        throw Error(fmt::format("'{}' is damaged: the elements {} to {} of '{}' are not what was written; resume another checkpoint",
                                open->file.path(), first, last - 1, piece.key));
      if (!whole) std::copy(values + (from - first), values + (to - first), out + (from - skip));
    }
  }

  std::map<std::string, std::map<std::string, std::vector<Piece>>> pieces; // parameter, tensor
  std::map<std::string, std::unique_ptr<PieceFile>> files;
  std::vector<float> block;
};

void checkFits(const plan::Plan &plan, Reader &reader) {
  if (reader.optimizer != optimizerName(plan))
    throw Error(fmt::format("checkpoint '{}' was trained with {}, but the plan uses {}: their states cannot be exchanged", reader.path,
                            reader.optimizer, optimizerName(plan)));
  for (const plan::Parameter &parameter : plan.parameters())
    if (uint64_t has = reader.elements(parameter.name(), "param"); has != elementsOf(parameter))
      throw Error(fmt::format("checkpoint '{}' has {} elements of parameter '{}', but the plan's has {}: it belongs to another model",
                              reader.path, has, parameter.name(), elementsOf(parameter)));
  if (reader.all().size() != static_cast<size_t>(plan.parameters_size()))
    for (const auto &[name, pieces] : reader.all())
      if (std::none_of(plan.parameters().begin(), plan.parameters().end(), [&](const auto &p) { return p.name() == name; }))
        throw Error(
            fmt::format("checkpoint '{}' has a parameter '{}' that the plan has not: it belongs to another model", reader.path, name));
}

} // namespace

Progress loadCheckpoint(const Rank &rank, const std::string &checkpoint) {
  Reader reader(checkpoint);
  checkFits(rank.plan, reader);
  SliceMap map(rank.plan);
  for (int b = 0; b < rank.plan.buckets_size(); ++b) {
    const plan::Bucket &bucket = rank.plan.buckets(b);
    for (const StateTensor &tensor : stateTensors(rank.plan, bucket)) {
      Range range = heldIn(bucket, *tensor.ref, rank.rank);
      auto *values = static_cast<float *>(rank.locate(*tensor.ref));
      for (const Slice &slice : map.slices(b, range))
        reader.read(rank.plan.parameters(slice.parameter).name(), tensor.name, slice.start, slice.count, values + (slice.at - range.begin));
    }
  }
  return reader.progress;
}

} // namespace zero::runtime
