//===- strided.cpp - copies of elements from one layout to another --------------------------------===//
#include "compiler/nn/eval/kernels.h"

using namespace mlir;

namespace zero::nn::eval {
namespace {

/// One dimension of a strided copy.
struct Loop {
  int64_t size, src, dst;
};

template <typename T> void copyLoops(const T *src, T *dst, ArrayRef<Loop> loops) {
  Loop inner = loops.back();
  ArrayRef<Loop> outer = loops.drop_back();
  SmallVector<int64_t, 8> index(outer.size(), 0);
  while (true) {
    if (inner.src == 1 && inner.dst == 1)
      std::copy_n(src, inner.size, dst);
    else
      for (int64_t i = 0; i < inner.size; ++i) dst[i * inner.dst] = src[i * inner.src];
    int d = int(outer.size()) - 1;
    for (; d >= 0; --d) { // odometer
      src += outer[d].src;
      dst += outer[d].dst;
      if (++index[d] < outer[d].size) break;
      src -= outer[d].src * outer[d].size;
      dst -= outer[d].dst * outer[d].size;
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

} // namespace

FailureOr<SmallVector<int64_t>> indicesWithin(Operation *op, const Tensor &indices, int64_t bound) {
  Tensor wide = indices.cast(IntegerType::get(op->getContext(), 64));
  SmallVector<int64_t> result(wide.data<int64_t>());
  for (int64_t index : result)
    if (index < 0 || index >= bound) return op->emitOpError() << "index " << index << " is not in [0, " << bound << ")";
  return result;
}

SmallVector<int64_t> stridesOf(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size());
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0; step *= shape[i]) strides[i] = step;
  return strides;
}

void copyStrided(const char *src, ArrayRef<int64_t> srcStrides, char *dst, ArrayRef<int64_t> dstStrides, ArrayRef<int64_t> shape,
                 size_t width) {
  SmallVector<Loop, 8> loops;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) return;
    if (shape[i] == 1) continue;
    if (!loops.empty() && loops.back().src == srcStrides[i] * shape[i] && loops.back().dst == dstStrides[i] * shape[i])
      loops.back() = {loops.back().size * shape[i], srcStrides[i], dstStrides[i]}; // one loop where two are contiguous
    else
      loops.push_back({shape[i], srcStrides[i], dstStrides[i]});
  }
  if (loops.empty()) loops.push_back({1, 1, 1});
  switch (width) {
  case 1:
    return copyLoops(src, dst, loops);
  case 2:
    return copyLoops(reinterpret_cast<const uint16_t *>(src), reinterpret_cast<uint16_t *>(dst), loops);
  case 4:
    return copyLoops(reinterpret_cast<const uint32_t *>(src), reinterpret_cast<uint32_t *>(dst), loops);
  default:
    return copyLoops(reinterpret_cast<const uint64_t *>(src), reinterpret_cast<uint64_t *>(dst), loops);
  }
}

Tensor transposed(const Tensor &in, ArrayRef<int64_t> perm) {
  SmallVector<int64_t> source = stridesOf(in.shape()), shape, strides;
  for (int64_t p : perm) {
    shape.push_back(in.shape()[p]);
    strides.push_back(source[p]);
  }
  Tensor out(RankedTensorType::get(shape, in.elementType()));
  copyStrided(in.bytes.data(), strides, out.bytes.data(), stridesOf(shape), shape, widthOf(in));
  return out;
}

} // namespace zero::nn::eval
