//===- row_kernels.cpp - kernels of rows in a rank's shard of a table ----------------------------------===//
#include "compiler/nn/kernel.h"
#include "passes/shard/kernels.h"

using namespace mlir;

namespace zero::shard {
namespace {

using nn::KernelBuilder;

/// Where rows lie in the shard of a rank.
struct Local {
  Value inside, row; // of each index: whether its row does, and which it is there (`otherwise`, if not)
};
Local locate(KernelBuilder &k, Value rank, Value indices, int64_t rowsOfShard, int64_t otherwise) {
  auto &b = k.b;
  int64_t n = nn::typeOf(indices).getNumElements();
  Value first = b.mul(b.slice(rank, {0}, {1}, {1}), double(rowsOfShard)); // whole numbers below 2^24, exact in f32
  Value local = b.sub(indices, b.everywhere(first, {n}));
  Value inside = k.builder.create<nn::AndOp>(b.loc, b.compare(nn::Predicate::ge, local, b.like(local, 0)),
                                             b.compare(nn::Predicate::lt, local, b.like(local, double(rowsOfShard))));
  return {inside, b.cast(b.select(inside, local, b.like(local, double(otherwise))), k.builder.getI64Type())};
}

RankedTensorType matrix(int64_t rows, int64_t columns, Type type) { return RankedTensorType::get({rows, columns}, type); }

} // namespace

/// Of a kernel of indices: their shape, and their type.
static std::string suffixOfIndices(RankedTensorType type) {
  std::string suffix;
  for (int64_t size : type.getShape()) suffix += "_" + std::to_string(size);
  return suffix + (type.getElementType().isInteger(64) ? "" : "_i32");
}

FlatSymbolRefAttr StateKernels::indices(RankedTensorType type) {
  std::string name = "indices" + suffixOfIndices(type);
  return once(name, [&] {
    KernelBuilder k(module, name, {type});
    return k.finish(k.b.reshape(k.b.cast(k.arg(0), Float32Type::get(module.getContext())), {type.getNumElements()}));
  });
}

FlatSymbolRefAttr StateKernels::lookUp(int64_t rows, int64_t columns, int64_t n, Type type) {
  std::string name = "look_up_" + std::to_string(n) + "_of_" + std::to_string(rows) + "x" + std::to_string(columns) + suffixOf(type);
  return once(name, [&] {
    Type f32 = Float32Type::get(module.getContext());
    KernelBuilder k(module, name, {matrix(rows, columns, type), RankedTensorType::get({16}, f32), RankedTensorType::get({n}, f32)});
    Local at = locate(k, k.arg(1), k.arg(2), rows, /*otherwise=*/0);
    Value found = k.b.cast(k.builder.create<nn::GatherOp>(k.b.loc, matrix(n, columns, type), k.arg(0), at.row), f32);
    return k.finish(k.b.select(k.b.broadcast(at.inside, {n, columns}, {0}), found, k.b.like(found, -0.0)));
  });
}

FlatSymbolRefAttr StateKernels::addRows(int64_t rows, int64_t columns, int64_t n, Type type) {
  std::string name = "add_rows_" + std::to_string(n) + "_to_" + std::to_string(rows) + "x" + std::to_string(columns) + suffixOf(type);
  return once(name, [&] {
    Type f32 = Float32Type::get(module.getContext());
    KernelBuilder k(
        module, name,
        {matrix(rows, columns, f32), RankedTensorType::get({16}, f32), RankedTensorType::get({n}, f32), matrix(n, columns, type)});
    // Beyond the last row, where kernels add nothing: zeros for a row that exists would all be added to it, one after another.
    Local at = locate(k, k.arg(1), k.arg(2), rows, /*otherwise=*/rows);
    Value sums = k.builder.create<nn::ScatterAddOp>(k.b.loc, matrix(rows, columns, f32), at.row, k.b.cast(k.arg(3), f32));
    return k.finish(k.builder.create<nn::AddOp>(k.b.loc, k.arg(0), sums).getResult());
  });
}

FlatSymbolRefAttr StateKernels::addToFirst(RankedTensorType indices, int64_t columns, Type type) {
  int64_t n = indices.getNumElements();
  std::string name = "add_rows_to_first_x" + std::to_string(columns) + suffixOf(type) + suffixOfIndices(indices);
  return once(name, [&] {
    Type f32 = Float32Type::get(module.getContext());
    KernelBuilder k(module, name, {matrix(n, columns, f32), indices, RankedTensorType::get({n}, f32), matrix(n, columns, type)});
    auto &b = k.b;
    Value equal = b.compare(nn::Predicate::eq, b.broadcast(k.arg(1), {n, n}, {0}), b.broadcast(k.arg(1), {n, n}, {1}));
    Value place = b.broadcast(k.arg(2), {n, n}, {1});
    Value first = b.reduce(nn::ReductionKind::min, b.select(equal, place, b.like(place, double(n))), {1});
    Value sums =
        k.builder.create<nn::ScatterAddOp>(b.loc, matrix(n, columns, f32), b.cast(first, k.builder.getI64Type()), b.cast(k.arg(3), f32));
    return k.finish(k.builder.create<nn::AddOp>(b.loc, k.arg(0), sums).getResult());
  });
}

} // namespace zero::shard
