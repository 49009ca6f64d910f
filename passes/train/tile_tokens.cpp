//===- tile_tokens.cpp - nn-tile-tokens ----------------------------------------------------------------===//
#include "compiler/nn/rows.h"
#include "mlir/Analysis/TopologicalSortUtils.h"
#include "passes/train/Passes.h"
#include "passes/train/row_regions.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace zero::train {
#define GEN_PASS_DEF_TILETOKENSPASS
#include "passes/train/Passes.h.inc"

namespace {

/// A function as steps and tensors, for one number of rows.
struct RowGraph {
  std::vector<Operation *> operations;
  std::vector<RowStep> steps;
  std::vector<RowTensor> tensors;
  DenseMap<Value, uint32_t> index;
  int64_t rows;

  RowGraph(Block &block, int64_t rows) : rows(rows) {
    for (BlockArgument argument : block.getArguments()) add(argument);
    for (Operation &op : block.without_terminator()) add(&op);
    for (Value v : block.getTerminator()->getOperands()) tensors[index[v]].returned = true;
  }

private:
  uint32_t add(Value v) {
    index[v] = uint32_t(tensors.size());
    tensors.push_back({uint64_t(nn::widthOf(nn::typeOf(v), rows))});
    return index[v];
  }

  void add(Operation *op) {
    RowStep step;
    llvm::SmallBitVector cut;
    step.splits = nn::readsRows(op, rows, cut);
    for (auto [i, v] : llvm::enumerate(op->getOperands())) (step.splits && !cut[i] ? step.wholes : step.rows).push_back(index[v]);
    for (OpResult v : op->getResults()) {
      step.makes.push_back(add(v));
      if (step.splits && nn::sumsRows(op, v.getResultNumber())) tensors.back().width = 0;
    }
    step.widens = isa<nn::MatMulOp>(op);
    operations.push_back(op);
    steps.push_back(std::move(step));
  }
};

/// One region, tile by tile.
class Tiler {
public:
  Tiler(ArrayRef<Operation *> region, int64_t rows, int64_t tokens)
      : region(region), rows(rows), tokens(tokens), builder(region.back()->getNextNode()) {
    inside.insert(region.begin(), region.end());
    for (Operation *op : region)
      for (OpResult result : op->getResults()) again |= leaves(result) && !nn::sumsRows(op, result.getResultNumber());
  }

  /// Backward meets tiles in the reverse of their order here, and sums gradients of weights from the first to the last: so the last
  /// stands first. Forward does not mind.
  void run() {
    int64_t tiles = llvm::divideCeil(rows, tokens);
    SmallVector<IRMapping> made(tiles);
    for (int64_t k = tiles - 1; k >= 0; --k) make({rows, k * tokens, std::min(tokens, rows - k * tokens)}, made[k]);
    for (Operation *op : region)
      for (OpResult result : op->getResults())
        if (leaves(result)) replace(result, made);
    for (Operation *op : llvm::reverse(region))
      if (op->use_empty()) op->erase(); // what is made of nothing that has rows may have other users
  }

private:
  bool leaves(Value v) const {
    return llvm::any_of(v.getUsers(), [&](Operation *user) { return !inside.contains(user); }) && !isFree(v.getDefiningOp());
  }
  bool isFree(Operation *op) const {
    llvm::SmallBitVector cut;
    nn::readsRows(op, rows, cut);
    return cut.none();
  }

  void make(const nn::Rows &tile, IRMapping &made) {
    for (Operation *op : region) {
      nn::Build b{builder, op->getLoc()};
      llvm::SmallBitVector cut;
      nn::readsRows(op, rows, cut);
      SmallVector<Value> operands(op->getOperands());
      for (unsigned i : cut.set_bits()) operands[i] = part(b, operands[i], tile, made);
      Operation *copy = nn::makeRows(b, op, tile, operands);
      if (auto product = dyn_cast<nn::MatMulOp>(copy); product && again && !leaves(op->getResult(0))) product.setRecompute(true);
      made.map(op->getResults(), copy->getResults());
    }
  }

  /// The rows of a tensor: those that the tile has made, or those of one that comes from outside.
  Value part(nn::Build &b, Value v, const nn::Rows &tile, IRMapping &made) {
    if (Value known = made.lookupOrNull(v)) return known;
    auto type = nn::typeOfRows(nn::typeOf(v), tile);
    SmallVector<int64_t> shape{rows};
    llvm::append_range(shape, type.getShape().drop_front());
    Value &flat = flattened[v];
    if (!flat) flat = b.reshape(v, shape);
    Value rowsOf = b.b.create<nn::RowsOp>(b.loc, type, flat, b.b.getI64IntegerAttr(tile.begin));
    made.map(v, rowsOf);
    return rowsOf;
  }

  void replace(OpResult result, ArrayRef<IRMapping> made) {
    nn::Build b{builder, result.getLoc()};
    SmallVector<Value> parts;
    for (const IRMapping &tile : made) parts.push_back(tile.lookup(result));
    Value whole = parts[0];
    if (nn::sumsRows(result.getOwner(), result.getResultNumber()))
      for (Value part : ArrayRef(parts).drop_front()) whole = b.add(whole, part);
    else
      whole = b.reshape(builder.create<nn::JoinRowsOp>(b.loc, parts), nn::typeOf(result).getShape());
    result.replaceAllUsesWith(whole);
  }

  ArrayRef<Operation *> region;
  int64_t rows, tokens;
  OpBuilder builder;
  bool again = false; // in backward; nn-sink-losses has both at once where nothing but sums leave
  DenseSet<Operation *> inside;
  DenseMap<Value, Value> flattened;
};

struct TileTokens : impl::TileTokensPassBase<TileTokens> {
  using TileTokensPassBase::TileTokensPassBase;

  void runOnOperation() override {
    if (tokens < 0) {
      getOperation().emitError() << "a tile has one token or more, or 0 for all of them, not " << int64_t(tokens);
      return signalPassFailure();
    }
    if (tokens == 0) return;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal()) {
        int64_t cut = 0, made = 0;
        run(function.getBody().front(), cut, made);
        regions += cut, tiles += made;
        if (function.getName() == "train") getOperation()->setAttr(kTokenTiles, Builder(&getContext()).getI64ArrayAttr({cut, made}));
      }
  }

  void run(Block &block, int64_t &cut, int64_t &made) {
    llvm::SetVector<int64_t> numbers; // of rows: encoders have others than decoders
    for (auto product : block.getOps<nn::MatMulOp>())
      if (nn::typeOf(product.getResult()).getRank() == 2) numbers.insert(nn::typeOf(product.getResult()).getDimSize(0));
    for (int64_t rows : numbers) {
      if (rows <= tokens) continue;
      RowGraph graph(block, rows);
      std::vector<RowRegion> found = findRowRegions(graph.steps, graph.tensors);
      for (const RowRegion &region : found) {
        SmallVector<Operation *> operations;
        for (uint32_t s : region) operations.push_back(graph.operations[s]);
        Tiler(operations, rows, tokens).run();
        ++cut;
        made += int64_t(llvm::divideCeil(rows, int64_t(tokens)));
      }
    }
    if (cut) sortTopologically(&block); // where something reads a result before the last of its region
  }
};

} // namespace

int64_t tokensOf(ModuleOp module) {
  int64_t most = 0;
  module.walk([&](nn::MatMulOp product) {
    if (auto type = nn::typeOf(product.getResult()); type.getRank() == 2) most = std::max(most, type.getDimSize(0));
  });
  return most;
}

} // namespace zero::train
