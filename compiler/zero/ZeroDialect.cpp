//===- ZeroDialect.cpp - registration and verifiers of the zero dialect --------------------------===//
#include "compiler/zero/Zero.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

#include "compiler/zero/ZeroDialect.cpp.inc"
#define GET_OP_CLASSES
#include "compiler/zero/ZeroOps.cpp.inc"

using namespace mlir;

namespace zero::state {

void ZeroDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "compiler/zero/ZeroOps.cpp.inc"
      >();
}

LogicalResult BucketOp::verify() {
  if (getParameters().size() != getOffsets().size())
    return emitOpError() << getParameters().size() << " parameters but " << getOffsets().size() << " offsets";
  if (getShard() == 0 || getElements() % getShard())
    return emitOpError() << getElements() << " elements do not split into shards of " << getShard();
  return success();
}

LogicalResult ViewOp::verify() {
  int64_t whole = getWhole().getType().getNumElements(), size = cast<ShapedType>(getResult().getType()).getNumElements();
  if (int64_t(getOffset()) + size > whole)
    return emitOpError() << "elements " << getOffset() << " to " << getOffset() + size << " of a buffer of " << whole;
  return success();
}

LogicalResult PackOp::verify() {
  if (getInputs().size() != getOffsets().size())
    return emitOpError() << getInputs().size() << " inputs but " << getOffsets().size() << " offsets";
  int64_t end = 0;
  for (auto [input, offset] : llvm::zip(getInputs(), getOffsets())) {
    if (offset < end) return emitOpError() << "the input at " << offset << " lies inside the one before, which ends at " << end;
    end = offset + cast<ShapedType>(input.getType()).getNumElements();
  }
  if (end > getResult().getType().getNumElements())
    return emitOpError() << "inputs end at " << end << ", behind the buffer's " << getResult().getType().getNumElements() << " elements";
  return success();
}

} // namespace zero::state
