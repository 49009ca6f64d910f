//===- movement.cpp - operations that move elements ----------------------------------------------===//
#include "compiler/nn/eval/kernels.h"
#include "llvm/ADT/TypeSwitch.h"

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

size_t widthOf(const Tensor &t) { return (t.type.getElementTypeBitWidth() + 7) / 8; }

LogicalResult broadcast(BroadcastOp op, const Tensor &in, Tensor &out) {
  SmallVector<int64_t> source = stridesOf(in.shape()), strides(out.shape().size(), 0);
  for (auto [i, d] : llvm::enumerate(op.getDims())) strides[d] = in.shape()[i] == 1 ? 0 : source[i];
  copyStrided(in.bytes.data(), strides, out.bytes.data(), stridesOf(out.shape()), out.shape(), widthOf(in));
  return success();
}

LogicalResult slice(SliceOp op, const Tensor &in, Tensor &out) {
  SmallVector<int64_t> strides = stridesOf(in.shape());
  int64_t offset = 0;
  for (size_t i = 0; i < strides.size(); ++i) {
    offset += op.getStarts()[i] * strides[i];
    strides[i] *= op.getSteps()[i];
  }
  if (out.size())
    copyStrided(in.bytes.data() + offset * int64_t(widthOf(in)), strides, out.bytes.data(), stridesOf(out.shape()), out.shape(),
                widthOf(in));
  return success();
}

LogicalResult pad(PadOp op, const Tensor &in, Tensor &out) {
  size_t width = widthOf(in);
  Tensor value(RankedTensorType::get({1}, in.elementType()));
  if (auto number = dyn_cast<FloatAttr>(op.getValue()))
    value.set(0, number.getValueAsDouble());
  else if (auto integer = dyn_cast<IntegerAttr>(op.getValue()))
    value.set(0, integer.getType().isInteger(1) ? double(integer.getValue().getZExtValue()) : double(integer.getInt()));
  else
    return op.emitOpError() << "pads with " << op.getValue() << ", which is no number";
  for (size_t i = 0; i < out.bytes.size(); i += width) std::memcpy(out.bytes.data() + i, value.bytes.data(), width);
  SmallVector<int64_t> strides = stridesOf(out.shape());
  int64_t offset = 0;
  for (size_t i = 0; i < strides.size(); ++i) {
    offset += op.getLow()[i] * strides[i];
    strides[i] *= op.getInterior()[i] + 1;
  }
  if (in.size())
    copyStrided(in.bytes.data(), stridesOf(in.shape()), out.bytes.data() + offset * int64_t(width), strides, in.shape(), width);
  return success();
}

LogicalResult concat(ConcatOp op, Operands in, Tensor &out) {
  SmallVector<int64_t> strides = stridesOf(out.shape());
  int64_t at = 0, dim = op.getDim();
  for (const Tensor *part : in) {
    size_t width = widthOf(*part);
    if (part->size())
      copyStrided(part->bytes.data(), stridesOf(part->shape()), out.bytes.data() + at * strides[dim] * int64_t(width), strides,
                  part->shape(), width);
    at += part->shape()[dim];
  }
  return success();
}

/// The index tensor as i64, or an error where one lies outside [0, bound).
FailureOr<SmallVector<int64_t>> indicesWithin(Operation *op, const Tensor &indices, int64_t bound) {
  Tensor wide = indices.cast(IntegerType::get(op->getContext(), 64));
  SmallVector<int64_t> result(wide.data<int64_t>());
  for (int64_t index : result)
    if (index < 0 || index >= bound) return op->emitOpError() << "index " << index << " is not in [0, " << bound << ")";
  return result;
}

LogicalResult gather(GatherOp op, Operands in, Tensor &out) {
  auto rows = indicesWithin(op, *in[1], in[0]->shape()[0]);
  if (failed(rows)) return failure();
  size_t row = rows->empty() ? 0 : out.bytes.size() / rows->size();
  for (size_t i = 0; i < rows->size(); ++i) std::copy_n(in[0]->bytes.begin() + (*rows)[i] * row, row, out.bytes.begin() + i * row);
  return success();
}

LogicalResult takeAlong(TakeAlongOp op, Operands in, Tensor &out) {
  int64_t columns = in[0]->shape().back();
  auto picks = indicesWithin(op, *in[1], columns);
  if (failed(picks)) return failure();
  size_t width = widthOf(out);
  for (size_t i = 0; i < picks->size(); ++i)
    std::memcpy(out.bytes.data() + i * width, in[0]->bytes.data() + (int64_t(i) * columns + (*picks)[i]) * int64_t(width), width);
  return success();
}

} // namespace

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

LogicalResult movement(Operation *op, Operands in, Results out) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<BroadcastOp>([&](BroadcastOp o) { return broadcast(o, *in[0], out[0]); })
      .Case<ReshapeOp>([&](auto) {
        out[0].bytes = in[0]->bytes;
        return success();
      })
      .Case<TransposeOp>([&](TransposeOp o) {
        out[0].bytes = transposed(*in[0], o.getPerm()).bytes;
        return success();
      })
      .Case<SliceOp>([&](SliceOp o) { return slice(o, *in[0], out[0]); })
      .Case<PadOp>([&](PadOp o) { return pad(o, *in[0], out[0]); })
      .Case<ConcatOp>([&](ConcatOp o) { return concat(o, in, out[0]); })
      .Case<GatherOp>([&](GatherOp o) { return gather(o, in, out[0]); })
      .Case<TakeAlongOp>([&](TakeAlongOp o) { return takeAlong(o, in, out[0]); })
      .Default([](Operation *unknown) -> LogicalResult { return unknown->emitOpError() << "has no rule in the interpreter"; });
}

} // namespace zero::nn::eval
