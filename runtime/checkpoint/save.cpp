#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/checksums.h"
#include "runtime/checkpoint/finite.h"
#include "runtime/checkpoint/folders.h"
#include "runtime/checkpoint/index.h"
#include "runtime/checkpoint/tensors.h"
#include "runtime/comm/collectively.h"
#include "runtime/data/safetensors.h"
#include "runtime/files/direct_writer.h"
#include <filesystem>
#include <fmt/format.h>

namespace fs = std::filesystem;

namespace zero::runtime {
namespace {

std::string fileOf(uint64_t rank) { return fmt::format("rank-{}.safetensors", rank); }

struct Piece {
  std::string tensor, key;
  const plan::StateTensor *state;
  int bucket;
  Slice slice;
};

// What one rank owns, in the order of its file. A function of the plan alone, so rank 0 can index all ranks' files.
std::vector<Piece> piecesOf(const plan::Plan &plan, const PieceMap &map, uint64_t rank) {
  std::vector<Piece> pieces;
  for (int b = 0; b < plan.buckets_size(); ++b)
    for (const SavedTensor &tensor : savedTensors(plan.buckets(b)))
      for (const Slice &slice : map.slices(b, ownedBy(plan.buckets(b), rank))) {
        const std::string &name = plan.parameters(slice.parameter).name();
        pieces.push_back(
            {tensor.name, fmt::format("{}[{}:{}].{}", name, slice.start, slice.start + slice.count, tensor.name), tensor.tensor, b, slice});
      }
  return pieces;
}

// Returns the sum of the file (index.h).
uint32_t writePieces(const Rank &rank, const PieceMap &map, const std::string &path) {
  std::vector<Piece> pieces = piecesOf(rank.plan, map, rank.rank);
  std::vector<TensorSpec> specs;
  for (const Piece &piece : pieces) specs.push_back({piece.key, Element::F32, {piece.slice.count}});
  for (const Piece &piece : pieces) specs.push_back({piece.key + ".crc32c", Element::U32, {checksumBlocks(piece.slice.count)}});
  SafetensorsLayout layout = layoutSafetensors(specs);
  File file(path, File::Mode::Create);
  file.reserve(layout.bytes);
  DirectWriter writer(file);
  writer.write(layout.header.data(), layout.header.size());
  std::vector<uint32_t> sums; // of all pieces, in order
  static_assert(kPieceBytes == kChecksumBlock * sizeof(float), "each piece has a sum of its own");
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Piece &piece = pieces[i];
    Range held = heldIn(rank.plan.buckets(piece.bucket), *piece.state, rank.rank);
    if (writer.written() != layout.offsets[i])
      throw Error(fmt::format("'{}' would not lie where '{}' says: this is an error in zerorun", piece.key, path));
    readFloats(rank.state, piece.state->ref(), piece.slice.at - held.begin, piece.slice.count,
               [&](uint64_t first, std::span<const float> values) {
                 requireFinite(rank.plan, piece.tensor, piece.slice, first, values);
                 sums.push_back(checksum(values.data(), values.size_bytes()));
                 writer.write(std::as_bytes(values));
               });
  }
  writer.write(std::as_bytes(std::span(sums)));
  writer.finish();
  file.sync();
  return checksum(sums.data(), sums.size() * sizeof(uint32_t));
}

// `sums`: of each rank's file.
void writeIndex(const plan::Plan &plan, const PieceMap &map, const FrozenSums &frozen, const Progress &progress,
                const std::vector<uint32_t> &sums, const std::string &path) {
  Index index{progress, plan.world(), plan.stage(), optimizerName(plan), {}, frozen.whole};
  for (uint64_t r = 0; r < plan.world(); ++r) {
    index.files[fileOf(r)] = sums[r];
    for (const Piece &piece : piecesOf(plan, map, r))
      index.pieces[plan.parameters(piece.slice.parameter).name()][piece.tensor].push_back(
          {piece.slice.start, piece.slice.count, fileOf(r), piece.key});
  }
  std::string text = indexText(index);
  File file(path, File::Mode::Create);
  file.write(0, text.data(), text.size());
  file.sync();
}

std::string withPrevious(const std::string &sentence, const std::optional<std::string> &previous) {
  return fmt::format("{}; {}", sentence, previous ? fmt::format("'{}' is still whole", *previous) : "there is no checkpoint");
}

// Collective. The new checkpoint is under its name on disk when it returns on rank 0.
void writeWhole(const Rank &rank, const FrozenSums &frozen, const std::string &directory, const Progress &progress,
                const std::optional<std::string> &previous, const std::string &partial, const std::string &final) {
  PieceMap map(rank.plan);
  if (rank.rank == 0) makePartial(partial);
  rank.communicator.barrier();
  uint32_t sum = 0;
  collectively(rank.communicator, [&] {
    try {
      sum = writePieces(rank, map, (fs::path(partial) / fileOf(rank.rank)).string());
    } catch (const Diverged &diverged) {
      // Loss and norm are from before the update that made these numbers.
      throw Error(sentenceOf(diverged, progress.step, "nothing of it is saved", previous));
    } catch (const std::exception &error) {
      throw Error(withPrevious(error.what(), previous));
    }
  });
  std::vector<uint32_t> sums(rank.plan.world());
  rank.communicator.allGather(&sum, sums.data(), sizeof sum);
  if (rank.rank != 0) return;
  writeIndex(rank.plan, map, frozen, progress, sums, (fs::path(partial) / "index.json").string());
  syncDirectory(partial);
  if (hasIndex(final))
    setAside(final); // damaged, or it would be the one this run goes on from
  else if (isThere(final))
    removeCheckpoint(final);
  renameOver(partial, final);
  syncDirectory(directory);
}

} // namespace

uint64_t checkpointBytes(const plan::Plan &plan) {
  uint64_t bytes = 0;
  for (const plan::Bucket &bucket : plan.buckets()) bytes += savedTensors(bucket).size() * bucket.elements() * sizeof(float);
  return bytes;
}

std::string saveCheckpoint(const Rank &rank, const FrozenSums &frozen, const std::string &directory, const Progress &progress,
                           const std::optional<std::string> &previous) {
  std::string final = (fs::path(directory) / fmt::format("step-{}", progress.step)).string(), partial = final + ".partial";
  auto removePartial = [&] { // on a full disk it would be in the way of everything else
    std::error_code ignored;
    fs::remove_all(partial, ignored);
  };
  try {
    writeWhole(rank, frozen, directory, progress, previous, partial, final);
  } catch (const ReportedElsewhere &) {
    throw;
  } catch (const CollectiveError &) {
    removePartial();
    throw;
  } catch (const TimedOut &) { // the other ranks have something to say, too
    throw;
  } catch (const std::exception &error) { // also what std::filesystem says
    removePartial();
    throw Error(withPrevious(error.what(), previous));
  }
  rank.communicator.barrier();
  return final;
}

} // namespace zero::runtime
