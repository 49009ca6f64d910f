//===- tiles.h - matrices that the threads of a block hold together ----------------------------------------===//
// What kernels made of products of tiles are written with. A tile lies in shared memory; of a result each warp has strips of 16 rows in its
// threads' registers, as mma.sync.m16n8 leaves them (PTX ISA, "Matrix Fragments for mma.m16n8k16"): so what is done to a result, row by row
// or element by element, is the same however products are made, of bf16 by the matrix units or of f32 by fused multiply-adds. A right
// operand that a warp has read from shared memory serves all of its strips.
#pragma once
#include "compiler/codegen/ptx/attention_tiles.h"
#include "compiler/codegen/ptx/gpu_emitter.h"
#include <array>

namespace zero::codegen {

/// Words of two elements: a left operand 16 x 16; or of a right operand 16 x 8 the first two, and of the next one the others.
using Words = std::array<mlir::Value, 4>;

/// In shared memory, row by row: bf16 where products are the matrix units', else f32. Of a tile that warpgroups multiply, 64 columns are a
/// panel, whose rows of 128 bytes follow each other, and panels do, too. In a row the vectors of 16 bytes change places: number v of row r
/// lies where v XOR r mod 8 would, so that eight rows' same vectors lie in all banks (PTX ISA, "128-byte swizzling").
struct Tile {
  mlir::Value memory;
  int64_t rows, columns, stride;    // elements
  mlir::Value first{};              // element of the memory that it begins with; null: 0
  llvm::SmallVector<Words> words{}; // of the warp's rows as a left operand, if its threads keep them
};

/// A warp's strips, one after another, of a multiple of 8 columns, in its threads: of each block of 8 columns thread t has columns 2 (t mod
/// 4) and the next of the strip's row t / 4, and then of row t / 4 + 8.
using Fragment = llvm::SmallVector<mlir::Value>;

/// One number for each row of which a thread has elements: two of each strip.
using PerRow = llvm::SmallVector<mlir::Value, 4>;

/// Which element of a fragment: of which of the thread's rows, and of the column what does not depend on the thread.
struct Entry {
  unsigned row;
  int64_t column;
};

class TileEmitter : public GpuEmitter {
protected:
  /// `bf16`: what tiles hold.
  TileEmitter(const Program &p, mlir::OpBuilder &b, mlir::Location loc, const Division &division, bool bf16, const AttentionTiles &tiles)
      : GpuEmitter(p, b, loc, division), bf16(bf16), warpgroup(tiles.warpgroup), strips(tiles.strips) {}

  mlir::Value inWarp, warp; // number of the thread in its warp, of the warp in the block
  mlir::Type f32;

  /// The function, and what its threads know of themselves. A block owns `own` rows of results, made of products with `other` rows.
  void begin(int64_t own, int64_t other);

  //--- tiles ---------------------------------------------------------------------------------------------------------
  Tile tile(int64_t rows, int64_t columns);
  /// Several tiles in the memory of one, and one of them.
  Tile tiles(int64_t count, int64_t rows, int64_t columns) { return several(tile(count * rows, columns), rows); }
  /// Several rows of f32, each a tile of its own.
  Tile rowsOfNumbers(int64_t count, int64_t columns);
  Tile at(const Tile &tiles, mlir::Value number);
  /// Rows of `tile.columns` elements of `type` in memory, each `between` elements after the one before, from element `first` on; zeros
  /// after the first `count` of them. All threads take part, and nobody may read before a barrier.
  void load(const Tile &tile, mlir::Value memory, Scalar type, mlir::Value first, int64_t between, mlir::Value count);
  /// The same of single numbers.
  void loadNumbers(const Tile &row, mlir::Value memory, mlir::Value first, int64_t between, mlir::Value count);
  /// The same, without waiting: it has come after `waitForLoads` of all threads, and a barrier. Memory holds what the tile holds, and zeros
  /// follow the first `count`, which is null where all are there.
  void beginLoad(const Tile &tile, mlir::Value memory, mlir::Value first, int64_t between, mlir::Value count);
  void beginLoadOfNumbers(const Tile &row, mlir::Value memory, mlir::Value first, int64_t between, mlir::Value count);
  void waitForLoads();

  //--- fragments: the rows of each warp, those that a tile of as many rows as the block's warps have together has at their place -------
  unsigned rows() const { return 2 * strips; } // of which a thread has elements
  PerRow perRow(mlir::Value v) const { return PerRow(rows(), v); }
  /// Number of a row of the thread's in the block's tile, and of the column of an entry.
  mlir::Value row(unsigned which);
  mlir::Value column(const Entry &entry);
  Fragment zeros(int64_t columns);
  using Change = llvm::function_ref<mlir::Value(mlir::Value, const Entry &)>;
  Fragment map(const Fragment &f, Change change);
  Fragment map(const Fragment &f, const Fragment &g, llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> change);
  /// `map` where the condition holds.
  Fragment changedIf(mlir::Value condition, const Fragment &f, Change change);
  Fragment changedIf(mlir::Value condition, const Fragment &f, const Fragment &g,
                     llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> change);
  /// Every row times its number.
  Fragment scaled(const Fragment &f, const PerRow &factors);
  /// Numbers that lie in a tile of one row, one for each column: the same in all rows.
  Fragment perColumn(const Tile &row);

  /// The tile, whose rows each warp reads from shared memory now, and not in each product of which they are the left operand.
  Tile kept(Tile a);
  /// a · bᵀ of the warp's rows of `a`.
  Fragment timesTransposed(const Tile &a, const Tile &b);
  /// sum + f · b.
  Fragment plusTimes(const Fragment &sum, const Fragment &f, const Tile &b);

  /// Of each row what this thread has of it; `acrossRow` makes it the row's.
  PerRow along(Fn fn, const Fragment &f);
  PerRow acrossRow(Fn fn, PerRow parts);

  /// To rows in memory that begin `between` elements after each other from element `first` on, the first `count` of the block's.
  void store(const Fragment &f, mlir::Value memory, Scalar type, mlir::Value first, int64_t between, mlir::Value count);

  //--- numbers -------------------------------------------------------------------------------------------------------
  /// e^(factor x - shift), where x or shift may be infinite; the factor is 1 but for tiles of bf16 to whose scores nothing was added.
  mlir::Value exponential(mlir::Value x, mlir::Value shift, double factor = 1);
  mlir::Value smaller(mlir::Value x, mlir::Value y); // of two indices that may be negative
  mlir::Value larger(mlir::Value x, mlir::Value y);

private:
  bool bf16, warpgroup;
  unsigned strips;
  mlir::Value pair; // of each block of 8 columns the thread's first
  Tile left;        // f32: where a fragment lies that is a left operand; a warp's rows are touched by that warp alone

  Entry entryOf(const Fragment &f, size_t i) const;
  /// Elements of a strip: of `columns` columns.
  static size_t stripSize(int64_t columns) { return size_t(columns / 2); }
  /// The first of a row's elements in a strip's block of columns.
  size_t placeOf(unsigned row, int64_t column, int64_t columns) const {
    return row / 2 * stripSize(columns) + size_t(column / 2 + row % 2 * 2);
  }
  static Tile several(Tile tile, int64_t rows) { return tile.rows = rows, tile; }
  /// What `change` makes where the condition holds, and the fragment elsewhere.
  Fragment oneOf(mlir::Value condition, const Fragment &f, llvm::function_ref<Fragment()> change);
  mlir::Value inTile(const Tile &tile, mlir::Value row, mlir::Value column);
  int64_t betweenRows(const Tile &tile) const { return warpgroup ? kPanelColumns : tile.stride; }
  /// Of a tile; of what lies in memory.
  mlir::Value sharedAddress(mlir::Value memory, mlir::Value element, unsigned bytes);
  mlir::Value globalAddress(mlir::Value memory, mlir::Value element, unsigned bytes);
  mlir::Value further(mlir::Value address, int64_t bytes); // a constant, which an instruction adds by itself
  void beginCopy(unsigned bytes, mlir::Value to, mlir::Value from, mlir::Value counts);
  mlir::VectorType vectorOfFloats(int64_t n) { return mlir::VectorType::get({n}, f32); }
  mlir::Value floatsAt(const Tile &tile, mlir::Value row, mlir::Value column, int64_t n);
  mlir::Value element(mlir::Value vector, int64_t i);
  mlir::Value fma(mlir::Value x, mlir::Value y, mlir::Value z);
  mlir::Value joined(mlir::Value first, mlir::Value second); // as a vector

  //--- products (products.cpp) ---------------------------------------------------------------------------------------
  Fragment timesTransposedByFma(const Tile &a, const Tile &b);
  Fragment plusTimesByFma(const Fragment &sum, const Fragment &f, const Tile &b);
  Fragment timesTransposedByUnits(const Tile &a, const Tile &b);
  Fragment plusTimesByUnits(const Fragment &sum, const Fragment &f, const Tile &b);
  /// 16 x 16 elements of the tile as four matrices of 8 x 8 in the order in which threads name their rows (ldmatrix): the thread's is at
  /// `place`, and of the elements from another row and column on so much further.
  Words matrices(const Tile &tile, mlir::Value place, int64_t row, int64_t column, bool transposed);
  mlir::Value placeIn(const Tile &tile, mlir::Value row, mlir::Value column);
  /// What `matrices` wants of a left operand.
  mlir::Value leftPlace(const Tile &a);
  llvm::SmallVector<Words> leftWords(const Tile &a, mlir::Value place, int64_t column);
  /// sum += left · right, of 8 columns.
  void multiply(llvm::MutableArrayRef<mlir::Value> sum, const Words &left, mlir::Value upper, mlir::Value lower);

  //--- products of warpgroups (warpgroup_products.cpp) -----------------------------------------------------------------
  Fragment timesTransposedByWarpgroup(const Tile &a, const Tile &b);
  Fragment plusTimesByWarpgroup(const Fragment &sum, const Fragment &f, const Tile &b);
  mlir::Value panel(const Tile &tile, int64_t number);
  /// A call of what warpgroup.h names; its results, of f32.
  Fragment together(llvm::StringRef what, mlir::ValueRange operands, size_t results);
};

} // namespace zero::codegen
