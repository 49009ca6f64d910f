//===- row_exchange.cpp - rows of a table between ranks, in place of the table ------------------------===//
#include "passes/shard/row_exchange.h"

using namespace mlir;

namespace zero::shard {
namespace {

constexpr int64_t kRankElements = 16; // 64 bytes: where a buffer begins that depends on the rank

int64_t elementsOf(Value v) { return cast<ShapedType>(v.getType()).getNumElements(); }
RankedTensorType flatLike(Value v, int64_t times = 1, Type type = nullptr) {
  auto shaped = cast<RankedTensorType>(v.getType());
  return RankedTensorType::get({times * shaped.getNumElements()}, type ? type : shaped.getElementType());
}
StringRef tableOf(state::BucketOp bucket) { return cast<FlatSymbolRefAttr>(bucket.getParameters()[0]).getValue(); }
Location named(OpBuilder &b, StringRef table, StringRef what) { return NameLoc::get(b.getStringAttr(table + "." + what)); }

} // namespace

bool RowExchange::splitsRows(state::BucketOp bucket, Type table) {
  auto type = cast<RankedTensorType>(table);
  return bucket.getParameters().size() == 1 && type.getRank() == 2 && int64_t(bucket.getShard()) % type.getDimSize(1) == 0;
}

Value RowExchange::rank() {
  if (number) return number;
  SmallVector<float> values;
  for (int64_t i = 0; i < world * kRankElements; ++i) values.push_back(float(i / kRankElements));
  OpBuilder b = OpBuilder::atBlockBegin(&program.getBody().front());
  Location loc = NameLoc::get(b.getStringAttr("rank"));
  auto all = DenseElementsAttr::get(RankedTensorType::get({world * kRankElements}, b.getF32Type()), ArrayRef(values));
  Value numbers = b.create<nn::ConstantOp>(loc, all);
  return number = b.create<state::OwnShardOp>(loc, RankedTensorType::get({kRankElements}, b.getF32Type()), numbers);
}

Value RowExchange::ofAllRanks(Value indices, StringRef table) {
  Value &all = gathered[indices];
  if (all) return all;
  OpBuilder b(program.getContext());
  b.setInsertionPointAfterValue(indices);
  Location loc = named(b, table, "indices");
  FlatSymbolRefAttr kernel = kernels.indices(cast<RankedTensorType>(indices.getType()));
  Value own = b.create<nn::LaunchOp>(loc, TypeRange(flatLike(indices, 1, b.getF32Type())), kernel, ValueRange(indices)).getResult(0);
  return all = b.create<state::AllGatherOp>(loc, flatLike(own, world), own);
}

Operation *RowExchange::lookUp(nn::LaunchOp launch, state::BucketOp bucket) {
  Value indices = launch.getInputs()[1];
  auto result = cast<RankedTensorType>(launch.getResult(0).getType());
  Type f32 = Float32Type::get(program.getContext()), type = result.getElementType();
  int64_t columns = result.getShape().back(), tokens = elementsOf(indices);
  Value all = ofAllRanks(indices, tableOf(bucket)), own = rank();
  OpBuilder b(launch);
  Location loc = named(b, tableOf(bucket), "rows");
  auto kernel = kernels.lookUp(int64_t(bucket.getShard()) / columns, columns, world * tokens, type);
  auto rows = b.create<state::LookUpOp>(loc, RankedTensorType::get({world * tokens * columns}, f32), bucket.getSymName(), own, all,
                                        kernel.getValue());
  Value sum = b.create<state::ReduceScatterOp>(loc, RankedTensorType::get({tokens * columns}, f32), rows);
  if (type != f32) { // exactly: they are numbers of that type
    Value matrix = b.create<nn::ReshapeOp>(loc, RankedTensorType::get({tokens, columns}, f32), sum);
    sum = b.create<nn::LaunchOp>(loc, TypeRange(RankedTensorType::get({tokens, columns}, type)), kernels.round(type, tokens, columns),
                                 ValueRange(matrix))
              .getResult(0);
  }
  Value view = b.create<nn::ReshapeOp>(loc, result, sum);
  launch.getResult(0).replaceAllUsesWith(view);
  launch.erase();
  return rows;
}

Value RowExchange::addRows(OpBuilder &b, nn::LaunchOp launch, state::BucketOp bucket, Value shard) {
  nn::AddedRows added = nn::addedRows(launch);
  int64_t columns = cast<ShapedType>(added.rows.getType()).getShape().back(), tokens = elementsOf(added.indices);
  Type type = cast<ShapedType>(added.rows.getType()).getElementType();
  Location loc = named(b, tableOf(bucket), "gradient_rows");
  Value all = ofAllRanks(added.indices, tableOf(bucket)), own = rank();
  Value flat = b.create<nn::ReshapeOp>(loc, flatLike(added.rows), added.rows);
  Value rows = b.create<state::AllGatherOp>(loc, flatLike(flat, world), flat);
  auto kernel = kernels.addRows(int64_t(bucket.getShard()) / columns, columns, world * tokens, type);
  return b.create<state::AddRowsOp>(loc, shard.getType(), bucket.getSymName(), shard, own, all, rows, kernel.getValue());
}

} // namespace zero::shard
