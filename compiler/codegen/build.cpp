//===- build.cpp - dimensions and results of a kernel's program ---------------------------------------===//
#include "compiler/codegen/builder.h"
#include "compiler/codegen/primitives.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::codegen {

/// Numbers that tell the dimensions of a kernel's outer, inner and (of a scatter) output shape apart, whatever their ranks.
static constexpr int64_t kOuterDims = 0, kInnerDims = 100, kOutputDims = 200;

/// Every round splits one dimension more finely; the bound only guards against a mistake here.
static constexpr int kMostRounds = 64;

FailureOr<Program> ProgramBuilder::run() {
  auto found = classify(kernel);
  if (failed(found)) return failure();
  form = std::move(*found);
  for (int round = 0; round < kMostRounds; ++round) {
    p = Program();
    p.name = kernel.getSymName().str();
    memo.clear(), interned.clear(), guards.clear();
    if (failed(assemble())) return failure();
    if (!p.space.wanted) break;
    auto &parts = factors[p.space.wanted->key];
    int64_t &n = parts[p.space.wanted->factor];
    n /= p.space.wanted->inner;
    parts.insert(parts.begin() + p.space.wanted->factor + 1, p.space.wanted->inner);
  }
  return std::move(p);
}

//===----------------------------------------------------------------------===//
// Dimensions
//===----------------------------------------------------------------------===//

Index ProgramBuilder::loop(Operation *op, int64_t number, int64_t size, std::vector<unsigned> &dims) {
  int key = keys.try_emplace({op, number}, int(keys.size())).first->second;
  auto &parts = factors[key];
  if (parts.empty()) parts.push_back(size);
  Index index;
  int64_t inner = size;
  for (auto [i, n] : llvm::enumerate(parts)) {
    inner /= n;
    if (n == 1) continue;
    dims.push_back(p.space.dim(n, key, i));
    index = index + Index::atom(dims.back(), inner);
  }
  return index;
}

Indices ProgramBuilder::loops(ArrayRef<int64_t> shape, int64_t firstNumber, std::vector<unsigned> &dims) {
  Indices at;
  for (auto [i, n] : llvm::enumerate(shape)) at.push_back(loop(kernel, firstNumber + i, n, dims));
  return at;
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// A store rounds to the type of its result, so that a conversion to it right before would round twice.
static Value unrounded(Value result) {
  auto cast = result.getDefiningOp<CastOp>();
  bool rounds = cast && scalarOf(cast.getInput()) == computed(scalarOf(result));
  return rounds ? cast.getInput() : result;
}

LogicalResult ProgramBuilder::assemble() {
  p.kind = form.kind;
  for (Value v : kernel.getArguments()) p.inputs.push_back({scalarOf(v), elementsOf(v)});
  for (Value v : terminator()->getOperands()) p.outputs.push_back({scalarOf(v), elementsOf(v)});
  if (form.kind == Program::Scatter) return assembleScatter();

  Indices outer = loops(form.outerShape, kOuterDims, form.kind == Program::Columns ? p.reduced : p.outer);
  Indices inner = loops(form.innerShape, kInnerDims, p.inner);
  outerLinear = p.space.linearize(outer, form.outerShape);
  innerLinear = p.space.linearize(inner, form.innerShape);
  SmallVector<int64_t> rootShape(form.outerShape);
  llvm::append_range(rootShape, form.innerShape);
  Indices root(outer);
  llvm::append_range(root, inner);

  if (form.kind == Program::Scan) {
    auto scan = cast<CumSumOp>(terminator()->getOperand(0).getDefiningOp());
    p.exclusive = scan.getExclusive(), p.reverse = scan.getReverse();
    int node = build(scan.getInput(), p.space.reshape(root, rootShape, shapeOf(scan.getInput())));
    if (node < 0) return failure();
    p.stores.push_back({0, node, p.space.linearize(root, rootShape)});
    return success();
  }
  if (!form.sums.empty()) llvm::copy_if(p.outer, std::back_inserter(p.reduced), [&](unsigned d) { return outer.back().scaleOf(d) != 0; });
  for (auto [i, v] : llvm::enumerate(terminator()->getOperands())) {
    if (form.sums.contains(v.getDefiningOp())) {
      if (failed(assembleSum(i, cast<ReduceOp>(v.getDefiningOp()), root, rootShape))) return failure();
      continue;
    }
    bool full = form.kind == Program::Rows ? elementsOf(v) == elementsIn(rootShape) : false;
    bool columns = form.kind == Program::Columns;
    Indices at = full      ? p.space.reshape(root, rootShape, shapeOf(v))
                 : columns ? p.space.reshape(inner, form.innerShape, shapeOf(v))
                           : p.space.reshape(outer, form.outerShape, shapeOf(v));
    int node = build(unrounded(v), at);
    if (node < 0) return failure();
    p.stores.push_back({unsigned(i), node, p.space.linearize(at, shapeOf(v))});
  }
  return success();
}

/// Of [parts, rows of a part, columns], over the rows.
LogicalResult ProgramBuilder::assembleSum(unsigned result, ReduceOp sum, ArrayRef<Index> root, ArrayRef<int64_t> rootShape) {
  Indices at = p.space.reshape(root, rootShape, shapeOf(sum.getInput()));
  int term = build(sum.getInput(), at);
  if (term < 0) return failure();
  Node n(Node::Reduce);
  n.type = computed(scalarOf(sum.getResult()));
  n.operands = {term};
  n.dims.assign(p.reduced.begin(), p.reduced.end());
  p.sums.push_back({result, intern(n), p.space.linearize({at[0], at[2]}, shapeOf(sum.getResult()))});
  return success();
}

/// `nn.scatter_add`, or the sum of one and of something indexed as its result.
LogicalResult ProgramBuilder::assembleScatter() {
  Value result = terminator()->getOperand(0);
  auto scatter = result.getDefiningOp<ScatterAddOp>();
  Value initial;
  if (auto add = result.getDefiningOp<AddOp>(); !scatter && add) {
    scatter = add.getLhs().getDefiningOp<ScatterAddOp>();
    initial = add.getRhs();
    if (!scatter) {
      scatter = add.getRhs().getDefiningOp<ScatterAddOp>();
      initial = add.getLhs();
    }
  }
  if (!scatter) return kernel.emitOpError("holds an nn.scatter_add that is neither its result nor a summand of it");
  auto shape = shapeOf(scatter);
  auto rows = shapeOf(scatter.getIndices());
  auto columns = shape.drop_front();
  Indices outer = loops(rows, kOuterDims, p.outer), inner = loops(columns, kInnerDims, p.inner);
  Indices outputAt{loop(kernel, kOutputDims, shape[0], p.reduced)};
  llvm::append_range(outputAt, inner);
  Indices updateAt(outer);
  llvm::append_range(updateAt, inner);
  p.scatterRow = build(scatter.getIndices(), outer);
  p.scatterValue = build(scatter.getUpdates(), updateAt);
  Node zero(Node::Constant);
  zero.type = computed(scalarOf(result));
  int start = initial ? build(initial, outputAt) : intern(zero);
  if (p.scatterRow < 0 || p.scatterValue < 0 || start < 0) return failure();
  p.stores.push_back({0, start, p.space.linearize(outputAt, shape)});
  return success();
}

FailureOr<Program> buildProgram(func::FuncOp kernel) {
  auto attention = attentionProgram(kernel);
  if (failed(attention)) return failure();
  if (*attention) return std::move(**attention);
  auto program = ProgramBuilder(kernel).run();
  if (succeeded(program)) {
    collapse(*program);
    derive(*program);
    if (!program->sums.empty() && program->size(program->inner.back()) % kSummedColumns)
      return kernel.emitOpError("sums columns that are no vectors of ") << kSummedColumns;
  }
  return program;
}

} // namespace zero::codegen
