#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/checksums.h"
#include "runtime/checkpoint/index.h"
#include "runtime/checkpoint/tensors.h"
#include "runtime/data/mapped_file.h"
#include "runtime/data/tensor_file.h"
#include "runtime/files/file.h"
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <set>

namespace fs = std::filesystem;

namespace zero::runtime {
namespace {

// A piece file: its table of contents, and a descriptor to read parts of it.
struct PieceFile {
  File file;
  std::map<std::string, Tensor> tensors;

  explicit PieceFile(const std::string &path) : file(path, File::Mode::Read) {
    MappedFile{path}; // what cannot be mapped is not damaged
    try {
      for (Tensor &tensor : openSafetensors(path).tensors) {
        tensor.bytes = std::span<const std::byte>(static_cast<const std::byte *>(nullptr), tensor.bytes.size()); // the mapping ends here
        tensors.emplace(tensor.name, tensor);
      }
    } catch (const Error &error) {
      throw Damaged(error.what());
    }
  }

  // Of all its checksums, which lie side by side at its end (index.h).
  uint32_t sum() const {
    uint64_t begin = file.size();
    for (const auto &[name, tensor] : tensors)
      if (name.ends_with(".crc32c")) begin = std::min(begin, tensor.offset);
    std::vector<std::byte> sums(file.size() - begin);
    file.read(begin, sums.data(), sums.size());
    return checksum(sums.data(), sums.size());
  }
};

class Reader {
public:
  explicit Reader(const std::string &path) : path(path) {
    std::string name = (fs::path(path) / "index.json").string();
    MappedFile text(name);
    index = parseIndex({reinterpret_cast<const char *>(text.bytes().data()), text.bytes().size()}, name);
  }

  // Elements the checkpoint has of a parameter's tensor.
  uint64_t elements(const std::string &parameter, const std::string &tensor) const {
    const IndexPiece &last = find(parameter, tensor).back();
    return last.start + last.count;
  }

  // Elements [start, start + count) of a parameter's tensor.
  void read(const std::string &parameter, const std::string &tensor, uint64_t start, uint64_t count, float *out) {
    const std::vector<IndexPiece> &list = find(parameter, tensor);
    auto piece = std::upper_bound(list.begin(), list.end(), start, [](uint64_t at, const IndexPiece &p) { return at < p.start; }) - 1;
    for (; count > 0; ++piece) {
      if (piece == list.end() || start - piece->start >= piece->count)
        throw Damaged(fmt::format("checkpoint '{}' lacks element {} of '{}' ({})", path, start, parameter, tensor));
      uint64_t skip = start - piece->start, part = std::min(count, piece->count - skip);
      readPiece(*piece, skip, part, out);
      start += part, count -= part, out += part;
    }
  }

  std::string path;
  Index index;

private:
  const std::vector<IndexPiece> &find(const std::string &parameter, const std::string &tensor) const {
    auto at = index.pieces.find(parameter);
    if (at == index.pieces.end() || !at->second.contains(tensor))
      throw Error(fmt::format("checkpoint '{}' has no {} of parameter '{}': it belongs to another model, or the parameter was frozen", path,
                              tensor, parameter));
    return at->second.at(tensor);
  }

  // Each file is opened once, and compared with what the index says of it.
  const PieceFile *opened(const std::string &name) {
    std::unique_ptr<PieceFile> &open = files[name];
    if (open) return open.get();
    std::string file = (fs::path(path) / name).string();
    fs::file_type kind = kindOf(file);
    if (kind == fs::file_type::not_found) throw Damaged(fmt::format("checkpoint '{}' lacks its file '{}'", path, name));
    if (kind != fs::file_type::regular) throw Damaged(fmt::format("'{}' is no regular file", file)); // a pipe would wait for its other end
    auto found = std::make_unique<PieceFile>(file);
    if (auto sum = index.files.find(name); sum != index.files.end() && sum->second != found->sum())
      throw Damaged(fmt::format("'{}' is damaged, or of another step or run: its checksums are not those that were written", file));
    open = std::move(found);
    return open.get();
  }

  void readPiece(const IndexPiece &piece, uint64_t skip, uint64_t count, float *out) {
    const PieceFile *open = opened(piece.file);
    auto tensor = open->tensors.find(piece.key);
    if (tensor == open->tensors.end() || tensor->second.type != Element::F32 || tensor->second.bytes.size() != piece.count * sizeof(float))
      throw Damaged(
          fmt::format("'{}' has no tensor '{}' of {} F32 elements, which its index promises", open->file.path(), piece.key, piece.count));
    uint64_t begin = tensor->second.offset;
    auto sums = open->tensors.find(piece.key + ".crc32c");
    if (sums == open->tensors.end() || sums->second.type != Element::U32 ||
        sums->second.bytes.size() != checksumBlocks(piece.count) * sizeof(uint32_t))
      throw Damaged(
          fmt::format("'{}' has no tensor '{}' of {} U32 elements", open->file.path(), piece.key + ".crc32c", checksumBlocks(piece.count)));
    for (uint64_t b = skip / kChecksumBlock; b * kChecksumBlock < skip + count; ++b) {
      // The whole block is read and summed, whatever part of it is wanted, and kept: the rest of it is usually wanted next.
      uint64_t first = b * kChecksumBlock, last = std::min(first + kChecksumBlock, piece.count);
      uint64_t from = std::max(first, skip), to = std::min(last, skip + count);
      bool whole = from == first && to == last;
      bool kept = !whole && keptOf == &piece && keptBlock == b;
      if (!whole) block.resize(last - first), keptOf = &piece, keptBlock = b;
      float *values = whole ? out + (first - skip) : block.data();
      if (kept) {
        std::copy(values + (from - first), values + (to - first), out + (from - skip));
        continue;
      }
      open->file.read(begin + first * sizeof(float), values, (last - first) * sizeof(float));
      uint32_t expected = 0;
      open->file.read(sums->second.offset + b * sizeof expected, &expected, sizeof expected);
      if (checksum(values, (last - first) * sizeof(float)) != expected)
        throw Damaged(fmt::format("'{}' is damaged: the elements {} to {} of '{}' are not what was written", open->file.path(), first,
                                  last - 1, piece.key));
      if (!whole) std::copy(values + (from - first), values + (to - first), out + (from - skip));
    }
  }

  std::map<std::string, std::unique_ptr<PieceFile>> files;
  std::vector<float> block; // one that was wanted in part: which of which piece
  const IndexPiece *keptOf = nullptr;
  uint64_t keptBlock = 0;
};

// Of a frozen parameter that the checkpoint has other values of than the model.
void refuseFrozen(const std::string &checkpoint, const plan::Parameter &parameter, bool trained) {
  std::string model = parameter.has_source() ? fmt::format("'{}'", parameter.source().file()) : std::string("--init random");
  if (trained)
    throw Error(fmt::format("the plan freezes parameter '{}', and checkpoint '{}' has other values of it than {}: it was trained until "
                            "then, or that has changed; write the weights of that run (zerorun with its own plan, --resume and --export to "
                            ".onnx) and compile those",
                            parameter.name(), checkpoint, model));
  throw Error(fmt::format("the frozen parameter '{}' has other values in {} than in the run that saved checkpoint '{}', whose other "
                          "parameters were trained beside those; run with the weights of then",
                          parameter.name(), model, checkpoint));
}

// What is frozen is as it was.
void checkFrozen(const Rank &rank, const PieceMap &map, const FrozenSums &frozen, Reader &reader) {
  for (const plan::Parameter &parameter : rank.plan.parameters())
    if (auto sum = reader.index.frozen.find(parameter.name()); sum != reader.index.frozen.end())
      if (sum->second != frozen.whole.at(parameter.name())) refuseFrozen(reader.path, parameter, false);
  std::map<int, uint64_t> sums; // of what this rank owns, where the checkpoint has the numbers
  std::vector<float> values;
  for (int b = 0; b < rank.plan.buckets_size(); ++b) {
    if (rank.plan.buckets(b).trainable()) continue;
    for (const Slice &slice : map.slices(b, ownedBy(rank.plan.buckets(b), rank.rank))) {
      const std::string &name = rank.plan.parameters(slice.parameter).name();
      if (reader.index.frozen.contains(name)) continue;
      for (uint64_t first = 0; first < slice.count; first += kChecksumBlock) {
        values.resize(std::min(kChecksumBlock, slice.count - first));
        reader.read(name, "param", slice.start + first, values.size(), values.data());
        sums[slice.parameter] += frozenSum(slice.start + first, values);
      }
    }
  }
  for (auto [parameter, sum] : sums)
    if (const plan::Parameter &p = rank.plan.parameters(parameter); sum != frozen.owned.at(p.name())) refuseFrozen(reader.path, p, true);
}

void checkFits(const plan::Plan &plan, Reader &reader) {
  if (reader.index.optimizer != optimizerName(plan))
    throw Error(fmt::format("checkpoint '{}' was trained with {}, but the plan uses {}: their states cannot be exchanged", reader.path,
                            reader.index.optimizer, optimizerName(plan)));
  std::set<std::string> names;
  for (const plan::Parameter &parameter : plan.parameters()) {
    names.insert(parameter.name());
    if (!plan::isTrainable(plan, parameter) && reader.index.frozen.contains(parameter.name())) continue;
    if (uint64_t has = reader.elements(parameter.name(), "param"); has != elementsOf(parameter))
      throw Error(fmt::format("checkpoint '{}' has {} elements of parameter '{}', but the plan's has {}: it belongs to another model",
                              reader.path, has, parameter.name(), elementsOf(parameter)));
  }
  auto requireKnown = [&](const auto &parameters) {
    for (const auto &[name, value] : parameters)
      if (!names.contains(name))
        throw Error(
            fmt::format("checkpoint '{}' has a parameter '{}' that the plan has not: it belongs to another model", reader.path, name));
  };
  requireKnown(reader.index.pieces), requireKnown(reader.index.frozen);
}

} // namespace

Progress loadCheckpoint(const Rank &rank, const FrozenSums &frozen, const std::string &checkpoint) {
  Reader reader(checkpoint);
  checkFits(rank.plan, reader);
  PieceMap map(rank.plan);
  checkFrozen(rank, map, frozen, reader);
  for (int b = 0; b < rank.plan.buckets_size(); ++b) {
    const plan::Bucket &bucket = rank.plan.buckets(b);
    for (const SavedTensor &saved : savedTensors(bucket)) {
      bool parameters = saved.tensor->role() == plan::StateTensor::MASTER;
      for (const plan::StateTensor *tensor : parameters ? copiesOfParameters(bucket) : std::vector{saved.tensor}) {
        Range range = heldIn(bucket, *tensor, rank.rank);
        for (const Slice &slice : map.slices(b, range))
          writeNumbers(rank.state, *tensor, slice.at - range.begin, slice.count, [&](uint64_t first, std::span<float> values) {
            reader.read(rank.plan.parameters(slice.parameter).name(), saved.name, slice.start + first, values.size(), values.data());
          });
      }
    }
  }
  return reader.index.progress;
}

} // namespace zero::runtime
