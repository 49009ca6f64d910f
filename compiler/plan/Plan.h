//===- Plan.h - the plan dialect ---------------------------------------------------------------===//
// What runs when and on which bytes; see PlanOps.td.
#pragma once
#include "compiler/zero/Zero.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include <string>

#include "compiler/plan/PlanDialect.h.inc"
#include "compiler/plan/PlanEnums.h.inc"
#include "compiler/plan/PlanInterfaces.h.inc"
#define GET_ATTRDEF_CLASSES
#include "compiler/plan/PlanAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "compiler/plan/PlanTypes.h.inc"
#define GET_OP_CLASSES
#include "compiler/plan/PlanOps.h.inc"

namespace zero::planir {

/// Bytes [offset + rank * stride, … + bytes) of a buffer.
struct Ref {
  mlir::Value buffer;
  int64_t offset = 0, stride = 0, bytes = 0;

  bool operator==(const Ref &) const = default;
  /// One past the last byte that any of `world` ranks touches.
  int64_t end(int64_t world) const { return offset + (world - 1) * stride + bytes; }
};

/// What a step touches, in the order of its references.
struct Access {
  Ref ref;
  bool writes;
};
llvm::SmallVector<Access, 6> accessesOf(StepOp step);

/// The operands that make up the references of a step, for builders.
struct Refs {
  llvm::SmallVector<mlir::Value, 6> buffers;
  llvm::SmallVector<int64_t, 6> offsets, strides, bytes;
  int64_t inputs = 0;

  Refs(llvm::ArrayRef<Ref> read, llvm::ArrayRef<Ref> written);
};

/// Where a persistent buffer lives: what is no tensor of a bucket, on the device.
state::Tier tierOf(StateOp state);
/// Buffers of an arena of this tier start at multiples of so many bytes: lines of memory, and what a disk reads and writes directly.
inline int64_t alignmentOf(state::Tier tier) { return tier == state::Tier::disk ? 4096 : 64; }
/// The same for the transient arena of the module's programs: what a disk reads into it and writes from it directly lies as on the disk.
int64_t workAlignmentOf(mlir::ModuleOp module);
/// Bytes of a buffer that holds a tensor of a bucket, which a disk reads and writes in whole blocks.
int64_t roomOf(state::BucketOp bucket, state::TensorAttr tensor);
/// Whether it is one of those on which updates run on beside the next step's forward.
inline bool isOfUpdates(Lane lane) { return lane == Lane::update || lane == Lane::update_read || lane == Lane::update_write; }
/// The bucket of which something lies in the buffer of a program; empty if none is known.
llvm::StringRef bucketIn(mlir::Value buffer, const mlir::SymbolTable &symbols);
inline int64_t multiplyAddsOf(MatMulStep product) { return product.getBatch() * product.getM() * product.getN() * product.getK(); }
/// Steps of a program in their order.
llvm::SmallVector<StepOp> stepsOf(ProgramOp program);
/// Whether its updates wait for the norm of all gradients: those of runs that clip, and all where the loss is scaled.
bool waitsForNorm(ProgramOp program);
/// First name in a location (an ONNX node, or what the compiler called it); empty if there is none.
std::string nameOf(mlir::Location location);

} // namespace zero::planir
