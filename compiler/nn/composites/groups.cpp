//===- groups.cpp - rows in groups, and their products with the matrices of these ----------------===//
#include "compiler/nn/eval/row_product.h"
#include "compiler/nn/implement.h"

using namespace mlir;

namespace zero::nn {
namespace {

/// Running sums go along rows of a table that are no longer than this, so that many are made at once.
constexpr int64_t kLongestRun = 256;

int64_t runOf(int64_t rows) {
  int64_t run = 1;
  while (run < kLongestRun && rows % (run * 2) == 0) run *= 2;
  return run >= 8 ? run : rows;
}

/// The rows of `input` in their slots, zeros in the others: [blocks, height, columns].
Value inBlocks(Build &b, Value input, Value row, Value groupOf) {
  int64_t blocks = typeOf(groupOf).getDimSize(0), columns = typeOf(input).getDimSize(1), slots = typeOf(row).getDimSize(0);
  Value rows = b.b.create<GatherOp>(b.loc, withShape(input, {slots, columns}), input, b.max(row, b.like(row, 0)));
  Value taken = b.broadcast(b.compare(Predicate::ge, row, b.like(row, 0)), {slots, columns}, {0});
  return b.reshape(b.select(taken, rows, b.like(rows, 0)), {blocks, slots / blocks, columns});
}

/// Groups from `begin` on, `count` of them, as they are numbered among themselves; -1 for the others.
Value some(Build &b, Value groupOf, int64_t begin, int64_t count) {
  Value from = b.compare(Predicate::ge, groupOf, b.like(groupOf, double(begin)));
  Value to = b.compare(Predicate::lt, groupOf, b.like(groupOf, double(begin + count)));
  Value here = b.b.create<AndOp>(b.loc, from, to), local = b.sub(groupOf, b.like(groupOf, double(begin)));
  return b.select(here, local, b.like(groupOf, -1));
}

LogicalResult verifyRows(Operation *op, Value row, Value groupOf, ArrayRef<Value> inputs) {
  auto slots = typeOf(row), blocks = typeOf(groupOf);
  if (slots.getRank() != 1 || blocks.getRank() != 1 || blocks.getDimSize(0) == 0 || slots.getDimSize(0) % blocks.getDimSize(0))
    return op->emitOpError() << "needs the slots and groups of blocks of equal height, not " << slots << " and " << blocks;
  for (Value input : inputs)
    if (typeOf(input).getRank() != 2) return op->emitOpError() << "reads rows, not " << typeOf(input);
  return success();
}

} // namespace

//===----------------------------------------------------------------------===//
// Where rows go
//===----------------------------------------------------------------------===//

void GroupRowsOp::build(OpBuilder &b, OperationState &state, Value group, int64_t groups, int64_t height) {
  int64_t rows = typeOf(group).getDimSize(0), blocks = (rows + groups * (height - 1)) / height;
  build(b, state, {withShape(group, {rows}), withShape(group, {blocks * height}), withShape(group, {blocks})}, group, groups, height);
}

LogicalResult GroupRowsOp::verify() {
  auto group = typeOf(getGroup());
  int64_t groups = getGroups(), height = getHeight();
  if (group.getRank() != 1 || groups < 1 || height < 1)
    return emitOpError() << "puts rows of " << groups << " groups into blocks of " << height << ", and needs a group of each, not "
                         << group;
  int64_t blocks = (group.getDimSize(0) + groups * (height - 1)) / height;
  if (typeOf(getSlot()) != group || typeOf(getRow()) != withShape(getGroup(), {blocks * height}) ||
      typeOf(getGroupOf()) != withShape(getGroup(), {blocks}))
    return emitOpError() << "needs " << blocks << " blocks of " << height;
  return success();
}

Composed GroupRowsOp::decompose(Build &b) {
  Value group = getGroup();
  int64_t rows = typeOf(group).getDimSize(0), groups = getGroups(), height = getHeight(), blocks = typeOf(getGroupOf()).getDimSize(0);
  int64_t run = runOf(rows), runs = rows / run;
  auto ints = [&](ArrayRef<int64_t> shape) { return withShape(group, shape); };
  auto running = [&](Value v, bool exclusive) -> Value { return b.b.create<CumSumOp>(b.loc, v, exclusive, false); };
  auto at = [&](Value table, Value index) -> Value {
    return b.b.create<GatherOp>(b.loc, ints(typeOf(index).getShape()), b.reshape(table, {typeOf(table).getNumElements()}), index);
  };
  // Of each group: which rows belong to it, how many of them came before in this run, and in the runs before.
  Value byRun = b.reshape(group, {runs, run});
  auto table = ints({groups, runs, run});
  Value belongs = b.cast(b.compare(Predicate::eq, b.broadcast(byRun, table.getShape(), {1, 2}), b.iota(table, 0)), elementOf(group));
  Value inRun = running(belongs, true), ofRun = b.reduce(ReductionKind::sum, belongs, {2}), before = running(ofRun, true);
  Value count = b.reduce(ReductionKind::sum, ofRun, {1});
  Value taken = b.div(b.add(count, double(height - 1)), b.like(count, double(height))); // blocks
  Value end = running(taken, false), first = b.sub(end, taken);

  Value inTable = b.add(b.mul(byRun, double(rows)), b.add(b.mul(b.iota(ints({runs, run}), 0), double(run)), b.iota(ints({runs, run}), 1)));
  Value inRuns = b.add(b.mul(byRun, double(runs)), b.iota(ints({runs, run}), 0));
  Value ahead = b.add(at(inRun, inTable), at(before, inRuns));
  Value slot = b.reshape(b.add(b.mul(at(first, byRun), double(height)), ahead), {rows});

  // Each slot is one row's at most. Numbers of rows are exact in f32, and 0 is no row's.
  Value number = b.cast(b.add(b.iota(ints({rows}), 0), 1), b.b.getF32Type());
  Value found = b.b.create<ScatterAddOp>(b.loc, RankedTensorType::get({blocks * height}, b.b.getF32Type()), slot, number);
  Value row = b.add(b.cast(found, elementOf(group)), -1);

  auto pairs = ints({blocks, groups});
  Value over = b.cast(b.compare(Predicate::ge, b.iota(pairs, 0), b.broadcast(end, pairs.getShape(), {1})), elementOf(group));
  Value passed = b.reduce(ReductionKind::sum, over, {1}); // groups that end before the block
  Value groupOf = b.select(b.compare(Predicate::lt, passed, b.like(passed, double(groups))), passed, b.like(passed, -1));
  return {slot, row, groupOf};
}

LogicalResult GroupRowsOp::evaluate(Operands in, Results results) {
  int64_t groups = getGroups(), height = getHeight(), rows = in[0]->size(), blocks = results[2].size();
  auto group = indicesWithin(*this, *in[0], groups);
  if (failed(group)) return failure();
  std::vector<int64_t> next(groups), count(groups);
  for (int64_t g : *group) ++count[g];
  for (int64_t i = 0; i < blocks * height; ++i) results[1].set(i, -1);
  for (int64_t i = 0; i < blocks; ++i) results[2].set(i, -1);
  for (int64_t g = 0, block = 0; g < groups; ++g) {
    next[g] = block * height;
    for (int64_t taken = (count[g] + height - 1) / height; taken > 0; --taken) results[2].set(block++, double(g));
  }
  for (int64_t i = 0; i < rows; ++i) {
    int64_t slot = next[(*group)[i]]++;
    results[0].set(i, double(slot));
    results[1].set(slot, double(i));
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

LogicalResult GroupedMatMulOp::verify() {
  if (failed(verifyRows(*this, getRow(), getGroupOf(), {getInput()}))) return failure();
  auto in = typeOf(getInput());
  if (getMatrices().empty()) return emitOpError() << "needs matrices";
  for (Value each : getMatrices()) {
    auto matrices = typeOf(each);
    if (matrices.getRank() != 3 || in.getElementType() != matrices.getElementType() ||
        matrices.getDimSize(getTranspose() ? 2 : 1) != in.getDimSize(1) ||
        typeOf(getResult()) != with(in, {in.getDimSize(0), matrices.getDimSize(getTranspose() ? 1 : 2)}) ||
        typeOf(getSlot()).getShape() != in.getShape().take_front())
      return emitOpError() << "of " << in << " and " << matrices << " does not give " << typeOf(getResult());
  }
  return success();
}

/// Calls `make` for each tensor of matrices, with the group of each block as that tensor numbers it and, where there are several, how many
/// groups all of them have. What it makes stands where that tensor does, which may be of an expert of its own.
static void forEachTensor(GroupedMatMulOp op, Build b,
                          llvm::function_ref<void(Build &b, Value matrices, Value groupOf, IntegerAttr allGroups)> make) {
  if (op.getMatrices().size() == 1) return make(b, op.getMatrices()[0], op.getGroupOf(), {});
  int64_t begin = 0, all = 0;
  for (Value matrices : op.getMatrices()) all += typeOf(matrices).getDimSize(0);
  for (Value matrices : op.getMatrices()) {
    int64_t count = typeOf(matrices).getDimSize(0);
    Build there{b.b, matrices.getLoc()};
    make(there, matrices, some(b, op.getGroupOf(), begin, count), b.b.getI64IntegerAttr(all));
    begin += count;
  }
}

Composed GroupedMatMulOp::decompose(Build &b) {
  Value blocks = inBlocks(b, getInput(), getRow(), getGroupOf()), product;
  int64_t columns = typeOf(getResult()).getDimSize(1), slots = typeOf(getRow()).getDimSize(0);
  auto type = withShape(blocks, {typeOf(blocks).getDimSize(0), typeOf(blocks).getDimSize(1), columns});
  forEachTensor(*this, b, [&](Build &there, Value matrices, Value groupOf, IntegerAttr allGroups) {
    product = b.b.create<BlockMatMulOp>(there.loc, type, blocks, matrices, groupOf, product, getTranspose(), allGroups);
  });
  return {b.b.create<GatherOp>(b.loc, getResult().getType(), b.reshape(product, {slots, columns}), getSlot())};
}

LogicalResult GroupedMatMulOp::differentiate(OpBuilder &builder, ValueRange d, Gradients &out) {
  Build b{builder, getLoc()};
  out[0] = builder.create<GroupedMatMulOp>(getLoc(), getInput().getType(), d[0], getMatrices(), getSlot(), getRow(), getGroupOf(),
                                           !getTranspose());
  Value lhs = getTranspose() ? d[0] : getInput(), rhs = getTranspose() ? getInput() : d[0];
  size_t next = 1;
  forEachTensor(*this, b, [&](Build &there, Value matrices, Value groupOf, IntegerAttr allGroups) {
    out[next++] = builder.create<GroupedMatMulGradOp>(there.loc, matrices.getType(), lhs, rhs, getRow(), groupOf, allGroups);
  });
  return success();
}

LogicalResult GroupedMatMulOp::evaluate(Operands in, Results results) {
  return withFloat(results[0].elementType(), [&](auto e) {
    using T = decltype(e);
    size_t tiles = getMatrices().size();
    const Tensor &slot = *in[tiles + 1], &groupOf = *in[tiles + 3];
    int64_t rows = in[0]->shape()[0], k = in[0]->shape()[1], n = results[0].shape()[1], height = in[tiles + 2]->size() / groupOf.size();
    for (int64_t i = 0; i < rows; ++i) {
      int64_t group = groupOf.integer(slot.integer(i) / height);
      size_t tile = 1;
      while (tile < tiles && group >= in[tile]->shape()[0]) group -= in[tile++]->shape()[0];
      const T *x = in[0]->data<T>().data() + i * k, *matrix = in[tile]->data<T>().data() + group * k * n;
      rowTimes(x, matrix, k, n, getTranspose(), results[0].data<T>().data() + i * n);
    }
    return success();
  });
}

LogicalResult GroupedMatMulGradOp::verify() {
  if (failed(verifyRows(*this, getRow(), getGroupOf(), {getLhs(), getRhs()}))) return failure();
  auto lhs = typeOf(getLhs()), rhs = typeOf(getRhs()), result = typeOf(getResult());
  if (lhs.getDimSize(0) != rhs.getDimSize(0) || lhs.getElementType() != rhs.getElementType() || result.getRank() != 3 ||
      result != with(lhs, {result.getDimSize(0), lhs.getDimSize(1), rhs.getDimSize(1)}))
    return emitOpError() << "of " << lhs << " and " << rhs << " does not give " << result;
  return success();
}

Composed GroupedMatMulGradOp::decompose(Build &b) {
  Value lhs = inBlocks(b, getLhs(), getRow(), getGroupOf()), rhs = inBlocks(b, getRhs(), getRow(), getGroupOf());
  return {b.b.create<BlockMatMulSumOp>(b.loc, getResult().getType(), lhs, rhs, getGroupOf(), getAllGroupsAttr())};
}

LogicalResult GroupedMatMulGradOp::evaluate(Operands in, Results results) {
  return withFloat(results[0].elementType(), [&](auto e) {
    using T = decltype(e);
    int64_t m = in[0]->shape()[1], n = in[1]->shape()[1], slots = in[2]->size(), height = slots / in[3]->size();
    std::vector<double> sums(size_t(results[0].size()));
    for (int64_t s = 0; s < slots; ++s) {
      int64_t row = in[2]->integer(s), group = in[3]->integer(s / height);
      if (row < 0 || group < 0) continue;
      addOuter(in[0]->data<T>().data() + row * m, in[1]->data<T>().data() + row * n, m, n, sums.data() + group * m * n);
    }
    llvm::transform(sums, results[0].data<T>().begin(), [](double sum) { return T(sum); });
    return success();
  });
}

} // namespace zero::nn
