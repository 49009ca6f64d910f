//===- forward.h - the forward pass of a training step, as a chain of tensors that are made ----------------===//
#pragma once
#include "passes/fuse/access.h"
#include "passes/fuse/keep.h"
#include "passes/fuse/kernel_table.h"
#include <map>
#include <optional>

namespace zero::fuse {

/// The operations of `@train` from its beginning to where backward begins, and the tensors that each of them makes: to the one that makes
/// the loss, or where that is a sum of terms whose backward comes right after each (nn-sink-losses), to the first product that the loss
/// does not depend on.
///
/// Each result of a kernel is a tensor of its own: it needs what the kernel reads to make it, or other results where these are all that
/// leads there. A result that is rounded when it is stored leads nowhere, for the kernel itself goes on with what it was before. Where a
/// result by itself would be made over other dimensions, with the rows' sums in another order, all results of the kernel are one: what is
/// made again has the same bits.
class Forward {
public:
  /// `train` is as nn-fuse or nn-mixed-precision leave it, and has a backward. Kernels for results by themselves are added to the module.
  Forward(mlir::func::FuncOp train, KernelTable &kernels);

  std::vector<Made> made;
  mlir::Operation *backward = nullptr; // the first operation of backward

  /// The operation that makes the loss; null if there is no backward.
  static mlir::Operation *lossOf(mlir::func::FuncOp train);
  /// Which of `made` a value is, or is a view of; none for parameters, inputs, constants and what backward makes.
  std::optional<uint32_t> indexOf(mlir::Value v) const;
  /// Make those with `again` once more where `b` stands, in the order of forward, and note them in `copies`.
  void makeAgain(const std::vector<bool> &again, uint32_t begin, uint32_t end, mlir::OpBuilder &b, mlir::IRMapping &copies);
  /// Where a value lies after `copies`: views are made again where what they show was.
  static mlir::Value latest(mlir::Value v, mlir::OpBuilder &b, mlir::IRMapping &copies);

private:
  /// How results of a kernel are made by themselves.
  struct Part {
    llvm::SmallVector<mlir::Value> operands; // in the kernel: its arguments, or what it returns
    mlir::func::FuncOp kernel;               // null if the kernel compiler takes it as a whole only, or sums rows in another order then
  };
  /// Results of an operation, and which of them are the same.
  struct Source {
    mlir::Operation *op;
    llvm::SmallVector<unsigned> results;
  };

  void addLaunch(nn::LaunchOp launch);
  void add(mlir::Operation *op, llvm::ArrayRef<unsigned> results, uint64_t bytes, mlir::ValueRange reads, uint64_t kind);
  Part partOf(mlir::func::FuncOp kernel, llvm::ArrayRef<unsigned> results);
  /// Over which dimensions a kernel of forward sums rows, in order.
  const std::vector<int64_t> &summedBy(mlir::func::FuncOp kernel);
  static mlir::Value outside(nn::LaunchOp launch, mlir::func::FuncOp kernel, mlir::Value inside);
  void launchAgain(nn::LaunchOp launch, llvm::ArrayRef<unsigned> results, mlir::OpBuilder &b, mlir::IRMapping &copies);

  mlir::func::FuncOp train;
  KernelTable &kernels;
  llvm::StringMap<mlir::func::FuncOp> launched; // kernels by name
  std::vector<Source> sources;                  // of `made`
  llvm::DenseMap<mlir::Value, uint32_t> index;
  std::map<std::pair<mlir::Operation *, llvm::SmallVector<unsigned>>, Part> parts;
  std::map<mlir::Operation *, std::vector<int64_t>> summed; // by kernel
};

} // namespace zero::fuse
