// Attention without the score matrix: tiles of scores live in per-thread scratch, and the softmax streams over blocks of keys. Tiles are
// f32 (how they are multiplied: attention_products.h), and results are rounded once. The gradient recomputes the tiles from the saved
// log-sum-exp. Work is cut by batch, head and blocks of queries or keys as the shapes alone say, so results do not depend on the number of
// threads.
#pragma once
#include "runtime/device/cpu/attention_tile.h"
#include "runtime/device/cpu/bf16/unit.h"
#include "runtime/device/cpu/calls.h"
#include "runtime/device/cpu/half/half.h"
#include "runtime/device/cpu/memory.h"
#include "runtime/device/cpu/packing.h"
#include "runtime/device/cpu/thread_pool.h"
#include <optional>
#include <vector>

namespace zero::runtime {

// Per-thread tiles, allocated once for the largest attention of a run.
class AttentionScratch {
public:
  // `unit`: on which bf16 is multiplied; without one it is widened.
  void prepare(int threads, const AttentionLimits &limits, std::optional<bf16::Unit> unit);

  struct Thread {
    std::vector<float> scores, dscores; // [kQueryBlock x ld]
    std::vector<float> max, sum;        // [kQueryBlock]
    std::vector<float> delta;           // [qLen]
    // Of operands of two bytes, widened, and of sums before they are rounded.
    std::vector<float> queries, douts; // [kQueryBlock x dim]
    std::vector<float> keys, values;   // [kKeyBlock x dim]
    std::vector<float> sums;           // [sumsOf() x dim]
    // For a unit: tiles rounded to bf16, and what it packs operands in.
    std::vector<Bf16> rounded, roundedGrads; // [kQueryBlock x ld]
    MappedArena room;
    std::optional<bf16::Unit> unit; // the same of all threads
  };
  Thread &of(int thread) { return threads[static_cast<size_t>(thread)]; }
  void require(const AttentionCall &call) const;
  std::optional<bf16::Unit> unit() const { return threads.front().unit; }

  // A gradient in two bytes sums dQ, dK and dV of a whole head in f32 where that many rows are not too many.
  static bool sumsWholeHeads(const AttentionShape &shape) { return (shape.qLen + 2 * shape.kvLen) * shape.dim <= kMostAttentionSums; }

private:
  std::vector<Thread> threads;
  AttentionLimits limits;
};

// `count` dense rows of an operand as f32: themselves, or widened to `room`.
inline const float *asFloats(const float *rows, int64_t, int64_t, std::vector<float> &) { return rows; }
template <typename Half> const float *asFloats(const Half *rows, int64_t count, int64_t dim, std::vector<float> &room) {
  widen(1, count * dim, rows, 0, room.data(), 0);
  return room.data();
}
// Where the f32 sums of dense rows of a result are made: in place, or in `room`.
inline float *sumsOf(float *rows, float *) { return rows; }
template <typename Half> float *sumsOf(Half *, float *room) { return room; }
// And what makes the result of them.
inline void finishSums(const float *, float *, int64_t, int64_t) {}
template <typename Half> void finishSums(const float *sums, Half *rows, int64_t count, int64_t dim) {
  round(1, count * dim, sums, 0, rows, 0);
}

void attention(ThreadPool &pool, AttentionScratch &scratch, const AttentionCall &call);
void attentionGrad(ThreadPool &pool, AttentionScratch &scratch, const AttentionGradCall &call);

// Which of the keys [key, key + keys) any of the queries [query, query + rows) sees: those of a tile, which begins at a whole vector of
// them.
struct KeyRange {
  int64_t begin, columns; // columns 0: none
};
KeyRange seenKeys(const AttentionCall &call, int64_t query, int64_t rows, int64_t key, int64_t keys);

// And which of them rows weigh that see nothing but what is hidden (runtime/plan/hidden.h).
KeyRange weighedKeys(const AttentionCall &call, int64_t query, int64_t rows, int64_t key, int64_t keys);
// Of how many rows with these largest scores, or logs of sums, that is so.
int64_t hiddenRows(const float *sums, int64_t rows);

// The tile of these queries and of the keys from `key` on.
Tile tileAt(const AttentionCall &call, float *scores, int64_t batch, int64_t head, int64_t query, int64_t rows, int64_t key,
            int64_t columns);

} // namespace zero::runtime
