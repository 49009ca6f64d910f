// Attention without the score matrix: tiles of scores live in per-thread scratch, products come from the library, and
// the softmax streams over blocks of keys. The gradient recomputes the tiles from the saved log-sum-exp. Work is cut by
// batch, head and blocks of queries or keys as the shapes alone say, so results do not depend on the number of threads.
#pragma once
#include "runtime/device/cpu/attention_tile.h"
#include "runtime/device/cpu/calls.h"
#include "runtime/device/cpu/thread_pool.h"
#include <vector>

namespace zero::runtime {

inline constexpr int64_t kQueryBlock = 64;
inline constexpr int64_t kKeyBlock = 512;
inline constexpr int64_t kGradKeyBlock = 256;

// Per-thread tiles, allocated once for the largest attention of a run.
class AttentionScratch {
public:
  void prepare(int threads, const AttentionLimits &limits);

  struct Thread {
    std::vector<float> scores, dscores; // [kQueryBlock x ld]
    std::vector<float> max, sum;        // [kQueryBlock]
    std::vector<float> delta;           // [qLen]
  };
  Thread &of(int thread) { return threads[static_cast<size_t>(thread)]; }
  void require(const AttentionCall &call) const;

private:
  std::vector<Thread> threads;
  AttentionLimits limits;
};

void attention(ThreadPool &pool, AttentionScratch &scratch, const AttentionCall &call);
void attentionGrad(ThreadPool &pool, AttentionScratch &scratch, const AttentionGradCall &call);

// The part of a tile that both directions share: which of the keys [key, key + keys) the queries from `query` on see.
struct KeyRange {
  int64_t columns;      // keys any of the rows sees; 0: skip the tile
  int64_t firstVisible; // see Tile
};
KeyRange visibleKeys(const AttentionCall &call, int64_t query, int64_t rows, int64_t key, int64_t keys);

// The additive mask from this query and key on.
TileMask maskOf(const AttentionCall &call, int64_t batch, int64_t head, int64_t query, int64_t key);

} // namespace zero::runtime
