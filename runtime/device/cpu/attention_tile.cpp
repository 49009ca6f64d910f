// Written with the compiler's vector types: sixteen lanes, whatever the machine has (one AVX-512 register, two AVX2, four
// SSE). The loops are inlined once into a function for each level of x86-64.
#include "runtime/device/cpu/attention_tile.h"
#include "runtime/plan/hidden.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#define ZERO_INLINE [[gnu::always_inline]] inline

namespace zero::runtime {
namespace {

typedef float Floats __attribute__((vector_size(64), aligned(4)));
typedef int32_t Ints __attribute__((vector_size(64), aligned(4)));

constexpr float kInfinity = std::numeric_limits<float>::infinity();

ZERO_INLINE Floats &at(float *p) { return *reinterpret_cast<Floats *>(p); }
ZERO_INLINE const Floats &at(const float *p) { return *reinterpret_cast<const Floats *>(p); }

// e^x for x <= 88, within 2 units in the last place; 0 below -87.3; NaN stays NaN.
ZERO_INLINE void exponential(const Floats &input, Floats &result) {
  const float magic = 12582912.0f; // 1.5 * 2^23: adding it rounds to an integer kept in the low bits
  Floats x = input < -87.3f ? Floats{} - 87.3f : input;
  Floats shifted = x * 1.44269504f + magic;
  Floats n = shifted - magic;
  Floats r = x - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  Floats p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  Ints bits = (((Ints)shifted - 0x4B400000) + 127) << 23;
  p = p * (Floats)bits;
  result = input < -87.3f ? Floats{} : p;
}

// Lane i of the result is lane i + N, around the end.
template <int N> ZERO_INLINE void rotate(const Floats &v, Floats &result) {
  result = __builtin_shufflevector(v, v, N, N + 1, N + 2, N + 3, N + 4, N + 5, N + 6, N + 7, N + 8, N + 9, N + 10, N + 11, N + 12, N + 13,
                                   N + 14, N + 15);
}

// Pairwise, in the same order on every machine.
ZERO_INLINE float sumOf(const Floats &lanes) {
  Floats v = lanes, other;
  rotate<8>(v, other), v = v + other;
  rotate<4>(v, other), v = v + other;
  rotate<2>(v, other), v = v + other;
  rotate<1>(v, other), v = v + other;
  return v[0];
}

ZERO_INLINE float maxOf(const Floats &lanes) {
  Floats v = lanes, other;
  rotate<8>(v, other), v = other > v ? other : v;
  rotate<4>(v, other), v = other > v ? other : v;
  rotate<2>(v, other), v = other > v ? other : v;
  rotate<1>(v, other), v = other > v ? other : v;
  return v[0];
}

// What a row sees, and the columns that are computed for it: whole vectors.
struct Seen {
  int64_t first, end, from, to;
};
ZERO_INLINE Seen seenBy(const Tile &tile, int64_t row) {
  int64_t first = std::clamp<int64_t>(tile.first + row, 0, tile.columns), end = std::clamp<int64_t>(tile.end + row, first, tile.columns);
  return {first, end, first / kVector * kVector, (end + kVector - 1) / kVector * kVector};
}

// Of small x by the polynomial of Cephes (tanhf.c), of others by e^2x; NaN stays NaN.
ZERO_INLINE void hyperbolicTangent(const Floats &x, Floats &result) {
  Floats size = x < 0.0f ? -x : x, square = x * x, power;
  Floats p = square * -5.70498872745e-3f + 2.06390887954e-2f;
  p = p * square - 5.37397155531e-2f;
  p = p * square + 1.33314422036e-1f;
  p = p * square - 3.33332819422e-1f;
  p = p * square * x + x;
  exponential((size > 20.0f ? Floats{} + 20.0f : size) * 2.0f, power);
  Floats far = 1.0f - 2.0f / (power + 1.0f);
  far = x < 0.0f ? -far : far;
  result = size < 0.625f ? p : far;
}

// Adds what sixteen columns of a row have there, of which `count` are the tile's.
ZERO_INLINE void add(const TileMask &mask, int64_t row, int64_t column, int64_t count, Floats &s) {
  const float *values = mask.data + row * mask.rowStride + column * mask.columnStride;
  if (mask.columnStride == 0) {
    s = s + *values;
  } else if (count >= kVector) {
    s = s + at(values);
  } else {
    float rest[kVector] = {};
    for (int64_t i = 0; i < count; ++i) rest[i] = values[i];
    s = s + at(rest);
  }
}

// scale * score [capped] + bias + mask of sixteen columns; those that are not seen become -inf. `slope`: of the cap, where there is one.
ZERO_INLINE void masked(const Tile &tile, int64_t row, int64_t column, const Seen &seen, Floats &s, Floats &slope) {
  s = at(tile.scores + row * tile.ld + column) * tile.scale;
  if (tile.softcap != 0.0f) {
    Floats t;
    hyperbolicTangent(s / tile.softcap, t);
    s = t * tile.softcap;
    slope = 1.0f - t * t;
  }
  bool whole = column + kVector <= seen.end;
  if (tile.bias.data) add(tile.bias, row, column, seen.end - column, s);
  if (tile.mask.data) add(tile.mask, row, column, seen.end - column, s);
  if (whole && column >= seen.first) return;
  const Ints lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  s = lane < static_cast<int32_t>(seen.end - column) ? s : Floats{} - kInfinity;
  s = lane < static_cast<int32_t>(seen.first - column) ? Floats{} - kInfinity : s;
}

// What a row weighs that sees nothing but what is hidden.
ZERO_INLINE Seen weighedBy(const Tile &tile, int64_t row) {
  if (!tile.beyond) return seenBy(tile, row);
  return {0, tile.columns, 0, (tile.columns + kVector - 1) / kVector * kVector};
}

// 1 where such a row weighs one of sixteen columns, and 0 elsewhere: what it sees it does unless the mask is -inf there.
ZERO_INLINE void weighed(const Tile &tile, int64_t row, int64_t column, const Seen &seen, const Seen &all, Floats &weights) {
  Floats hidden{};
  if (tile.mask.data) add(tile.mask, row, column, tile.columns - column, hidden);
  const Ints lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  Ints inside = (lane >= static_cast<int32_t>(seen.first - column)) & (lane < static_cast<int32_t>(seen.end - column));
  Ints there = (lane >= static_cast<int32_t>(all.first - column)) & (lane < static_cast<int32_t>(all.end - column));
  Ints counts = there & ~(inside & (hidden == -kInfinity));
  weights = counts ? Floats{} + 1.0f : Floats{};
}

// Nothing of what is not seen.
ZERO_INLINE void clearRest(const Tile &tile, const Seen &seen, float *row) {
  std::fill(row, row + seen.from, 0.0f);
  for (int64_t c = seen.to; c < tile.columns; ++c) row[c] = 0.0f;
}

ZERO_INLINE void softmaxRows(const Tile &tile, float *max, float *sum, float *out, int64_t dim, bool first) {
  for (int64_t row = 0; row < tile.rows; ++row) {
    float *scores = tile.scores + row * tile.ld;
    Seen seen = seenBy(tile, row);
    Floats largest = Floats{} - kInfinity;
    for (int64_t c = seen.from; c < seen.to; c += kVector) {
      Floats s, slope;
      masked(tile, row, c, seen, s, slope);
      at(scores + c) = s;
      largest = s > largest ? s : largest;
    }
    float before = max[row], now = std::max(before, maxOf(largest));
    // A row that has seen nothing but -inf: all its exponentials are 0, whatever is subtracted.
    float reference = now == -kInfinity ? 0.0f : now;
    Floats total{};
    for (int64_t c = seen.from; c < seen.to; c += kVector) {
      Floats p;
      exponential(at(scores + c) - reference, p);
      at(scores + c) = p;
      total = total + p;
    }
    clearRest(tile, seen, scores);
    float factor = before == now ? 1.0f : std::exp(before - reference);
    max[row] = now;
    sum[row] = sum[row] * factor + sumOf(total);
    if (!first && factor != 1.0f)
      for (int64_t c = 0; c < dim; ++c) out[row * dim + c] *= factor;
  }
}

ZERO_INLINE void hiddenRows(const Tile &tile, const float *max, float *sum) {
  for (int64_t row = 0; row < tile.rows; ++row) {
    float *scores = tile.scores + row * tile.ld;
    Seen seen = seenBy(tile, row), all = max[row] < plan::kHidden ? weighedBy(tile, row) : Seen{};
    Floats total{};
    for (int64_t c = all.from; c < all.to; c += kVector) {
      weighed(tile, row, c, seen, all, at(scores + c));
      total = total + at(scores + c);
    }
    clearRest(tile, all, scores);
    sum[row] += sumOf(total);
  }
}

ZERO_INLINE void finish(int64_t rows, int64_t dim, const float *max, const float *sum, float *out, float *lse) {
  for (int64_t row = 0; row < rows; ++row) {
    bool hidden = max[row] < plan::kHidden, empty = hidden && sum[row] == 0.0f;
    float inverse = empty ? 0.0f : 1.0f / sum[row];
    for (int64_t c = 0; c < dim; ++c) out[row * dim + c] *= inverse;
    lse[row] = empty ? -kInfinity : hidden ? plan::lseOfHidden(sum[row]) : max[row] + std::log(sum[row]);
  }
}

// Adds to `count` numbers, of sixteen at most.
ZERO_INLINE void addTo(float *sums, int64_t count, const Floats &v) {
  if (count >= kVector) {
    at(sums) = at(sums) + v;
  } else {
    for (int64_t i = 0; i < count; ++i) sums[i] += v[i];
  }
}

// `Hidden`: of rows that see nothing but what is hidden, and else of the others.
template <bool Hidden> ZERO_INLINE void gradRows(const Tile &tile, float *dscores, const float *lse, const float *delta, float *dbias) {
  for (int64_t row = 0; row < tile.rows; ++row) {
    float *scores = tile.scores + row * tile.ld, *grads = dscores + row * tile.ld;
    Seen inside = seenBy(tile, row), seen = Hidden ? weighedBy(tile, row) : inside;
    if ((lse[row] < plan::kHidden) != Hidden) seen = {};
    for (int64_t c = seen.from; c < seen.to; c += kVector) {
      Floats s, p, slope;
      masked(tile, row, c, seen, s, slope);
      if constexpr (Hidden) {
        weighed(tile, row, c, inside, seen, p);
        p = p * plan::weightOfHidden(lse[row]);
      } else {
        exponential(s - lse[row], p);
      }
      at(scores + c) = p;
      // Columns of dscores that are not seen are real numbers (products of real keys), so p = 0 clears them; columns beyond the
      // tile are never read.
      Floats grad = (at(grads + c) - delta[row]) * p;
      if (dbias) addTo(dbias + row * tile.bias.rowStride + c, seen.end - c, grad);
      grad = grad * tile.scale;
      at(grads + c) = tile.softcap != 0.0f ? grad * slope : grad;
    }
    clearRest(tile, seen, scores);
    clearRest(tile, seen, grads);
  }
}

ZERO_INLINE void dots(int64_t rows, int64_t dim, const float *a, const float *b, float *delta) {
  for (int64_t row = 0; row < rows; ++row) {
    const float *x = a + row * dim, *y = b + row * dim;
    Floats total{};
    int64_t c = 0;
    for (; c + kVector <= dim; c += kVector) total = total + at(x + c) * at(y + c);
    float rest = 0;
    for (; c < dim; ++c) rest += x[c] * y[c];
    delta[row] = sumOf(total) + rest;
  }
}

void softmaxBaseline(const Tile &tile, float *max, float *sum, float *out, int64_t dim, bool first) {
  softmaxRows(tile, max, sum, out, dim, first);
}
void hiddenBaseline(const Tile &tile, const float *max, float *sum) { hiddenRows(tile, max, sum); }
void finishBaseline(int64_t rows, int64_t dim, const float *max, const float *sum, float *out, float *lse) {
  finish(rows, dim, max, sum, out, lse);
}
void gradBaseline(const Tile &tile, float *dscores, const float *lse, const float *delta, float *dbias) {
  gradRows<false>(tile, dscores, lse, delta, dbias);
}
void hiddenGradBaseline(const Tile &tile, float *dscores, const float *lse, const float *delta, float *dbias) {
  gradRows<true>(tile, dscores, lse, delta, dbias);
}
void dotsBaseline(int64_t rows, int64_t dim, const float *a, const float *b, float *delta) { dots(rows, dim, a, b, delta); }

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
[[gnu::target("arch=x86-64-v3")]] void softmaxV3(const Tile &tile, float *max, float *sum, float *out, int64_t dim, bool first) {
  softmaxRows(tile, max, sum, out, dim, first);
}
[[gnu::target("arch=x86-64-v3")]] void hiddenV3(const Tile &tile, const float *max, float *sum) { hiddenRows(tile, max, sum); }
[[gnu::target("arch=x86-64-v3")]] void finishV3(int64_t rows, int64_t dim, const float *max, const float *sum, float *out, float *lse) {
  finish(rows, dim, max, sum, out, lse);
}
[[gnu::target("arch=x86-64-v3")]] void gradV3(const Tile &tile, float *dscores, const float *lse, const float *delta, float *dbias) {
  gradRows<false>(tile, dscores, lse, delta, dbias);
}
[[gnu::target("arch=x86-64-v3")]] void hiddenGradV3(const Tile &tile, float *dscores, const float *lse, const float *delta, float *dbias) {
  gradRows<true>(tile, dscores, lse, delta, dbias);
}
[[gnu::target("arch=x86-64-v3")]] void dotsV3(int64_t rows, int64_t dim, const float *a, const float *b, float *delta) {
  dots(rows, dim, a, b, delta);
}
[[gnu::target("arch=x86-64-v4")]] void softmaxV4(const Tile &tile, float *max, float *sum, float *out, int64_t dim, bool first) {
  softmaxRows(tile, max, sum, out, dim, first);
}
[[gnu::target("arch=x86-64-v4")]] void hiddenV4(const Tile &tile, const float *max, float *sum) { hiddenRows(tile, max, sum); }
[[gnu::target("arch=x86-64-v4")]] void finishV4(int64_t rows, int64_t dim, const float *max, const float *sum, float *out, float *lse) {
  finish(rows, dim, max, sum, out, lse);
}
[[gnu::target("arch=x86-64-v4")]] void gradV4(const Tile &tile, float *dscores, const float *lse, const float *delta, float *dbias) {
  gradRows<false>(tile, dscores, lse, delta, dbias);
}
[[gnu::target("arch=x86-64-v4")]] void hiddenGradV4(const Tile &tile, float *dscores, const float *lse, const float *delta, float *dbias) {
  gradRows<true>(tile, dscores, lse, delta, dbias);
}
[[gnu::target("arch=x86-64-v4")]] void dotsV4(int64_t rows, int64_t dim, const float *a, const float *b, float *delta) {
  dots(rows, dim, a, b, delta);
}
#endif

std::vector<TileLoops> runnable() {
  std::vector<TileLoops> found;
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
  if (__builtin_cpu_supports("x86-64-v4")) found.push_back({"x86-64-v4", softmaxV4, hiddenV4, finishV4, gradV4, hiddenGradV4, dotsV4});
  if (__builtin_cpu_supports("x86-64-v3")) found.push_back({"x86-64-v3", softmaxV3, hiddenV3, finishV3, gradV3, hiddenGradV3, dotsV3});
#endif
  found.push_back({"baseline", softmaxBaseline, hiddenBaseline, finishBaseline, gradBaseline, hiddenGradBaseline, dotsBaseline});
  return found;
}

} // namespace

std::span<const TileLoops> tileLoops() {
  static const std::vector<TileLoops> levels = runnable();
  return levels;
}

} // namespace zero::runtime
