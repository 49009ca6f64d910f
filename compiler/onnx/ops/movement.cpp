//===- movement.cpp - reshape, transpose, slice, join, repeat ------------------------------------===//
#include "compiler/onnx/importer.h"
#include <limits>

namespace zero::onnx {
namespace {

Vals reshape(NodeContext &c) {
  Val x = c.in(0);
  auto wanted = c.knownInts(1);
  if (!x || !wanted) return {};
  bool zeroIsZero = c.integer("allowzero", 0);
  Ints shape;
  int64_t known = 1, hole = -1;
  for (auto [i, d] : llvm::enumerate(*wanted)) {
    if (d == 0 && !zeroIsZero) {
      if (int64_t(i) >= x.rank()) return c.fail("0 in the new shape stands for a dimension the input does not have");
      d = x.dim(i);
    }
    if (d == -1 && hole >= 0) return c.fail("the new shape has two -1");
    if (d < -1) return c.fail("the new shape has a negative dimension");
    if (d == -1)
      hole = int64_t(i);
    else if (__builtin_mul_overflow(known, d, &known))
      return c.fail("the new shape is too large");
    shape.push_back(d);
  }
  if (hole >= 0) {
    if (known == 0 || x.type().getNumElements() % known)
      return c.fail("no dimension in place of -1 makes the new shape hold " + llvm::Twine(x.type().getNumElements()) + " elements");
    shape[hole] = x.type().getNumElements() / known;
  }
  return {c.e.reshape(x, shape)};
}

Vals transpose(NodeContext &c) {
  Val x = c.in(0);
  if (!x) return {};
  return {c.e.transpose(x, c.permutation(x.rank()))};
}

Vals flatten(NodeContext &c) {
  Val x = c.in(0);
  if (!x) return {};
  int64_t axis = c.integer("axis", 1);
  if (axis < 0) axis += x.rank();
  if (axis < 0 || axis > x.rank())
    return c.fail("axis " + llvm::Twine(c.integer("axis", 1)) + " does not exist in a tensor of rank " + llvm::Twine(x.rank()));
  int64_t rows = *elementsOf(x.shape().take_front(axis)), columns = *elementsOf(x.shape().drop_front(axis));
  return {c.e.reshape(x, {rows, columns})};
}

Vals squeeze(NodeContext &c) {
  Val x = c.in(0);
  auto axes = c.axesSince(13, "axes", 1);
  if (!x || c.e.failed()) return {};
  llvm::SmallBitVector drop(x.rank());
  if (!axes)
    for (int64_t i = 0; i < x.rank(); ++i) drop[i] = x.dim(i) == 1;
  else
    for (int64_t a : *axes) {
      int64_t d = c.dimension(a, x.rank());
      if (d < 0) return {};
      if (x.dim(d) != 1) return c.fail("dimension " + llvm::Twine(a) + " has size " + llvm::Twine(x.dim(d)) + " and cannot be squeezed");
      drop.set(d);
    }
  Ints shape;
  for (int64_t i = 0; i < x.rank(); ++i)
    if (!drop[i]) shape.push_back(x.dim(i));
  return {c.e.reshape(x, shape)};
}

Vals unsqueeze(NodeContext &c) {
  Val x = c.in(0);
  auto axes = c.axesSince(13, "axes", 1);
  if (!x || c.e.failed()) return {};
  if (!axes) return c.fail("it names no axes");
  int64_t rank = x.rank() + int64_t(axes->size());
  llvm::SmallBitVector fresh(rank);
  for (int64_t a : *axes) {
    int64_t d = c.dimension(a, rank);
    if (d < 0) return {};
    if (fresh[d]) return c.fail("axis " + llvm::Twine(a) + " is named twice");
    fresh.set(d);
  }
  Ints shape;
  int64_t next = 0;
  for (int64_t i = 0; i < rank; ++i) shape.push_back(fresh[i] ? 1 : x.dim(next++));
  return {c.e.reshape(x, shape)};
}

Vals concat(NodeContext &c) {
  Val first = c.in(0);
  if (!first || first.sequence) return {};
  int64_t axis = c.dimension(c.integer("axis", 1), first.rank());
  return {axis < 0 ? Val() : c.e.concat(c.inputs, axis)};
}

Vals split(NodeContext &c) {
  Val x = c.in(0);
  if (!x) return {};
  int64_t axis = c.dimension(c.integer("axis", 0), x.rank());
  auto sizes = c.axesSince(13, "split", 1);
  if (axis < 0 || c.e.failed()) return {};
  if (!sizes) {
    int64_t n = c.integer("num_outputs", int64_t(c.node.outputs.size()));
    if (n <= 0 || n > std::max<int64_t>(1, x.dim(axis)))
      return c.fail("a dimension of size " + llvm::Twine(x.dim(axis)) + " cannot be cut into " + llvm::Twine(n));
    int64_t chunk = (x.dim(axis) + n - 1) / n;
    sizes = Ints(n, chunk);
    sizes->back() = x.dim(axis) - chunk * (n - 1);
  }
  Vals parts;
  int64_t at = 0;
  for (int64_t n : *sizes) {
    if (n < 0 || n > x.dim(axis) - at) return c.fail("its pieces are longer than the dimension of size " + llvm::Twine(x.dim(axis)));
    parts.push_back(c.e.sliceDim(x, axis, at, at + n));
    at += n;
  }
  if (at != x.dim(axis)) return c.fail("its pieces cover " + llvm::Twine(at) + " of " + llvm::Twine(x.dim(axis)));
  return parts;
}

Vals slice(NodeContext &c) {
  Val x = c.in(0);
  if (!x) return {};
  std::optional<Ints> starts, ends, axes, steps;
  if (c.opset < 10) {
    starts = c.ints("starts");
    ends = c.ints("ends");
    axes = c.ints("axes");
  } else {
    starts = c.knownInts(1);
    ends = starts ? c.knownInts(2) : std::nullopt;
    axes = ends && c.has(3) ? c.knownInts(3) : std::nullopt;
    steps = ends && c.has(4) ? c.knownInts(4) : std::nullopt;
  }
  if (c.e.failed()) return {};
  if (!starts || !ends) return c.fail("it names no starts or ends");
  if (!axes) axes = upTo(int64_t(starts->size()));
  if (!steps) steps = Ints(starts->size(), 1);
  if (ends->size() != starts->size() || axes->size() != starts->size() || steps->size() != starts->size())
    return c.fail("starts, ends, axes and steps differ in length");
  Ints from(x.rank(), 0), size(x.shape().begin(), x.shape().end()), by(x.rank(), 1);
  for (size_t i = 0; i < starts->size(); ++i) {
    int64_t d = c.dimension((*axes)[i], x.rank());
    if (d < 0) return {};
    int64_t n = x.dim(d), step = (*steps)[i];
    if (step == 0 || step == std::numeric_limits<int64_t>::min()) return c.fail("a step of " + llvm::Twine(step) + " leads nowhere");
    if (n == 0) {
      from[d] = size[d] = 0, by[d] = 1;
      continue;
    }
    auto place = [&](int64_t v, int64_t low, int64_t high) { return std::clamp(v < 0 ? v + n : v, low, high); };
    int64_t first = step > 0 ? place((*starts)[i], 0, n) : place((*starts)[i], 0, n - 1);
    int64_t last = step > 0 ? place((*ends)[i], 0, n) : place((*ends)[i], -1, n - 1);
    from[d] = first;
    by[d] = step;
    size[d] = std::max<int64_t>(0, step > 0 ? (last - first - 1) / step + (last > first) : (first - last - 1) / -step + (first > last));
    if (step > 0 ? last <= first : first <= last) size[d] = 0;
    if (size[d] == 0) from[d] = 0;
    if (size[d] <= 1) by[d] = 1;
  }
  return {c.e.slice(x, from, size, by)};
}

Vals expand(NodeContext &c) {
  Val x = c.in(0);
  auto shape = c.knownInts(1);
  if (!x || !shape) return {};
  auto common = broadcastShapes(x.shape(), *shape);
  if (!common) return c.fail("the input's shape and the new shape do not broadcast");
  return {c.e.broadcastTo(x, *common)};
}

Vals tile(NodeContext &c) {
  Val x = c.in(0);
  auto repeats = c.knownInts(1);
  if (!x || !repeats) return {};
  if (int64_t(repeats->size()) != x.rank())
    return c.fail("it has " + llvm::Twine(repeats->size()) + " repeats for a tensor of rank " + llvm::Twine(x.rank()));
  // [a, b] repeated by [r, s] is [r, a, s, b] seen as [r·a, s·b].
  Ints dims, wide, shape;
  for (int64_t i = 0; i < x.rank(); ++i) {
    int64_t n;
    if ((*repeats)[i] < 0 || __builtin_mul_overflow((*repeats)[i], x.dim(i), &n)) return c.fail("its repeats are out of range");
    if ((*repeats)[i] != 1) wide.push_back((*repeats)[i]);
    dims.push_back(int64_t(wide.size()));
    wide.push_back(x.dim(i));
    shape.push_back(n);
  }
  return {c.e.reshape(c.e.broadcast(x, dims, wide), shape)};
}

/// So many elements of x along `dim` on either side of it: the nearest ones again and again, or as in a mirror, or as if x began anew.
Val continued(NodeContext &c, const Val &x, StringRef mode, int64_t dim, int64_t before, int64_t after) {
  if (!x || before + after == 0) return x;
  int64_t n = x.dim(dim), reach = mode == "edge" ? INT64_MAX : mode == "reflect" ? n - 1 : n;
  if (n == 0 || std::max(before, after) > reach)
    return c.e.fail("it pads " + llvm::Twine(std::max(before, after)) + " elements beside " + llvm::Twine(n) + " with mode='" + mode + "'");
  auto part = [&](int64_t from, int64_t count, int64_t step) {
    Ints start(x.rank(), 0), size(x.shape().begin(), x.shape().end()), steps(x.rank(), 1);
    start[dim] = from, size[dim] = count, steps[dim] = step;
    return c.e.slice(x, start, size, steps);
  };
  auto side = [&](int64_t count, bool low) {
    if (mode == "reflect") return part(low ? count : n - 2, count, -1);
    if (mode == "wrap") return part(low ? n - count : 0, count, 1);
    Ints wide(x.shape().begin(), x.shape().end());
    wide[dim] = count;
    return c.e.broadcastTo(part(low ? 0 : n - 1, 1, 1), wide);
  };
  Vals parts{x};
  if (before) parts.insert(parts.begin(), side(before, true));
  if (after) parts.push_back(side(after, false));
  return c.e.concat(parts, dim);
}

Vals pad(NodeContext &c) {
  Val x = c.in(0);
  if (!x) return {};
  std::string mode = c.string("mode", "constant");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap") return c.fail("mode='" + mode + "' is not known");
  std::optional<Ints> pads = c.opset < 11 ? c.ints("pads") : c.knownInts(1), axes;
  double value = c.opset < 11 ? c.real("value", 0) : 0;
  if (c.opset >= 11 && c.has(2)) {
    auto t = c.known(2);
    if (!t) return {};
    if (t->size() != 1) return c.fail("its padding value is no single number");
    value = t->at(0);
  }
  if (c.opset >= 18 && c.has(3)) axes = c.knownInts(3);
  if (c.e.failed()) return {};
  if (!axes) axes = upTo(x.rank());
  if (!pads || pads->size() != 2 * axes->size()) return c.fail("it needs two amounts for each padded dimension");
  Ints low(x.rank(), 0), high(x.rank(), 0), from(x.rank(), 0), size(x.shape().begin(), x.shape().end());
  for (size_t i = 0; i < axes->size(); ++i) {
    int64_t d = c.dimension((*axes)[i], x.rank());
    if (d < 0) return {};
    int64_t before = (*pads)[i], after = (*pads)[i + axes->size()];
    constexpr int64_t most = int64_t(1) << 40;
    if (std::min(before, after) < -most || std::max(before, after) > most) return c.fail("its amounts are out of range");
    low[d] = std::max<int64_t>(0, before);
    high[d] = std::max<int64_t>(0, after);
    from[d] = std::max<int64_t>(0, -before); // negative amounts crop
    size[d] -= from[d] + std::max<int64_t>(0, -after);
    if (size[d] < 0) return c.fail("it crops more than there is");
  }
  x = c.e.slice(x, from, size, Ints(x.rank(), 1));
  if (mode == "constant") return {c.e.pad(x, value, low, high)};
  for (int64_t d = 0; d < int64_t(low.size()); ++d) x = continued(c, x, mode, d, low[d], high[d]);
  return {x};
}

/// Blocks of an image [batch, channels, height, width] that become channels, or come from them.
template <bool toDepth> Vals blocks(NodeContext &c) {
  Val x = c.in(0);
  int64_t size = c.integer("blocksize", 0);
  if (!x || x.rank() != 4 || size <= 0 || size > 1 << 20) return c.fail("the input is no image, or blocksize is out of range");
  int64_t batch = x.dim(0), channels = x.dim(1), height = x.dim(2), width = x.dim(3);
  if (toDepth ? height % size || width % size : channels % (size * size)) return c.fail("the input cannot be cut into blocks of blocksize");
  if (toDepth) {
    Val cut = c.e.reshape(x, {batch, channels, height / size, size, width / size, size});
    return {c.e.reshape(c.e.transpose(cut, {0, 3, 5, 1, 2, 4}), {batch, channels * size * size, height / size, width / size})};
  }
  int64_t left = channels / (size * size);
  std::string mode = c.string("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") return c.fail("mode='" + mode + "' is not known");
  Val cut = mode == "DCR" ? c.e.transpose(c.e.reshape(x, {batch, size, size, left, height, width}), {0, 3, 4, 1, 5, 2})
                          : c.e.transpose(c.e.reshape(x, {batch, left, size, size, height, width}), {0, 1, 4, 2, 5, 3});
  return {c.e.reshape(cut, {batch, left, height * size, width * size})};
}

} // namespace

void registerMovement(Registry &r) {
  r["Reshape"] = {reshape};
  r["Transpose"] = {transpose};
  r["Flatten"] = {flatten};
  r["Squeeze"] = {squeeze};
  r["Unsqueeze"] = {unsqueeze};
  r["Concat"] = {concat};
  r["Split"] = {split};
  r["Slice"] = {slice};
  r["Expand"] = {expand};
  r["Tile"] = {tile};
  r["Pad"] = {pad};
  r["DepthToSpace"] = {blocks<false>};
  r["SpaceToDepth"] = {blocks<true>};
}

} // namespace zero::onnx
