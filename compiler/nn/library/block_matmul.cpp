//===- block_matmul.cpp - products of blocks of rows with the matrices of their groups ------------===//
#include "compiler/nn/eval/row_product.h"
#include "compiler/nn/implement.h"

using namespace mlir;

namespace zero::nn {
namespace {

/// The result's element type: that of the operands, or f32 where these are narrow.
bool isSumOf(Type result, Type operand) { return result == operand || (isNarrow(operand) && result.isF32()); }

} // namespace

LogicalResult BlockMatMulOp::verify() {
  auto l = typeOf(getLhs()), r = typeOf(getRhs()), result = typeOf(getResult()), groupOf = typeOf(getGroupOf());
  if (l.getRank() != 3 || r.getRank() != 3 || groupOf.getShape() != l.getShape().take_front() || l.getElementType() != r.getElementType() ||
      !isSumOf(result.getElementType(), l.getElementType()) || r.getDimSize(getTransposeRhs() ? 2 : 1) != l.getDimSize(2) ||
      result.getShape() != ArrayRef<int64_t>{l.getDimSize(0), l.getDimSize(1), r.getDimSize(getTransposeRhs() ? 1 : 2)})
    return emitOpError() << "of " << l << " and " << r << " by " << groupOf << " does not give " << result;
  if (getOnto() && getOnto().getType() != result) return emitOpError() << "of " << result << " is made onto " << getOnto().getType();
  return success();
}

LogicalResult BlockMatMulOp::evaluate(Operands in, Results results) {
  return withFloat(results[0].elementType(), [&](auto e) {
    using T = decltype(e);
    int64_t blocks = in[0]->shape()[0], height = in[0]->shape()[1], k = in[0]->shape()[2], n = results[0].shape()[2];
    for (int64_t row = 0; row < blocks * height; ++row) {
      int64_t group = in[2]->integer(row / height);
      if (group < 0) { // zeros, or what is there
        if (getOnto()) std::copy_n(in[3]->data<T>().data() + row * n, n, results[0].data<T>().data() + row * n);
        continue;
      }
      const T *x = in[0]->data<T>().data() + row * k, *matrix = in[1]->data<T>().data() + group * k * n;
      rowTimes(x, matrix, k, n, getTransposeRhs(), results[0].data<T>().data() + row * n);
    }
    return success();
  });
}

LogicalResult BlockMatMulSumOp::verify() {
  auto l = typeOf(getLhs()), r = typeOf(getRhs()), result = typeOf(getResult()), groupOf = typeOf(getGroupOf());
  if (l.getRank() != 3 || r.getRank() != 3 || result.getRank() != 3 || l.getShape().take_front(2) != r.getShape().take_front(2) ||
      groupOf.getShape() != l.getShape().take_front() || l.getElementType() != r.getElementType() ||
      !isSumOf(result.getElementType(), l.getElementType()) ||
      result.getShape().drop_front() != ArrayRef<int64_t>{l.getDimSize(2), r.getDimSize(2)})
    return emitOpError() << "of " << l << " and " << r << " by " << groupOf << " does not give " << result;
  return success();
}

LogicalResult BlockMatMulSumOp::evaluate(Operands in, Results results) {
  return withFloat(results[0].elementType(), [&](auto e) {
    using T = decltype(e);
    int64_t blocks = in[0]->shape()[0], height = in[0]->shape()[1], m = in[0]->shape()[2], n = in[1]->shape()[2];
    std::vector<double> sums(size_t(results[0].size()));
    for (int64_t row = 0; row < blocks * height; ++row) {
      int64_t group = in[2]->integer(row / height);
      if (group < 0) continue;
      addOuter(in[0]->data<T>().data() + row * m, in[1]->data<T>().data() + row * n, m, n, sums.data() + group * m * n);
    }
    llvm::transform(sums, results[0].data<T>().begin(), [](double sum) { return T(sum); });
    return success();
  });
}

} // namespace zero::nn
