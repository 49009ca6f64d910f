#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/checksums.h"
#include "runtime/checkpoint/files.h"
#include "runtime/checkpoint/tensors.h"
#include "runtime/data/safetensors.h"
#include "runtime/plan/error.h"
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace fs = std::filesystem;

namespace zero::runtime {
namespace {

std::string fileOf(uint64_t rank) { return fmt::format("rank-{}.safetensors", rank); }

struct Piece {
  std::string tensor, key;
  const plan::Ref *ref;
  int bucket;
  Slice slice;
};

// What one rank owns, in the order of its file. A function of the plan alone, so rank 0 can index all ranks' files.
std::vector<Piece> piecesOf(const plan::Plan &plan, const SliceMap &map, uint64_t rank) {
  std::vector<Piece> pieces;
  for (int b = 0; b < plan.buckets_size(); ++b)
    for (const StateTensor &tensor : stateTensors(plan, plan.buckets(b)))
      for (const Slice &slice : map.slices(b, ownedBy(plan.buckets(b), rank))) {
        const std::string &name = plan.parameters(slice.parameter).name();
        pieces.push_back(
            {tensor.name, fmt::format("{}[{}:{}].{}", name, slice.start, slice.start + slice.count, tensor.name), tensor.ref, b, slice});
      }
  return pieces;
}

void writePieces(const Rank &rank, const SliceMap &map, const std::string &path) {
  std::vector<Piece> pieces = piecesOf(rank.plan, map, rank.rank);
  std::vector<TensorSpec> specs;
  for (const Piece &piece : pieces) specs.push_back({piece.key, Element::F32, {piece.slice.count}});
  for (const Piece &piece : pieces) specs.push_back({piece.key + ".crc32c", Element::U32, {checksumBlocks(piece.slice.count)}});
  SafetensorsLayout layout = layoutSafetensors(specs);
  File file(path, File::Mode::Create);
  file.reserve(layout.bytes);
  file.write(0, layout.header.data(), layout.header.size());
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Piece &piece = pieces[i];
    Range held = heldIn(rank.plan.buckets(piece.bucket), *piece.ref, rank.rank);
    auto *values = static_cast<const float *>(rank.locate(*piece.ref)) + (piece.slice.at - held.begin);
    std::vector<uint32_t> sums = checksums(values, piece.slice.count);
    file.write(layout.offsets[i], values, piece.slice.count * sizeof(float));
    file.write(layout.offsets[pieces.size() + i], sums.data(), sums.size() * sizeof(uint32_t));
  }
  file.sync();
}

void writeIndex(const plan::Plan &plan, const SliceMap &map, const Progress &progress, const std::string &path) {
  nlohmann::ordered_json index = {
      {"format", 1},           {"step", progress.step}, {"position", progress.position},   {"seed", progress.seed},
      {"world", plan.world()}, {"stage", plan.stage()}, {"optimizer", optimizerName(plan)}};
  index["settings"] = nlohmann::ordered_json::object();
  for (const auto &[flag, value] : progress.settings) index["settings"][flag] = value;
  auto pieces = nlohmann::ordered_json::array();
  for (uint64_t r = 0; r < plan.world(); ++r)
    for (const Piece &piece : piecesOf(plan, map, r))
      pieces.push_back({{"tensor", piece.tensor},
                        {"parameter", plan.parameters(piece.slice.parameter).name()},
                        {"start", piece.slice.start},
                        {"count", piece.slice.count},
                        {"file", fileOf(r)},
                        {"key", piece.key}});
  index["pieces"] = std::move(pieces);
  std::string text = index.dump(1);
  File file(path, File::Mode::Create);
  file.write(0, text.data(), text.size());
  file.sync();
}

// step-N of "step-N", or nothing for any other name.
std::optional<uint64_t> stepOf(const std::string &name) {
  if (!name.starts_with("step-") || name.size() == 5 || name.size() > 23 || name.find_first_not_of("0123456789", 5) != std::string::npos)
    return std::nullopt;
  return std::stoull(name.substr(5));
}

void removePartial(const std::string &directory) {
  std::error_code ignored;
  for (const auto &entry : fs::directory_iterator(directory, ignored)) {
    std::string name = entry.path().filename().string();
    if (name.ends_with(".partial") && stepOf(name.substr(0, name.size() - 8))) fs::remove_all(entry.path(), ignored);
  }
}

// Collective. The new checkpoint is under its name on disk when it returns on rank 0.
void writeWhole(const Rank &rank, const std::string &directory, const Progress &progress, const std::string &partial,
                const std::string &final) {
  SliceMap map(rank.plan);
  if (rank.rank == 0) {
    std::error_code failed;
    removePartial(directory);
    fs::create_directories(partial, failed);
    if (failed) throw Error(fmt::format("cannot create '{}': {}", partial, failed.message()));
  }
  rank.communicator.barrier();
  writePieces(rank, map, (fs::path(partial) / fileOf(rank.rank)).string());
  rank.communicator.barrier();
  if (rank.rank != 0) return;
  writeIndex(rank.plan, map, progress, (fs::path(partial) / "index.json").string());
  syncDirectory(partial);
  if (fs::exists(final)) { // not whole, or it would be the one this run goes on from
    std::error_code ignored;
    fs::remove_all(final, ignored);
  }
  renameOver(partial, final);
  syncDirectory(directory);
}

} // namespace

std::vector<std::string> wholeCheckpoints(const std::string &directory) {
  std::vector<std::pair<uint64_t, std::string>> found;
  std::error_code missing;
  for (const auto &entry : fs::directory_iterator(directory, missing))
    if (auto step = stepOf(entry.path().filename().string()); step && fs::exists(entry.path() / "index.json"))
      found.emplace_back(*step, entry.path().string());
  std::sort(found.begin(), found.end());
  std::vector<std::string> paths;
  for (auto &[step, path] : found) paths.push_back(path);
  return paths;
}

std::string findCheckpoint(const std::string &directory) {
  if (fs::exists(fs::path(directory) / "index.json")) return directory;
  std::vector<std::string> all = wholeCheckpoints(directory);
  if (all.empty()) throw Error(fmt::format("'{}' holds no whole checkpoint: neither index.json nor a folder step-N with one", directory));
  return all.back();
}

std::string saveCheckpoint(const Rank &rank, const std::string &directory, const Progress &progress,
                           const std::optional<std::string> &previous) {
  std::string final = (fs::path(directory) / fmt::format("step-{}", progress.step)).string(), partial = final + ".partial";
  std::error_code ignored;
  try {
    writeWhole(rank, directory, progress, partial, final);
  } catch (const Error &error) {
    fs::remove_all(partial, ignored); // on a full disk it would be in the way of everything else
    throw Error(fmt::format("{}; {}", error.what(), previous ? fmt::format("'{}' is still whole", *previous) : "there is no checkpoint"));
  }
  if (rank.rank == 0 && previous && *previous != final) fs::remove_all(*previous, ignored);
  rank.communicator.barrier();
  return final;
}

} // namespace zero::runtime
