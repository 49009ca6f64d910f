//===- PlanSyntax.h - parsers and printers that the assembly formats of PlanOps.td name ----------===//
#pragma once
#include "compiler/plan/Plan.h"

namespace zero::planir {

/// Inputs, then `->` and what is written: "%a[0, 64], %b[0 + rank * 32, 32] -> %c[0, 64]".
mlir::ParseResult parseRefs(mlir::OpAsmParser &parser, llvm::SmallVectorImpl<mlir::OpAsmParser::UnresolvedOperand> &buffers,
                            mlir::DenseI64ArrayAttr &offsets, mlir::DenseI64ArrayAttr &strides, mlir::DenseI64ArrayAttr &bytes,
                            mlir::IntegerAttr &inputs);
void printRefs(mlir::OpAsmPrinter &printer, mlir::Operation *op, mlir::OperandRange buffers, mlir::DenseI64ArrayAttr offsets,
               mlir::DenseI64ArrayAttr strides, mlir::DenseI64ArrayAttr bytes, mlir::IntegerAttr inputs);

/// "compute" or "compute waits(gather 2, reduce 1)".
mlir::ParseResult parseLane(mlir::OpAsmParser &parser, LaneAttr &lane, mlir::DenseI64ArrayAttr &waits);
void printLane(mlir::OpAsmPrinter &printer, mlir::Operation *op, LaneAttr lane, mlir::DenseI64ArrayAttr waits);

/// Nothing or "waits(gather 2, reduce 1)".
mlir::ParseResult parseWaits(mlir::OpAsmParser &parser, mlir::DenseI64ArrayAttr &waits);
void printWaits(mlir::OpAsmPrinter &printer, mlir::Operation *op, mlir::DenseI64ArrayAttr waits);

/// "(3: compute 5, 7: disk_write 2)": triples of step, lane and tick.
mlir::ParseResult parseEntryWaits(mlir::OpAsmParser &parser, mlir::DenseI64ArrayAttr &waits);
void printEntryWaits(mlir::OpAsmPrinter &printer, mlir::Operation *op, mlir::DenseI64ArrayAttr waits);

/// "[1, 2, 3]"
mlir::ParseResult parseList(mlir::OpAsmParser &parser, mlir::DenseI64ArrayAttr &list);
void printList(mlir::OpAsmPrinter &printer, mlir::Operation *op, mlir::DenseI64ArrayAttr list);

} // namespace zero::planir
