//===- tied_tables.h - tables whose looked-up rows are updated apart from the rest -------------------------===//
// The gradient of a table that the output projection shares is begun where backward begins, with the logits, and ended where it ends, with
// the lookup; but that adds to few of its rows. So all others are updated early, while a disk has nothing to do, and these rows are set
// apart before and updated at the end. Private to zero-insert-movement.
#pragma once
#include "passes/shard/program_uses.h"

namespace zero::shard {

/// A tile of a table, or all of it: the only parameter of its bucket.
struct TableTile {
  state::BucketOp bucket;
  int64_t begin = 0, elements = 0; // of the table, that lie in it
  mlir::Value rest;                // its gradient but for what lookups add
  nn::LaunchOp addsRows;           // what adds that
};

struct TiedTable {
  llvm::SmallVector<TableTile> tiles; // in the order of the table
  mlir::Value indices, updates;       // what the lookup adds to it
  int64_t columns = 0, tableRows = 0; // of the whole table
  mlir::Value room;                   // of zero.room_for_rows
  mlir::Operation *update = nullptr;  // zero.update_rows, once it is there

  int64_t rows() const { return llvm::cast<mlir::ShapedType>(indices.getType()).getNumElements(); }
};

class TiedTables {
public:
  /// Finds the tables of a program and makes room for their rows. There are none where updates wait for the norm, where gradients are
  /// summed over ranks or micro-steps, or where everything rests on the device: then nothing is gained.
  TiedTables(ProgramUses &uses, StateKernels &kernels);

  /// The tile that a bucket is of such a table; null if it is none.
  const TableTile *tileIn(state::BucketOp bucket) const { return find(bucket).second; }
  /// Lets an update of such a tile set its rows apart.
  void setApart(state::UpdateOp update, state::BucketOp bucket) const;
  /// After all tiles have been updated: the rows that were set apart, and their parameters. Yields the squared gradients of each.
  llvm::SmallVector<mlir::Value> finish();
  /// What the optimizer keeps of them, which nobody waits for in the next step's forward.
  void writeMoments(mlir::OpBuilder &b);

private:
  std::pair<const TiedTable *, const TableTile *> find(state::BucketOp bucket) const;
  void add(state::BucketOp bucket, llvm::MapVector<mlir::StringAttr, TiedTable> &found);
  bool isWorthIt(const TiedTable &table) const;
  /// The gradient of its rows, once lookups have added to it: [n, columns].
  mlir::Value gradientOf(const TiedTable &table, mlir::OpBuilder &b);
  mlir::Value update(TiedTable &table);
  /// The rows of all tiles go where these tensors rest.
  void write(mlir::OpBuilder &b, const TiedTable &table, bool parameters);

  ProgramUses &uses;
  StateKernels &kernels;
  mlir::SymbolTable symbols;
  llvm::SmallVector<TiedTable> tables;
};

} // namespace zero::shard
