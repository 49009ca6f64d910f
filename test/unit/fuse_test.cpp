// Random graphs of primitives and products: fusing them changes no value, and every kernel computes what its body says.
#include "compiler/nn/build.h"
#include "kernel_check.h"
#include "mlir/IR/Verifier.h"
#include "passes/fuse/Passes.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace zero;

namespace {

class Graph {
public:
  Graph(MLIRContext &context, unsigned seed) : random(seed), b(&context), build{b, UnknownLoc::get(&context)} {
    batch = 1 + random() % 3, rows = 1 + random() % 5, columns = 2 * (1 + random() % 20);
    if (seed % 4 == 1) rows = columns = 2 * (1 + random() % 10); // sums over rows then have the shape of sums over columns
    module = ModuleOp::create(build.loc);
    SmallVector<Type> types{tensor({batch, rows, columns}), tensor({batch, rows, columns}),
                            tensor({columns, columns}),     tensor({columns}),
                            tensor({batch, rows}),          RankedTensorType::get({batch, rows}, b.getI64Type())};
    b.setInsertionPointToEnd(module->getBody());
    function = b.create<func::FuncOp>(build.loc, "train", b.getFunctionType(types, {}));
    b.setInsertionPointToStart(function.addEntryBlock());
    full = {function.getArgument(0), function.getArgument(1)};
    column = {function.getArgument(3)};
    row = {function.getArgument(4)};
    for (int i = 0; i < 30; ++i) step();
    // The last values of each kind, and a few others, are results.
    SmallVector<Value> results{full.back(), row.back(), column.back(), pick(full), pick(row)};
    b.create<func::ReturnOp>(build.loc, results);
    function.setType(b.getFunctionType(types, ValueRange(results).getTypes()));
  }

  OwningOpRef<ModuleOp> module;
  func::FuncOp function;

private:
  std::mt19937 random;
  OpBuilder b;
  nn::Build build;
  int64_t batch, rows, columns;
  std::vector<Value> full, row, column;

  RankedTensorType tensor(ArrayRef<int64_t> shape) { return RankedTensorType::get(shape, b.getF32Type()); }
  Value pick(const std::vector<Value> &from) { return from[from.size() - 1 - std::min<size_t>(random() % from.size(), random() % 8)]; }
  Value bounded(Value v) { return build.tanh(v); }

  void step() {
    SmallVector<int64_t> shape{batch, rows, columns};
    switch (random() % (rows == columns ? 22 : 19)) {
    case 0:
      full.push_back(build.add(pick(full), pick(full)));
      break;
    case 1:
      full.push_back(build.mul(bounded(pick(full)), pick(full)));
      break;
    case 2:
      full.push_back(build.sigmoid(pick(full)));
      break;
    case 3:
      full.push_back(build.sub(pick(full), build.rows(pick(row), columns)));
      break;
    case 4:
      full.push_back(build.mul(bounded(pick(full)), build.columns(pick(column), shape)));
      break;
    case 5:
      row.push_back(build.meanLast(pick(full)));
      break;
    case 6:
      row.push_back(build.maxLast(pick(full)));
      break;
    case 7:
      column.push_back(bounded(build.sumRows(pick(full))));
      break;
    case 8:
      column.push_back(bounded(build.sumRows(build.mul(pick(full), bounded(pick(full))))));
      break;
    case 9:
      row.push_back(build.add(pick(row), bounded(pick(row))));
      break;
    case 10: { // of rows with rows: a sum over them that only the library makes
      Value flat = build.reshape(bounded(pick(full)), {batch * rows, columns}),
            other = build.reshape(bounded(pick(full)), {batch * rows, columns});
      Value product = b.create<nn::MatMulOp>(build.loc, flat, other, true, false);
      column.push_back(bounded(build.reduce(nn::ReductionKind::sum, product, {0})));
      break;
    }
    case 11: { // product, by rows
      Value flat = build.reshape(bounded(pick(full)), {batch * rows, columns});
      Value product = b.create<nn::MatMulOp>(build.loc, flat, function.getArgument(2), false, random() % 2 == 0);
      full.push_back(build.reshape(product, shape));
      break;
    }
    case 12: { // halves change places
      Value v = pick(full);
      Value low = build.slice(v, {0, 0, 0}, {batch, rows, columns / 2}, {1, 1, 1}),
            high = build.slice(v, {0, 0, columns / 2}, {batch, rows, columns / 2}, {1, 1, 1});
      full.push_back(b.create<nn::ConcatOp>(build.loc, ValueRange{build.neg(high), low}, 2));
      break;
    }
    case 13: { // there and back through transposed dimensions
      Value t = b.create<nn::TransposeOp>(build.loc, pick(full), ArrayRef<int64_t>{1, 0, 2});
      t = build.sigmoid(t);
      full.push_back(b.create<nn::TransposeOp>(build.loc, t, ArrayRef<int64_t>{1, 0, 2}));
      break;
    }
    case 14: { // softmax
      Value v = pick(full), e = build.exp(build.sub(v, build.rows(build.maxLast(v), columns)));
      full.push_back(build.div(e, build.rows(build.sumLast(e), columns)));
      break;
    }
    case 15: { // padded rows
      Value v = build.slice(pick(full), {0, 0, 1}, {batch, rows, columns - 1}, {1, 1, 1});
      full.push_back(build.pad(v, {0, 0, 0}, {0, 0, 1}, {0, 0, 0}));
      break;
    }
    case 16: { // by index
      auto i64s = RankedTensorType::get({batch, rows, columns}, b.getI64Type());
      Value labels = function.getArgument(5);
      Value hit = build.compare(nn::Predicate::eq, build.iota(i64s, 2), build.rows(labels, columns));
      full.push_back(build.select(hit, pick(full), build.like(full[0], 0.5)));
      row.push_back(b.create<nn::TakeAlongOp>(build.loc, tensor({batch, rows}), pick(full), labels));
      break;
    }
    case 17: { // the largest of a few neighbours, or of more than a kernel would compute anew for each
      int64_t taps = 2 + random() % 20;
      Value padded = build.pad(pick(full), {0, 0, taps / 2}, {0, 0, taps - 1 - taps / 2}, {0, 0, 0}), largest;
      for (int64_t t = 0; t < taps; ++t) {
        Value tap = build.slice(padded, {0, 0, t}, shape, {1, 1, 1});
        largest = largest ? build.max(largest, tap) : tap;
      }
      full.push_back(largest);
      break;
    }
    case 18: { // columns in the opposite order, each a piece
      Value v = pick(full);
      SmallVector<Value> pieces;
      for (int64_t c = columns; c-- > 0;) pieces.push_back(build.slice(v, {0, 0, c}, {batch, rows, 1}, {1, 1, 1}));
      full.push_back(b.create<nn::ConcatOp>(build.loc, pieces, 2));
      break;
    }
    case 19: // over rows, as many as there are columns
      row.push_back(bounded(build.reduce(nn::ReductionKind::sum, pick(full), {1})));
      break;
    case 20:
      row.push_back(build.reduce(nn::ReductionKind::max, pick(full), {1}));
      break;
    case 21: // rows and columns change places
      full.push_back(b.create<nn::TransposeOp>(build.loc, pick(full), ArrayRef<int64_t>{0, 2, 1}));
      break;
    }
  }
};

} // namespace

TEST(Fusion, RandomGraphs) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::Context context;
    context.context.loadDialect<arith::ArithDialect, math::MathDialect, memref::MemRefDialect, scf::SCFDialect, vector::VectorDialect>();
    Graph graph(context.context, seed);
    ASSERT_TRUE(succeeded(verify(*graph.module)));
    std::string before;
    llvm::raw_string_ostream(before) << *graph.module;
    std::mt19937 random(seed);
    SmallVector<nn::Tensor> inputs;
    for (Type t : graph.function.getArgumentTypes()) inputs.push_back(test::randomTensor(cast<RankedTensorType>(t), random, 2));
    auto expected = nn::evaluateFunction(graph.function, inputs);
    ASSERT_TRUE(succeeded(expected));

    PassManager pm(&context.context);
    fuse::buildPipeline(pm, {});
    ASSERT_TRUE(succeeded(pm.run(*graph.module))) << before;
    for (Operation &op : graph.function.getBody().front())
      EXPECT_TRUE((isa<nn::MatMulOp, nn::ReshapeOp, nn::LaunchOp, func::ReturnOp>(op))) << op.getName().getStringRef().str() << " is left";
    auto actual = nn::evaluateFunction(graph.function, inputs);
    ASSERT_TRUE(succeeded(actual));
    for (size_t i = 0; i < expected->size(); ++i) EXPECT_EQ((*expected)[i].bytes, (*actual)[i].bytes) << "result " << i << "\n" << before;

    SmallVector<func::FuncOp> kernels;
    for (auto f : graph.module->getOps<func::FuncOp>())
      if (f->hasAttr("nn.kernel")) kernels.push_back(f);
    test::Library library(kernels, seed % 2 ? "native" : "x86-64-v3");
    for (func::FuncOp kernel : kernels) {
      std::string text;
      llvm::raw_string_ostream(text) << kernel;
      EXPECT_EQ(test::checkKernel(kernel, library, {.limit = 2}), "") << text;
    }
  }
}
