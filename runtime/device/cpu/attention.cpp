#include "runtime/device/cpu/attention.h"
#include "runtime/base/error.h"
#include "runtime/device/cpu/attention_products.h"
#include "runtime/device/cpu/attention_tile.h"
#include "runtime/plan/hidden.h"
#include <algorithm>
#include <limits>

namespace zero::runtime {

void AttentionScratch::prepare(int count, const AttentionLimits &largest, std::optional<bf16::Unit> unit) {
  limits = largest;
  threads.resize(static_cast<size_t>(count));
  int64_t ld = (std::min(limits.kvLen, kKeyBlock) + kVector - 1) / kVector * kVector;
  for (Thread &thread : threads) {
    thread.scores.assign(static_cast<size_t>(kQueryBlock * ld), 0.0f);
    thread.dscores.assign(static_cast<size_t>(kQueryBlock * ld), 0.0f);
    thread.max.assign(kQueryBlock, 0.0f);
    thread.sum.assign(kQueryBlock, 0.0f);
    thread.delta.assign(static_cast<size_t>(limits.qLen), 0.0f);
    if (!limits.half) continue;
    thread.queries.assign(static_cast<size_t>(kQueryBlock * limits.dim), 0.0f);
    thread.douts = thread.queries;
    thread.keys.assign(static_cast<size_t>(std::min(limits.kvLen, kKeyBlock) * limits.dim), 0.0f);
    thread.values = thread.keys;
    thread.sums.assign(static_cast<size_t>(attentionSums(limits.qLen, limits.kvLen, limits.dim)), 0.0f);
    thread.unit = unit;
    if (!unit) continue;
    thread.rounded.assign(static_cast<size_t>(kQueryBlock * ld), Bf16{});
    thread.roundedGrads = thread.rounded;
    int64_t keys = std::min(limits.kvLen, kKeyBlock);
    // Scores, sums over keys, sums over queries.
    size_t room = std::max({bf16::mostRoomOf(kQueryBlock, keys, limits.dim), bf16::mostRoomOf(kQueryBlock, limits.dim, keys),
                            bf16::mostRoomOf(std::min(keys, kGradKeyBlock), limits.dim, kQueryBlock)});
    thread.room = MappedArena("packed operands of attention", room);
  }
}

void AttentionScratch::require(const AttentionCall &call) const {
  bool wide = call.dtype == plan::F32 || (limits.half && call.dim <= limits.dim);
  if (threads.empty() || call.kvLen > limits.kvLen || call.qLen > limits.qLen || !wide)
    throw Error("attention over " + std::to_string(call.qLen) + " x " + std::to_string(call.kvLen) +
                " positions was not announced to the device before the first step");
}

KeyRange seenKeys(const AttentionCall &call, int64_t query, int64_t rows, int64_t key, int64_t keys) {
  int64_t begin = std::max(query + call.first - key, int64_t(0)) / kVector * kVector;
  int64_t end = std::min(query + rows + call.last - key, keys);
  return {begin, std::max(end - begin, int64_t(0))};
}

KeyRange weighedKeys(const AttentionCall &call, int64_t query, int64_t rows, int64_t key, int64_t keys) {
  return call.beyond ? KeyRange{0, keys} : seenKeys(call, query, rows, key, keys);
}

int64_t hiddenRows(const float *sums, int64_t rows) {
  return std::count_if(sums, sums + rows, [](float sum) { return sum < plan::kHidden; });
}

Tile tileAt(const AttentionCall &call, float *scores, int64_t batch, int64_t head, int64_t query, int64_t rows, int64_t key,
            int64_t columns) {
  TileMask mask{};
  if (call.mask)
    mask = {static_cast<const float *>(call.mask) + batch * call.maskStride[0] + head * call.maskStride[1] + query * call.maskStride[2] +
                key * call.maskStride[3],
            call.maskStride[2], call.maskStride[3]};
  TileMask bias{};
  if (call.bias) bias = {static_cast<const float *>(call.bias) + (head * call.qLen + query) * call.kvLen + key, call.kvLen, 1};
  int64_t ld = (columns + kVector - 1) / kVector * kVector;
  return {scores,     rows, columns, ld, call.scale, call.softcap, mask, bias, query + call.first - key, query + call.last + 1 - key,
          call.beyond};
}

namespace {

template <typename T, typename Products> void forward(ThreadPool &pool, AttentionScratch &scratch, const AttentionCall &call) {
  const TileLoops &loops = tileLoops().front();
  const auto *q = static_cast<const T *>(call.q), *k = static_cast<const T *>(call.k), *v = static_cast<const T *>(call.v);
  int64_t dim = call.dim, blocks = (call.qLen + kQueryBlock - 1) / kQueryBlock;
  int64_t group = call.heads / call.kvHeads;
  pool.run(call.batch * call.heads * blocks, [&](int64_t task, int threadIndex) {
    AttentionScratch::Thread &thread = scratch.of(threadIndex);
    // The last queries of a causal head see most keys: start with them, so that short tasks fill the end.
    int64_t head = task / blocks % call.heads, batch = task / blocks / call.heads;
    int64_t query = (blocks - 1 - task % blocks) * kQueryBlock, rows = std::min(kQueryBlock, call.qLen - query);
    int64_t row = (batch * call.heads + head) * call.qLen + query;
    int64_t keyRow = (batch * call.kvHeads + head / group) * call.kvLen;
    T *result = static_cast<T *>(call.out) + row * dim;
    const auto *queries = Products::rowsOf(q + row * dim, rows, dim, thread.queries);
    float *out = sumsOf(result, thread.sums.data()), *max = thread.max.data(), *sum = thread.sum.data();
    std::fill_n(max, rows, -std::numeric_limits<float>::infinity());
    std::fill_n(sum, rows, 0.0f);
    auto overTiles = [&](KeyRange keys, auto &&tileOf) {
      for (int64_t key = keys.begin, end = keys.begin + keys.columns, columns; key < end; key += columns) {
        columns = std::min(kKeyBlock, end - key);
        tileOf(tileAt(call, thread.scores.data(), batch, head, query, rows, key, columns), key);
      }
    };
    auto addValues = [&](const Tile &tile, int64_t key, bool toOthers) {
      const auto *values = Products::rowsOf(v + (keyRow + key) * dim, tile.columns, dim, thread.values);
      const auto *weights = Products::tileOf(thread.scores, rows, tile.columns, tile.ld, thread.rounded);
      Products::multiply(false, false, rows, dim, tile.columns, weights, tile.ld, values, dim, toOthers, out, dim, thread);
    };
    bool first = true;
    overTiles(seenKeys(call, query, rows, 0, call.kvLen), [&](const Tile &tile, int64_t key) {
      const auto *keys = Products::rowsOf(k + (keyRow + key) * dim, tile.columns, dim, thread.keys);
      Products::multiply(false, true, rows, tile.columns, dim, queries, dim, keys, dim, false, tile.scores, tile.ld, thread);
      loops.softmaxTile(tile, max, sum, out, dim, first);
      addValues(tile, key, !first);
      first = false;
    });
    if (first) std::fill_n(out, rows * dim, 0.0f);
    if (call.mask && hiddenRows(max, rows) > 0) { // rows that see nothing but hidden keys begin again
      for (int64_t i = 0; i < rows; ++i)
        if (hiddenRows(max + i, 1)) sum[i] = 0, std::fill_n(out + i * dim, dim, 0.0f);
      overTiles(weighedKeys(call, query, rows, 0, call.kvLen), [&](const Tile &tile, int64_t key) {
        loops.hiddenTile(tile, max, sum);
        addValues(tile, key, true);
      });
    }
    loops.finishRows(rows, dim, max, sum, out, static_cast<float *>(call.lse) + row);
    finishSums(out, result, rows, dim);
  });
}

} // namespace

void attention(ThreadPool &pool, AttentionScratch &scratch, const AttentionCall &call) {
  scratch.require(call);
  if (call.dtype == plan::F32) return forward<float, WidenedTiles>(pool, scratch, call);
  if (call.dtype == plan::F16) return forward<F16, WidenedTiles>(pool, scratch, call);
  scratch.unit() ? forward<Bf16, Bf16Tiles>(pool, scratch, call) : forward<Bf16, WidenedTiles>(pool, scratch, call);
}

} // namespace zero::runtime
