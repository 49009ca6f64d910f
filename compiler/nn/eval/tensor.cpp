//===- tensor.cpp - host tensors and their conversions -------------------------------------------===//
#include "compiler/nn/eval/kernels.h"
#include "compiler/nn/random.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/xxhash.h"
#include <bit>
#include <cmath>
#include <limits>

using namespace mlir;

namespace zero::nn {
namespace {

float fromBf16(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }

uint16_t toBf16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return uint16_t(bits >> 16) | 0x40; // keep it a NaN
  return uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

float fromF16(uint16_t half) {
  uint32_t sign = uint32_t(half & 0x8000) << 16, exponent = (half >> 10) & 31, fraction = half & 0x3ff;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
  if (exponent == 0) // zero and subnormals: fraction * 2^-24
    return std::copysign(float(fraction) * 0x1p-24f, std::bit_cast<float>(sign | 0x3f800000u));
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

uint16_t toF16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value), sign = (bits >> 16) & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return uint16_t(sign | 0x7e00);
  if (magnitude >= 0x477ff000) // rounds to 65520 or more
    return uint16_t(sign | 0x7c00);
  if (magnitude < 0x38800000) // below 2^-14: a multiple of 2^-24, rounded to even by the float addition
    return uint16_t(sign | (std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u));
  uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1) - (112u << 23);
  return uint16_t(sign | rounded >> 13);
}

template <typename To, typename From> To convert(From value) {
  if constexpr (std::is_same_v<To, uint8_t>) {
    return value != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // Towards zero; what has no integer is saturated (NaN gives 0), so that the result never depends on the machine.
    if (std::isnan(value)) return 0;
    if (value >= -From(std::numeric_limits<To>::min())) return std::numeric_limits<To>::max();
    return value <= From(std::numeric_limits<To>::min()) ? std::numeric_limits<To>::min() : To(value);
  } else {
    return To(value);
  }
}

/// f16 or bf16 to f32.
Tensor widened(const Tensor &from) {
  Tensor to(RankedTensorType::get(from.shape(), Float32Type::get(from.type.getContext())));
  auto in = from.data<uint16_t>();
  auto out = to.data<float>();
  bool half = from.elementType().isF16();
  for (size_t i = 0, n = in.size(); i < n; ++i) out[i] = half ? fromF16(in[i]) : fromBf16(in[i]);
  return to;
}

/// f32 to f16 or bf16.
Tensor narrowed(const Tensor &from, Type elementType) {
  Tensor to(RankedTensorType::get(from.shape(), elementType));
  auto in = from.data<float>();
  auto out = to.data<uint16_t>();
  bool half = elementType.isF16();
  for (size_t i = 0, n = in.size(); i < n; ++i) out[i] = half ? toF16(in[i]) : toBf16(in[i]);
  return to;
}

} // namespace

void Tensor::dropEqual() {
  SmallVector<int64_t> shape(type.getShape());
  auto width = int64_t(bytes.size()) / std::max<int64_t>(size(), 1);
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    if (shape[dim] <= 1 || bytes.empty()) continue;
    int64_t slice = width, all = int64_t(bytes.size());
    for (int64_t inner : ArrayRef(shape).drop_front(dim + 1)) slice *= inner;
    int64_t run = slice * shape[dim];
    bool equal = true;
    for (int64_t base = 0; equal && base < all; base += run)
      for (int64_t at = slice; equal && at < run; at += slice)
        equal = std::memcmp(bytes.data() + base, bytes.data() + base + at, size_t(slice)) == 0;
    if (!equal) continue;
    for (int64_t r = 1; r < all / run; ++r) std::memmove(bytes.data() + r * slice, bytes.data() + r * run, size_t(slice));
    bytes.resize(size_t(all / shape[dim]));
    shape[dim] = 1;
  }
  type = RankedTensorType::get(shape, type.getElementType());
}

Tensor Tensor::cast(Type to) const {
  if (to == elementType()) return *this;
  if (isNarrow(elementType())) return widened(*this).cast(to);
  if (isNarrow(to)) return narrowed(cast(Float32Type::get(type.getContext())), to);
  Tensor result(RankedTensorType::get(shape(), to));
  (void)eval::withElement(elementType(), [&](auto from) {
    return eval::withElement(to, [&](auto element) {
      auto in = data<decltype(from)>();
      auto out = result.data<decltype(element)>();
      for (size_t i = 0, n = in.size(); i < n; ++i) out[i] = convert<decltype(element)>(in[i]);
      return success();
    });
  });
  return result;
}

double Tensor::at(int64_t index) const {
  if (elementType().isF16()) return fromF16(data<uint16_t>()[index]);
  if (elementType().isBF16()) return fromBf16(data<uint16_t>()[index]);
  double value = 0;
  (void)eval::withElement(elementType(), [&](auto element) {
    value = double(data<decltype(element)>()[index]);
    return success();
  });
  return value;
}

int64_t Tensor::integer(int64_t index) const {
  if (isNarrow(elementType())) return convert<int64_t>(at(index));
  int64_t value = 0;
  (void)eval::withElement(elementType(), [&](auto element) {
    value = convert<int64_t>(data<decltype(element)>()[index]);
    return success();
  });
  return value;
}

std::vector<int64_t> Tensor::integers() const {
  std::vector<int64_t> all(size());
  if (isNarrow(elementType())) {
    for (int64_t i = 0; i < size(); ++i) all[i] = integer(i);
    return all;
  }
  (void)eval::withElement(elementType(), [&](auto element) {
    using T = decltype(element);
    llvm::transform(data<T>(), all.begin(), [](T value) { return convert<int64_t>(value); });
    return success();
  });
  return all;
}

void Tensor::set(int64_t index, double value) {
  if (elementType().isF16())
    data<uint16_t>()[index] = toF16(float(value));
  else if (elementType().isBF16())
    data<uint16_t>()[index] = toBf16(float(value));
  else
    (void)eval::withElement(elementType(), [&](auto element) {
      data<decltype(element)>()[index] = convert<decltype(element)>(value);
      return success();
    });
}

Tensor Tensor::fromValues(RankedTensorType type, ArrayRef<double> values) {
  assert(int64_t(values.size()) == type.getNumElements());
  Tensor result(type);
  for (size_t i = 0, n = values.size(); i < n; ++i) result.set(i, values[i]);
  return result;
}

FailureOr<Tensor> Tensor::fromAttribute(ElementsAttr attribute) {
  auto type = dyn_cast<RankedTensorType>(attribute.getShapedType());
  if (!type) return failure();
  Tensor result(type);
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(attribute)) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    if (!blob || blob->getData().size() != result.bytes.size()) return failure();
    llvm::copy(blob->getData(), result.bytes.begin());
    return result;
  }
  auto dense = dyn_cast<DenseElementsAttr>(attribute);
  if (!dense) return failure();
  if (type.getElementType().isInteger(1)) { // packed into bits
    if (dense.isSplat())
      std::fill(result.bytes.begin(), result.bytes.end(), char(dense.getSplatValue<bool>()));
    else
      llvm::copy(dense.getValues<bool>(), result.bytes.begin());
    return result;
  }
  ArrayRef<char> raw = dense.getRawData();
  if (!dense.isSplat())
    llvm::copy(raw, result.bytes.begin());
  else
    for (size_t i = 0; i < result.bytes.size(); i += raw.size()) std::memcpy(result.bytes.data() + i, raw.data(), raw.size());
  return result;
}

ElementsAttr Tensor::toAttribute(size_t resourceFrom) const {
  size_t width = bytes.empty() ? 1 : bytes.size() / size();
  bool splat = !bytes.empty() && std::memcmp(bytes.data(), bytes.data() + width, bytes.size() - width) == 0;
  if (elementType().isInteger(1)) {
    if (splat) return DenseElementsAttr::get(type, bool(bytes[0]));
    if (bytes.size() < resourceFrom)
      return DenseElementsAttr::get(type, ArrayRef<bool>(reinterpret_cast<const bool *>(bytes.data()), bytes.size()));
  } else if (splat) {
    return DenseElementsAttr::getFromRawBuffer(type, ArrayRef<char>(bytes.data(), width));
  } else if (bytes.size() < resourceFrom) {
    return DenseElementsAttr::getFromRawBuffer(type, bytes);
  }
  return DenseResourceElementsAttr::get(type, "tensor", HeapAsmResourceBlob::allocateAndCopyWithAlign(bytes, 64));
}

FailureOr<Tensor> loadParameter(ParameterOp parameter, StringRef folder, uint64_t seed) {
  auto type = mlir::cast<RankedTensorType>(parameter.getType());
  if (parameter.getTileOf())
    return parameter.emitError() << "parameter " << parameter.getSymName() << " is a tile; evaluate the module nn-tile was given instead";
  if (auto file = parameter.getFile()) {
    Tensor stored(RankedTensorType::get(type.getShape(), parameter.getStored().value_or(type.getElementType())));
    if (stored.bytes.size() != size_t(parameter.getBytes()))
      return parameter.emitError() << "parameter " << parameter.getSymName() << ": " << parameter.getBytes() << " bytes in the file for "
                                   << stored.type;
    SmallString<256> path(llvm::sys::path::is_absolute(*file) ? "" : folder);
    llvm::sys::path::append(path, *file);
    uint64_t size = 0, offset = uint64_t(parameter.getOffset());
    bool inside = !llvm::sys::fs::file_size(path, size) && stored.bytes.size() <= size && offset <= size - stored.bytes.size();
    auto buffer = llvm::MemoryBuffer::getFileSlice(path, inside ? stored.bytes.size() : 0, inside ? offset : 0);
    if (!inside || !buffer)
      return parameter.emitError() << "parameter " << parameter.getSymName() << ": cannot read " << stored.bytes.size() << " bytes at "
                                   << offset << " of " << path;
    llvm::copy((*buffer)->getBuffer(), stored.bytes.begin());
    return stored.cast(type.getElementType());
  }
  StringRef init = parameter.getInit().value_or("zeros");
  Tensor values(RankedTensorType::get(type.getShape(), Float32Type::get(type.getContext())));
  auto out = values.data<float>();
  if (init == "ones")
    std::fill(out.begin(), out.end(), 1.0f);
  else if (init == "normal") {
    RandomKey key = randomKey(seed, llvm::xxh3_64bits(parameter.getSymName()));
    double deviation = parameter.getInitStd().convertToDouble();
    for (size_t i = 0; i < out.size(); ++i) { // Box-Muller
      double radius = std::sqrt(-2 * std::log(1 - double(uniform(key, 2 * i))));
      out[i] = float(deviation * radius * std::cos(6.283185307179586 * uniform(key, 2 * i + 1)));
    }
  } // else "zeros", by its verifier
  return values.cast(type.getElementType());
}

} // namespace zero::nn
