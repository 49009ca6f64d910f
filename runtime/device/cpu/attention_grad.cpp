#include "runtime/device/cpu/attention.h"
#include "runtime/device/cpu/attention_tile.h"
#include "runtime/device/cpu/matmul.h"
#include <algorithm>

namespace zero::runtime {
namespace {

// A task per key/value head makes all of its gradients in five products a tile. Few heads, all sequences of the batch together, would leave
// threads idle: then keys and queries are made apart, in seven products a tile and as many tasks as there are blocks.
bool headsSuffice(int64_t kvHeads, int64_t threads) { return 5 * ((kvHeads + threads - 1) / threads) * threads <= 7 * kvHeads; }

// Which of the gradients a task makes.
enum Parts { Keys = 1, Queries = 2 };

// What one query head adds to the gradients, for the queries and keys a task owns.
struct HeadGrad {
  const AttentionGradCall &grad;
  const TileLoops &loops;
  AttentionScratch::Thread &thread;
  int64_t batch, head;
  int parts; // of Parts

  // Keys [keyBegin, keyEnd) get their sums over the queries in order, queries [queryBegin, queryEnd) theirs over the keys. Both ranges
  // begin at whole blocks, so that the tiles are the same however the work is cut.
  void run(int64_t queryBegin, int64_t queryEnd, int64_t keyBegin, int64_t keyEnd) const {
    const AttentionCall &call = grad.forward;
    int64_t dim = call.dim, row = (batch * call.heads + head) * call.qLen;
    int64_t keyRow = (batch * call.kvHeads + head / (call.heads / call.kvHeads)) * call.kvLen;
    const float *q = call.q + row * dim, *dout = grad.dout + row * dim, *lse = call.lse + row;
    float *dq = grad.dq + row * dim, *delta = thread.delta.data();
    float *probabilities = thread.scores.data(), *dscores = thread.dscores.data();
    loops.rowDots(queryEnd - queryBegin, dim, dout + queryBegin * dim, call.out + (row + queryBegin) * dim, delta + queryBegin);
    if (parts & Queries) std::fill(dq + queryBegin * dim, dq + queryEnd * dim, 0.0f);
    for (int64_t key = keyBegin; key < keyEnd; key += kGradKeyBlock) {
      int64_t keys = std::min(kGradKeyBlock, keyEnd - key);
      const float *k = call.k + (keyRow + key) * dim, *v = call.v + (keyRow + key) * dim;
      float *dk = grad.dk + (keyRow + key) * dim, *dv = grad.dv + (keyRow + key) * dim;
      for (int64_t query = queryBegin; query < queryEnd; query += kQueryBlock) {
        int64_t rows = std::min(kQueryBlock, queryEnd - query);
        KeyRange range = visibleKeys(call, query, rows, key, keys);
        int64_t columns = range.columns;
        if (columns == 0) continue;
        int64_t ld = (columns + kVector - 1) / kVector * kVector;
        const float *qBlock = q + query * dim, *doutBlock = dout + query * dim;
        singleMatmul(false, true, rows, columns, dim, 1.0f, qBlock, dim, k, dim, false, probabilities, ld);
        singleMatmul(false, true, rows, columns, dim, 1.0f, doutBlock, dim, v, dim, false, dscores, ld);
        loops.gradTile({probabilities, rows, columns, ld, call.scale, maskOf(call, batch, head, query, key), range.firstVisible}, dscores,
                       lse + query, delta + query);
        if (parts & Keys) {
          singleMatmul(true, false, columns, dim, rows, 1.0f, probabilities, ld, doutBlock, dim, true, dv, dim);
          singleMatmul(true, false, columns, dim, rows, 1.0f, dscores, ld, qBlock, dim, true, dk, dim);
        }
        if (parts & Queries) singleMatmul(false, false, rows, dim, columns, 1.0f, dscores, ld, k, dim, true, dq + query * dim, dim);
      }
    }
  }
};

} // namespace

void attentionGrad(ThreadPool &pool, AttentionScratch &scratch, const AttentionGradCall &grad) {
  const AttentionCall &call = grad.forward;
  scratch.require(call);
  const TileLoops &loops = tileLoops().front();
  int64_t group = call.heads / call.kvHeads, kvHeads = call.batch * call.kvHeads;
  // Some keys of one key/value head: their dK and dV are summed over the query heads in order.
  auto keysOf = [&](int64_t kvHead, int64_t begin, int64_t end, int thread, int parts) {
    std::fill(grad.dk + (kvHead * call.kvLen + begin) * call.dim, grad.dk + (kvHead * call.kvLen + end) * call.dim, 0.0f);
    std::fill(grad.dv + (kvHead * call.kvLen + begin) * call.dim, grad.dv + (kvHead * call.kvLen + end) * call.dim, 0.0f);
    for (int64_t head = kvHead % call.kvHeads * group, i = 0; i < group; ++i)
      HeadGrad{grad, loops, scratch.of(thread), kvHead / call.kvHeads, head + i, parts}.run(0, call.qLen, begin, end);
  };
  // Both ways call the same products on the same tiles, element by element in the same order: their bits are equal.
  if (headsSuffice(kvHeads, pool.threads())) {
    pool.run(kvHeads, [&](int64_t task, int thread) { keysOf(task, 0, call.kvLen, thread, Keys | Queries); });
    return;
  }
  int64_t blocks = (call.kvLen + kGradKeyBlock - 1) / kGradKeyBlock;
  pool.run(kvHeads * blocks, [&](int64_t task, int thread) {
    int64_t begin = task % blocks * kGradKeyBlock; // the first keys of a causal head are seen by most queries
    keysOf(task / blocks, begin, std::min(begin + kGradKeyBlock, call.kvLen), thread, Keys);
  });
  int64_t queryBlocks = (call.qLen + kQueryBlock - 1) / kQueryBlock;
  pool.run(call.batch * call.heads * queryBlocks, [&](int64_t task, int thread) {
    int64_t begin = (queryBlocks - 1 - task % queryBlocks) * kQueryBlock, head = task / queryBlocks;
    HeadGrad{grad, loops, scratch.of(thread), head / call.heads, head % call.heads, Queries}.run(
        begin, std::min(begin + kQueryBlock, call.qLen), 0, call.kvLen);
  });
}

} // namespace zero::runtime
