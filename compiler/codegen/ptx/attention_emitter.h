//===- attention_emitter.h - what kernels of attention and of its gradient share --------------------------===//
// Where rows of all heads lie, how tiles of them come into shared memory while others are worked on, and scores.
#pragma once
#include "compiler/codegen/ptx/attention_tiles.h"
#include "compiler/codegen/ptx/tiles.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "runtime/plan/hidden.h"
#include <cmath>

namespace zero::codegen {

class AttentionEmitter : public TileEmitter {
public:
  AttentionEmitter(const Program &p, mlir::OpBuilder &b, mlir::Location loc, const Division &division)
      : TileEmitter(p, b, loc, division, p.attention.bf16, attentionTiles(p.attention)), a(p.attention), tiles(attentionTiles(a)),
        type(p.outputs[0].type), factor(a.bf16 && !a.mask && a.scale > 0 ? a.scale : 1) {}

protected:
  /// Of all heads.
  struct Tensor {
    mlir::Value memory;
    Attention::Rows rows;
  };

  const Attention &a;
  AttentionTiles tiles;
  Scalar type;                       // of q, k, v and their like in memory
  double factor;                     // of scores: the exponential multiplies by it where nothing is added to them in between
  Tile owned[2], passed[2];          // of rows that the block owns, and buffers for those that it goes over
  mlir::Value ownHead, first, count; // of the block's tile: whose it is, its first row there, and how many rows are left from there on

  /// The block owns a tile of one of all heads.
  void owns(const Attention::Rows &rows, mlir::Value tile, bool heaviestLast);

  enum Operand { Q, K, V, Mask, Lse, Delta, DOut };
  mlir::Value operand(Operand which) const { return inputs[a.operands[which > Mask && !a.mask ? which - 1 : which]]; }
  Tensor q() const { return {operand(Q), a.queryRows()}; }
  Tensor k() const { return {operand(K), a.keyRows()}; }
  Tensor v() const { return {operand(V), a.valueRows()}; }
  Tensor dout() const { return {operand(DOut), a.resultRows()}; }
  /// Of q, k or v; one where these are one tensor.
  mlir::Value gradient(Operand of) const { return outputs[a.packed ? 0 : of]; }
  /// One number of each row of the queries.
  Tensor sums(mlir::Value memory) const { return {memory, a.sumRows()}; }

  /// The first element of a row.
  mlir::Value start(const Attention::Rows &rows, mlir::Value head, mlir::Value row);
  mlir::Value ownStart(const Attention::Rows &rows) { return start(rows, ownHead, first); }
  /// Rows from `row` on; a tile may have more.
  mlir::Value leftOf(mlir::Value row, int64_t length) { return minus(number(length), row); }
  /// The same of a tile that is passed; null where every tile is full.
  mlir::Value passedLeftOf(mlir::Value row, int64_t length) { return length % tiles.other ? leftOf(row, length) : mlir::Value(); }
  /// The heads of a sample are numbered one after another, and so are its key heads.
  mlir::Value keyHead(mlir::Value head) { return quotient(head, a.group()); }

  /// It comes together with the first rows that are passed, where there is a second buffer for these.
  void bringOwned(int i, const Tensor &t);
  void storeOwned(const Fragment &f, const Tensor &t) { store(f, t.memory, type, ownStart(t.rows), t.rows.row, count); }
  /// Rows that are passed have come then, or have begun to come where there is a second buffer for them.
  void bring(const Tile &to, const Tensor &t, mlir::Value head, mlir::Value row);
  void bringNumbers(const Tile &to, const Tensor &t, mlir::Value head, mlir::Value row);

  //--- scores ----------------------------------------------------------------------------------------------------------

  /// (scale q·kᵀ + mask) / factor of a fragment whose columns are keys, or queries where `transposed`; from `query` and `key` on.
  Fragment scores(const Fragment &products, mlir::Value head, mlir::Value query, mlir::Value key, bool transposed);
  std::pair<mlir::Value, mlir::Value> positions(const Entry &entry, mlir::Value query, mlir::Value key, bool transposed);
  mlir::Value maskAt(mlir::Value head, mlir::Value query, mlir::Value key);

  /// The fragment with `nothing` where a query does not see a key, or where there is no such key. Most tiles are seen whole, and skip it.
  Fragment seen(const Fragment &f, mlir::Value query, mlir::Value key, bool transposed, mlir::Value nothing);
  using TileEmitter::scaled;
  mlir::Value scaled(mlir::Value score) { return factor == 1 ? score : mul(score, real(factor)); }
  mlir::Value minus(mlir::Value x, mlir::Value y) { return b.create<mlir::arith::SubIOp>(loc, x, y); }
  mlir::Value negative(mlir::Value x) { return b.create<mlir::arith::CmpIOp>(loc, mlir::arith::CmpIPredicate::slt, x, number(0)); }

  /// The fragment with `nothing` where a column is not on this side of its row's bound; `some`: there may be such a column.
  Fragment within(const Fragment &f, PerRow bound, mlir::Value some, mlir::arith::CmpIPredicate predicate, mlir::Value nothing);

  /// Where the tile of the other side begins that has this position.
  mlir::Value wholeTiles(mlir::Value position);
  /// Keys that some query of the block's tile sees: from the first, at the beginning of a tile, and up to before the second.
  mlir::Value firstKey();
  mlir::Value keysSeen();
  /// Queries that see a key of the block's tile, likewise.
  mlir::Value firstQuery();
  mlir::Value queriesSeeing();

  /// e^(score - lse). A row that sees nothing weighs nothing, and one that sees nothing but what the mask hides by finite numbers weighs it
  /// alike (runtime/plan/hidden.h): few tiles have such rows, and `someHidden` says of a warp's whether they do, or is null where there is
  /// no mask. What such a row does not see it does not weigh, whatever the attention says of keys beyond its bounds.
  Fragment weights(const Fragment &scores, const Fragment &lses, mlir::Value someHidden);
  mlir::Value someHidden(llvm::ArrayRef<mlir::Value> lses);
  mlir::Value isHidden(mlir::Value x) { return is(mlir::arith::CmpFPredicate::OLT, x, real(plan::kHidden)); }
  /// Of the thread's rows of the block's tile; `otherwise` where there is none.
  PerRow numbersOf(const Tensor &t, double otherwise);

  /// `body` for each tile of the other side in [from, to), which `bring` brings into the buffer of this number. Of two buffers one is
  /// filled while the other is read. `begin`, if there is one, comes before them, when owned tiles have come.
  Values overTiles(mlir::Value from, mlir::Value to, Values carried,
                   const std::function<void(mlir::Value position, mlir::Value buffer)> &bring,
                   const std::function<Values(mlir::Value position, mlir::Value buffer, Values)> &body,
                   const std::function<void()> &begin = {});

  /// `body` for each tile of the keys that the block's queries see, by its first key.
  Values overKeys(Values carried, const std::function<Values(mlir::Value key, const Tile &k, const Tile &v, Values)> &body);
};

} // namespace zero::codegen
