#include "runtime/device/cpu/attention.h"
#include "runtime/device/cpu/attention_products.h"
#include "runtime/device/cpu/attention_tile.h"
#include <algorithm>

namespace zero::runtime {
namespace {

// A task per key/value head makes all of its gradients in five products a tile. Few heads, all sequences of the batch together, would leave
// threads idle: then keys and queries are made apart, in seven products a tile and as many tasks as there are blocks.
bool headsSuffice(int64_t kvHeads, int64_t threads) { return 5 * ((kvHeads + threads - 1) / threads) * threads <= 7 * kvHeads; }

// Which of the gradients a task makes; that of a bias is made with the queries'.
enum Parts { Keys = 1, Queries = 2 };

// Samples whose gradients of the bias are summed, one after another by one task; 1 where there is no bias.
int64_t samplesOf(const AttentionGradCall &grad) { return grad.dbias ? grad.forward.batch / grad.forward.biasParts : 1; }

// Rows of the bias's gradient from `query` on, in the part of a sample.
float *biasRows(const AttentionGradCall &grad, int64_t batch, int64_t head, int64_t query) {
  const AttentionCall &call = grad.forward;
  int64_t part = batch / samplesOf(grad);
  return static_cast<float *>(grad.dbias) + ((part * call.heads + head) * call.qLen + query) * call.kvLen;
}

// What one query head adds to the gradients, for the queries and keys a task owns.
template <typename T, typename Products> struct HeadGrad {
  const AttentionGradCall &grad;
  const TileLoops &loops;
  AttentionScratch::Thread &thread;
  int64_t batch, head;
  int parts; // of Parts

  // Keys [keyBegin, keyEnd) get their sums over the queries in order, queries [queryBegin, queryEnd) theirs over the keys. Both ranges
  // begin at whole blocks, so that the tiles are the same however the work is cut. The sums are dense rows in f32.
  void run(int64_t queryBegin, int64_t queryEnd, int64_t keyBegin, int64_t keyEnd, float *dq, float *dk, float *dv) const {
    const AttentionCall &call = grad.forward;
    int64_t dim = call.dim, row = (batch * call.heads + head) * call.qLen;
    int64_t keyRow = (batch * call.kvHeads + head / (call.heads / call.kvHeads)) * call.kvLen;
    const T *q = at(call.q, row), *dout = at(grad.dout, row), *out = at(call.out, row);
    const float *lse = static_cast<const float *>(call.lse) + row;
    float *delta = thread.delta.data(), *probabilities = thread.scores.data(), *dscores = thread.dscores.data();
    for (int64_t query = queryBegin; query < queryEnd; query += kQueryBlock) {
      int64_t rows = std::min(kQueryBlock, queryEnd - query);
      loops.rowDots(rows, dim, asFloats(dout + query * dim, rows, dim, thread.douts),
                    asFloats(out + query * dim, rows, dim, thread.queries), delta + query);
    }
    if (parts & Queries) std::fill(dq, dq + (queryEnd - queryBegin) * dim, 0.0f);
    for (int64_t key = keyBegin; key < keyEnd; key += kGradKeyBlock) {
      int64_t keys = std::min(kGradKeyBlock, keyEnd - key);
      const auto *k = Products::rowsOf(at(call.k, keyRow + key), keys, dim, thread.keys);
      const auto *v = Products::rowsOf(at(call.v, keyRow + key), keys, dim, thread.values);
      for (int64_t query = queryBegin; query < queryEnd; query += kQueryBlock) {
        int64_t rows = std::min(kQueryBlock, queryEnd - query);
        auto add = [&](KeyRange some, auto gradTile) {
          auto [begin, columns] = some;
          if (columns == 0) return;
          Tile tile = tileAt(call, probabilities, batch, head, query, rows, key + begin, columns);
          const auto *qBlock = Products::rowsOf(q + query * dim, rows, dim, thread.queries);
          const auto *doutBlock = Products::rowsOf(dout + query * dim, rows, dim, thread.douts);
          Products::multiply(false, true, rows, columns, dim, qBlock, dim, k + begin * dim, dim, false, tile.scores, tile.ld, thread);
          Products::multiply(false, true, rows, columns, dim, doutBlock, dim, v + begin * dim, dim, false, dscores, tile.ld, thread);
          float *dbias = grad.dbias && parts & Queries ? biasRows(grad, batch, head, query) + key + begin : nullptr;
          gradTile(tile, dscores, lse + query, delta + query, dbias);
          const auto *dS = Products::tileOf(thread.dscores, rows, columns, tile.ld, thread.roundedGrads);
          if (parts & Keys) {
            int64_t first = (key - keyBegin + begin) * dim;
            const auto *p = Products::tileOf(thread.scores, rows, columns, tile.ld, thread.rounded);
            Products::multiply(true, false, columns, dim, rows, p, tile.ld, doutBlock, dim, true, dv + first, dim, thread);
            Products::multiply(true, false, columns, dim, rows, dS, tile.ld, qBlock, dim, true, dk + first, dim, thread);
          }
          if (parts & Queries)
            Products::multiply(false, false, rows, dim, columns, dS, tile.ld, k + begin * dim, dim, true, dq + (query - queryBegin) * dim,
                               dim, thread);
        };
        int64_t hidden = call.mask ? hiddenRows(lse + query, rows) : 0;
        if (hidden < rows) add(seenKeys(call, query, rows, key, keys), loops.gradTile);
        if (hidden > 0) add(weighedKeys(call, query, rows, key, keys), loops.hiddenGradTile); // of rows that see nothing but hidden keys
      }
    }
  }

  const T *at(const void *tensor, int64_t row) const { return static_cast<const T *>(tensor) + row * grad.forward.dim; }
};

template <typename T, typename Products> void backward(ThreadPool &pool, AttentionScratch &scratch, const AttentionGradCall &grad) {
  const AttentionCall &call = grad.forward;
  const TileLoops &loops = tileLoops().front();
  int64_t group = call.heads / call.kvHeads, kvHeads = call.batch * call.kvHeads, dim = call.dim;
  int64_t samples = samplesOf(grad), tasks = kvHeads / samples; // of whole heads
  auto clearBias = [&](int64_t sample, int64_t head, int64_t query, int64_t rows) {
    if (grad.dbias) std::fill_n(biasRows(grad, sample, head, query), rows * call.kvLen, 0.0f);
  };
  auto *dqs = static_cast<T *>(grad.dq), *dks = static_cast<T *>(grad.dk), *dvs = static_cast<T *>(grad.dv);
  // Some keys of one key/value head: their dK and dV are summed over the query heads in order.
  auto keysOf = [&](int64_t kvHead, int64_t begin, int64_t end, int thread, int parts) {
    AttentionScratch::Thread &room = scratch.of(thread);
    int64_t first = (kvHead * call.kvLen + begin) * dim, size = (end - begin) * dim;
    float *dk = sumsOf(dks + first, room.sums.data()), *dv = sumsOf(dvs + first, room.sums.data() + size);
    std::fill_n(dk, size, 0.0f);
    std::fill_n(dv, size, 0.0f);
    for (int64_t head = kvHead % call.kvHeads * group, i = 0; i < group; ++i) {
      T *rows = dqs + (kvHead / call.kvHeads * call.heads + head + i) * call.qLen * dim;
      float *dq = sumsOf(rows, room.sums.data() + 2 * size);
      HeadGrad<T, Products>{grad, loops, room, kvHead / call.kvHeads, head + i, parts}.run(0, call.qLen, begin, end, dq, dk, dv);
      if (parts & Queries) finishSums(dq, rows, call.qLen, dim);
    }
    finishSums(dk, dks + first, end - begin, dim);
    finishSums(dv, dvs + first, end - begin, dim);
  };
  // Both ways call the same products on the same tiles, element by element in the same order: their bits are equal.
  bool room = call.dtype == plan::F32 || AttentionScratch::sumsWholeHeads(call);
  if (room && headsSuffice(tasks, pool.threads())) {
    pool.run(tasks, [&](int64_t task, int thread) {
      int64_t head = task % call.kvHeads, first = task / call.kvHeads * samples;
      clearBias(first, head * group, 0, group * call.qLen);
      for (int64_t sample = first; sample < first + samples; ++sample)
        keysOf(sample * call.kvHeads + head, 0, call.kvLen, thread, Keys | Queries);
    });
    return;
  }
  int64_t blocks = (call.kvLen + kGradKeyBlock - 1) / kGradKeyBlock;
  pool.run(kvHeads * blocks, [&](int64_t task, int thread) {
    int64_t begin = task % blocks * kGradKeyBlock; // the first keys of a causal head are seen by most queries
    keysOf(task / blocks, begin, std::min(begin + kGradKeyBlock, call.kvLen), thread, Keys);
  });
  int64_t queryBlocks = (call.qLen + kQueryBlock - 1) / kQueryBlock;
  pool.run(tasks * group * queryBlocks, [&](int64_t task, int thread) {
    AttentionScratch::Thread &room = scratch.of(thread);
    int64_t begin = (queryBlocks - 1 - task % queryBlocks) * kQueryBlock, end = std::min(begin + kQueryBlock, call.qLen);
    int64_t head = task / queryBlocks % call.heads, first = task / queryBlocks / call.heads * samples;
    clearBias(first, head, begin, end - begin);
    for (int64_t sample = first; sample < first + samples; ++sample) {
      T *rows = dqs + ((sample * call.heads + head) * call.qLen + begin) * dim;
      float *dq = sumsOf(rows, room.sums.data());
      HeadGrad<T, Products>{grad, loops, room, sample, head, Queries}.run(begin, end, 0, call.kvLen, dq, nullptr, nullptr);
      finishSums(dq, rows, end - begin, dim);
    }
  });
}

} // namespace

void attentionGrad(ThreadPool &pool, AttentionScratch &scratch, const AttentionGradCall &grad) {
  scratch.require(grad.forward);
  if (grad.forward.dtype == plan::F32) return backward<float, WidenedTiles>(pool, scratch, grad);
  if (grad.forward.dtype == plan::F16) return backward<F16, WidenedTiles>(pool, scratch, grad);
  scratch.unit() ? backward<Bf16, Bf16Tiles>(pool, scratch, grad) : backward<Bf16, WidenedTiles>(pool, scratch, grad);
}

} // namespace zero::runtime
