#include "runtime/device/cpu/attention.h"
#include "runtime/device/cpu/attention_tile.h"
#include "runtime/device/cpu/matmul.h"
#include <algorithm>

namespace zero::runtime {
namespace {

// Adds one query head's share to dK and dV of its key/value head, and makes its dQ.
void headGrad(const AttentionGradCall &grad, AttentionScratch::Thread &thread, int64_t batch, int64_t head) {
  const AttentionCall &call = grad.forward;
  int64_t dim = call.dim;
  int64_t row = (batch * call.heads + head) * call.qLen;
  int64_t keyRow = (batch * call.kvHeads + head / (call.heads / call.kvHeads)) * call.kvLen;
  const float *q = call.q + row * dim, *dout = grad.dout + row * dim, *lse = call.lse + row;
  float *dq = grad.dq + row * dim, *delta = thread.delta.data();
  float *probabilities = thread.scores.data(), *dscores = thread.dscores.data();
  rowDots(call.qLen, dim, dout, call.out + row * dim, delta);
  std::fill_n(dq, call.qLen * dim, 0.0f);
  for (int64_t key = 0; key < call.kvLen; key += kKeyBlock) {
    int64_t keys = std::min(kKeyBlock, call.kvLen - key);
    const float *k = call.k + (keyRow + key) * dim, *v = call.v + (keyRow + key) * dim;
    float *dk = grad.dk + (keyRow + key) * dim, *dv = grad.dv + (keyRow + key) * dim;
    for (int64_t query = 0; query < call.qLen; query += kQueryBlock) {
      int64_t rows = std::min(kQueryBlock, call.qLen - query);
      KeyRange range = visibleKeys(call, query, rows, key, keys);
      int64_t columns = range.columns;
      if (columns == 0) continue;
      int64_t ld = (columns + kVector - 1) / kVector * kVector;
      const float *qBlock = q + query * dim, *doutBlock = dout + query * dim;
      singleMatmul(false, true, rows, columns, dim, 1.0f, qBlock, dim, k, dim, false, probabilities, ld);
      singleMatmul(false, true, rows, columns, dim, 1.0f, doutBlock, dim, v, dim, false, dscores, ld);
      TileMask mask{nullptr, 0, 0};
      if (call.mask)
        mask = {call.mask + batch * call.maskStride[0] + head * call.maskStride[1] + query * call.maskStride[2] + key * call.maskStride[3],
                call.maskStride[2], call.maskStride[3]};
      gradTile({probabilities, rows, columns, ld, call.scale, mask, range.firstVisible}, dscores, lse + query, delta + query);
      singleMatmul(true, false, columns, dim, rows, 1.0f, probabilities, ld, doutBlock, dim, true, dv, dim);
      singleMatmul(true, false, columns, dim, rows, 1.0f, dscores, ld, qBlock, dim, true, dk, dim);
      singleMatmul(false, false, rows, dim, columns, 1.0f, dscores, ld, k, dim, true, dq + query * dim, dim);
    }
  }
}

} // namespace

void attentionGrad(ThreadPool &pool, AttentionScratch &scratch, const AttentionGradCall &grad) {
  const AttentionCall &call = grad.forward;
  scratch.require(call);
  int64_t group = call.heads / call.kvHeads;
  // One task owns a key/value head: its dK and dV are summed over the query heads in order.
  pool.run(call.batch * call.kvHeads, [&](int64_t task, int thread) {
    int64_t batch = task / call.kvHeads, kvHead = task % call.kvHeads;
    std::fill_n(grad.dk + task * call.kvLen * call.dim, call.kvLen * call.dim, 0.0f);
    std::fill_n(grad.dv + task * call.kvLen * call.dim, call.kvLen * call.dim, 0.0f);
    for (int64_t head = kvHead * group; head < (kvHead + 1) * group; ++head) headGrad(grad, scratch.of(thread), batch, head);
  });
}

} // namespace zero::runtime
