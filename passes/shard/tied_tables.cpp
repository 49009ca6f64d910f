//===- tied_tables.cpp - tables whose looked-up rows are updated apart from the rest -----------------------===//
#include "passes/shard/tied_tables.h"
#include "compiler/nn/library/table_rows.h"
#include <numeric>

using namespace mlir;

namespace zero::shard {

namespace {

RankedTensorType matrix(int64_t rows, int64_t columns, Type type) { return RankedTensorType::get({rows, columns}, type); }

} // namespace

TiedTables::TiedTables(ProgramUses &uses, StateKernels &kernels)
    : uses(uses), kernels(kernels), symbols(uses.program->getParentOfType<ModuleOp>()) {
  if (uses.role != "step" || uses.waitsForNorm || uses.sharding.world > 1 || uses.sharding.accumulate > 1) return;
  llvm::MapVector<StringAttr, TiedTable> found; // by the name of the whole table
  for (state::BucketOp bucket : uses.buckets) add(bucket, found);
  for (auto &[name, table] : found) {
    llvm::sort(table.tiles, [](const TableTile &a, const TableTile &c) { return a.begin < c.begin; });
    if (!isWorthIt(table)) continue;
    Operation *first = nullptr; // that makes some of the gradient
    for (const TableTile &tile : table.tiles)
      if (Operation *op = tile.rest.getDefiningOp(); !first || op->isBeforeInBlock(first)) first = op;
    if (Operation *indices = table.indices.getDefiningOp(); indices && !indices->isBeforeInBlock(first))
      continue; // they are made again for the lookup's gradient (nn-rematerialize), after most of the table could be updated
    OpBuilder b(first);
    int64_t all = (2 + train::statesOf(uses.sharding.optimizer)) * table.rows() * table.columns;
    table.room = b.create<state::RoomForRowsOp>(NameLoc::get(b.getStringAttr(name.getValue() + ".rows")),
                                                RankedTensorType::get({all}, b.getF32Type()));
    tables.push_back(table);
  }
}

void TiedTables::add(state::BucketOp bucket, llvm::MapVector<StringAttr, TiedTable> &found) {
  auto gradients = uses.gradients.find(bucket);
  if (!bucket.getTrainable() || gradients == uses.gradients.end() || bucket.getParameters().size() != 1) return;
  nn::GradientOp gradient = gradients->second[0][0];
  auto launch = gradient.getValue().getDefiningOp<nn::LaunchOp>();
  if (!launch || !launch->hasAttr(nn::kAddsRows)) return;
  auto parameter = symbols.lookup<nn::ParameterOp>(gradient.getParameterAttr().getAttr());
  auto type = cast<RankedTensorType>(parameter.getType());
  nn::AddedRows rows = nn::addedRows(launch);
  int64_t columns = type.getDimSize(1), begin = parameter.getTileOf() ? (*parameter.getBegin())[0] * columns : 0;
  TiedTable &table = found[parameter.getTileOf() ? parameter.getTileOfAttr() : parameter.getSymNameAttr()];
  table.indices = rows.indices, table.updates = rows.rows, table.columns = columns;
  table.tableRows = parameter.getTileOf() ? (*parameter.getWhole())[0] : type.getDimSize(0);
  table.tiles.push_back({bucket, begin, type.getNumElements(), rows.onto, launch});
}

/// All tiles are there, get rows of one lookup, have a gradient besides that nobody else reads and lie side by side; there is something to
/// wait for; and what the next step looks up is on the device: from disk it would wait for rows that are still on their way there, which
/// takes longer than to update it last.
bool TiedTables::isWorthIt(const TiedTable &table) const {
  int64_t end = 0, elements = 0; // of the tiles so far
  for (TableTile tile : table.tiles) {
    nn::AddedRows rows = nn::addedRows(tile.addsRows);
    auto before = rows.onto ? rows.onto.getDefiningOp<nn::LaunchOp>() : nn::LaunchOp();
    if (!rows.onto || !rows.onto.hasOneUse() || (before && before->hasAttr(nn::kAddsRows)) || rows.indices != table.indices ||
        rows.rows != table.updates || tile.begin != end || tile.bucket.isPublished() || tile.bucket.getUpdatedOnHost() ||
        !tile.bucket.isResident(tile.bucket.readRole()))
      return false;
    end += int64_t(tile.bucket.getElements()); // what fills up a bucket lies beyond the last tile
    elements += tile.elements;
  }
  return elements == table.tableRows * table.columns && llvm::any_of(table.tiles, [](TableTile tile) { return isElsewhere(tile.bucket); });
}

std::pair<const TiedTable *, const TableTile *> TiedTables::find(state::BucketOp bucket) const {
  for (const TiedTable &table : tables)
    for (const TableTile &tile : table.tiles)
      if (tile.bucket == bucket) return {&table, &tile};
  return {};
}

void TiedTables::setApart(state::UpdateOp update, state::BucketOp bucket) const {
  auto [table, tile] = find(bucket);
  if (!table) return;
  update.getApartMutable().assign(table->room);
  update.getIndicesMutable().assign(table->indices);
  update.setRow(table->columns);
  update.setTableBegin(tile->begin);
  update.setTableRows(table->tableRows);
}

SmallVector<Value> TiedTables::finish() {
  return llvm::map_to_vector(tables, [&](TiedTable &table) { return update(table); });
}

Value TiedTables::gradientOf(const TiedTable &table, OpBuilder &b) {
  Location loc = table.room.getLoc();
  int64_t n = table.rows(), states = train::statesOf(uses.sharding.optimizer);
  Type updated = cast<ShapedType>(table.updates.getType()).getElementType();
  auto rows = matrix(n, table.columns, b.getF32Type());
  Value soFar = b.create<state::ViewOp>(loc, rows, table.room, (1 + states) * rows.getNumElements());
  Value updates = b.create<nn::ReshapeOp>(loc, matrix(n, table.columns, updated), table.updates);
  SmallVector<float> places(n);
  std::iota(places.begin(), places.end(), 0.0f); // whole numbers below 2^24, exact in f32
  Value numbers = b.create<nn::ConstantOp>(loc, DenseElementsAttr::get(RankedTensorType::get({n}, b.getF32Type()), ArrayRef(places)));
  auto flat = RankedTensorType::get({n}, cast<ShapedType>(table.indices.getType()).getElementType());
  Value indices = b.create<nn::ReshapeOp>(loc, flat, table.indices);
  auto kernel = kernels.addToFirst(flat, table.columns, updated);
  return b.create<nn::LaunchOp>(loc, TypeRange(rows), kernel, ValueRange{soFar, indices, numbers, updates}).getResult(0);
}

Value TiedTables::update(TiedTable &table) {
  Operation *last = table.updates.getDefiningOp();
  for (Operation *user : table.room.getUsers()) last = later(last, user);
  OpBuilder b(last->getContext());
  b.setInsertionPointAfter(last);
  Location loc = table.room.getLoc();
  int64_t n = table.rows(), states = train::statesOf(uses.sharding.optimizer);
  Type compute; // of tiles that have a copy of another type
  SmallVector<Attribute> buckets;
  SmallVector<int64_t> begins;
  for (TableTile tile : table.tiles) {
    buckets.push_back(FlatSymbolRefAttr::get(tile.bucket.getSymNameAttr()));
    begins.push_back(tile.begin);
    if (Type type = computeType(tile.bucket)) compute = type;
  }
  SmallVector<Type> changed(1 + states, matrix(n, table.columns, b.getF32Type()));
  if (compute) changed.push_back(matrix(n, table.columns, compute));
  changed.push_back(RankedTensorType::get({n}, b.getF32Type()));
  Value gradient = gradientOf(table, b), hyper = uses.program.getArguments().back();
  auto kernel = kernels.update(uses.sharding.optimizer, n, table.columns, {false, false, compute, false});
  auto update = b.create<state::UpdateRowsOp>(loc, TypeRange(changed), table.room, gradient, hyper, table.indices, kernel.getValue(),
                                              b.getArrayAttr(buckets), begins);
  table.update = update;
  write(b, table, /*parameters=*/true); // the next step looks them up first
  return update.getResults().back();
}

void TiedTables::writeMoments(OpBuilder &b) {
  for (TiedTable &table : tables) write(b, table, /*parameters=*/false);
}

void TiedTables::write(OpBuilder &b, const TiedTable &table, bool parameters) {
  auto results = table.update->getResults();
  for (TableTile tile : table.tiles) {
    auto to = [&](state::Role role, int64_t result) {
      if (state::isParameter(role) == parameters)
        b.create<state::WriteRowsOp>(table.room.getLoc(), tile.bucket.getSymName(), role, results[result], table.indices, tile.elements,
                                     tile.begin, table.tableRows);
    };
    int64_t result = 0;
    for (auto tensor : tile.bucket.getTensors().getAsRange<state::TensorAttr>())
      if (tensor.getRole() == state::Role::master || state::isMoment(tensor.getRole())) to(tensor.getRole(), result++);
    if (computeType(tile.bucket)) to(state::Role::compute, 1 + train::statesOf(uses.sharding.optimizer));
  }
}

} // namespace zero::shard
