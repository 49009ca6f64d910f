// Random kernels against the reference interpreter: shapes with extents of 1 and primes, scalars and long rows, values of every kind
// moved every way.
#include "../gpu/gpu_check.h"
#include "compiler/nn/build.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace zero;

namespace {

class RandomKernel {
public:
  RandomKernel(MLIRContext &context, unsigned seed) : random(seed), b(&context), build{b, UnknownLoc::get(&context)} {
    module = ModuleOp::create(build.loc);
    SmallVector<int64_t> shape = someShape();
    Type elements[] = {b.getF32Type(), b.getF32Type(), b.getI64Type(), b.getI1Type()};
    SmallVector<Type> types;
    for (Type element : elements) types.push_back(RankedTensorType::get(shape, element));
    // Repeated along whichever dimensions.
    SmallVector<int64_t> few(shape);
    for (int64_t &n : few)
      if (random() % 2) n = 1;
    types.push_back(RankedTensorType::get(few, b.getF32Type()));
    b.setInsertionPointToEnd(module->getBody());
    kernel = b.create<func::FuncOp>(build.loc, "kernel", b.getFunctionType(types, {}));
    kernel.setPrivate();
    kernel->setAttr(nn::NnDialect::kKernelAttr, b.getUnitAttr());
    b.setInsertionPointToStart(kernel.addEntryBlock());
    SmallVector<int64_t> all;
    for (size_t i = 0; i < shape.size(); ++i) all.push_back(int64_t(i));
    real = {kernel.getArgument(0), kernel.getArgument(1), build.broadcast(kernel.getArgument(4), shape, all)};
    whole = kernel.getArgument(2), flag = kernel.getArgument(3);
    for (int i = 0; i < 6; ++i) step();
    Value result = random() % 5 == 0 ? flag : random() % 5 == 0 ? whole : real.back();
    SmallVector<Value> results{result};
    if (random() % 3 == 0 && nn::typeOf(result).getShape() == nn::typeOf(real[0]).getShape()) results.push_back(real[0]);
    b.create<func::ReturnOp>(build.loc, results);
    kernel.setType(b.getFunctionType(types, ValueRange(results).getTypes()));
  }

  OwningOpRef<ModuleOp> module;
  func::FuncOp kernel;

private:
  std::mt19937 random;
  OpBuilder b;
  nn::Build build;
  std::vector<Value> real; // all of one shape, as are:
  Value whole, flag;
  int reductions = 0;

  SmallVector<int64_t> someShape() {
    if (random() % 12 == 0) return {3, 20011};
    static const int64_t sizes[] = {1, 1, 2, 3, 5, 7, 16, 17, 31, 33, 64, 127};
    SmallVector<int64_t> shape;
    int64_t elements = 1;
    for (unsigned rank = random() % 6; shape.size() < rank;) {
      int64_t n = sizes[random() % std::size(sizes)];
      if (elements * n > 3000) n = 1 + int64_t(random() % 2);
      shape.push_back(n);
      elements *= n;
    }
    return shape;
  }
  SmallVector<int64_t> shape() { return SmallVector<int64_t>(nn::typeOf(real[0]).getShape()); }
  Value pick() { return real[random() % real.size()]; }
  template <typename Change> void forAll(Change change) {
    for (Value &v : real) v = change(v);
    whole = change(whole), flag = change(flag);
  }

  void step() {
    auto now = shape();
    auto rank = int64_t(now.size());
    int64_t dim = rank ? int64_t(random() % rank) : 0;
    SmallVector<int64_t> zeros(rank, 0), ones(rank, 1);
    switch (random() % 14) {
    case 0:
      real.push_back(build.add(pick(), pick()));
      break;
    case 1:
      real.push_back(build.mul(build.tanh(pick()), pick()));
      break;
    case 2:
      real.push_back(build.exp(build.neg(build.mul(pick(), build.sigmoid(pick())))));
      real.back() = build.tanh(real.back());
      break;
    case 3:
      flag = build.compare(nn::Predicate(random() % 6), whole, build.like(whole, 2));
      break;
    case 4:
      real.push_back(build.select(flag, pick(), build.cast(whole, b.getF32Type())));
      break;
    case 5:
      whole = build.add(build.cast(flag, b.getI64Type()), whole);
      break;
    case 6: { // dimensions change places
      SmallVector<int64_t> perm;
      for (int64_t i = 0; i < rank; ++i) perm.push_back(i);
      std::shuffle(perm.begin(), perm.end(), random);
      forAll([&](Value v) -> Value { return b.create<nn::TransposeOp>(build.loc, v, perm); });
      break;
    }
    case 7: // two dimensions are one
      if (rank > 1 && dim + 1 < rank) {
        now[dim] *= now[dim + 1];
        now.erase(now.begin() + dim + 1);
        forAll([&](Value v) { return build.reshape(v, now); });
      }
      break;
    case 8: // one is two
      if (rank)
        for (int64_t part : {2, 3, 5, 7, 1})
          if (now[dim] % part == 0) {
            now[dim] /= part;
            now.insert(now.begin() + dim + int64_t(random() % 2), part);
            forAll([&](Value v) { return build.reshape(v, now); });
            break;
          }
      break;
    case 9: { // a part, perhaps backwards, perhaps every other
      SmallVector<int64_t> starts(zeros), sizes(now), steps(ones);
      if (rank && now[dim] > 1) {
        if (random() % 2)
          starts[dim] = now[dim] - 1, steps[dim] = -1, sizes[dim] = 1 + int64_t(random() % now[dim]);
        else
          starts[dim] = 1, steps[dim] = 2, sizes[dim] = now[dim] / 2;
      }
      forAll([&](Value v) { return build.slice(v, starts, sizes, steps); });
      break;
    }
    case 10: { // surrounded by zeros
      SmallVector<int64_t> low(zeros), high(zeros), interior(zeros);
      if (rank) low[dim] = int64_t(random() % 3), high[dim] = int64_t(random() % 3), interior[dim] = int64_t(random() % 2);
      real.push_back(build.pad(pick(), low, high, interior));

      SmallVector<int64_t> first(zeros);
      real.back() = build.slice(real.back(), first, now, ones);
      break;
    }
    case 11: // halves from two values
      if (rank && now[dim] > 1) {
        SmallVector<int64_t> low(now), high(now), at(zeros);
        low[dim] = now[dim] / 2, high[dim] = now[dim] - low[dim], at[dim] = low[dim];
        Value x = build.slice(pick(), zeros, low, ones), y = build.slice(pick(), at, high, ones);
        real.push_back(b.create<nn::ConcatOp>(build.loc, ValueRange{x, y}, dim));
      }
      break;
    default: { // reduced over any dimensions, and repeated
      // Sums over dimensions that do not order the kernel are made number after number; of very many they are as inexact as that.
      if (reductions++ > 1 || nn::typeOf(real[0]).getNumElements() > 3000) break;
      SmallVector<int64_t> over, kept;
      for (int64_t i = 0; i < rank; ++i) (random() % 2 ? over : kept).push_back(i);
      if (over.empty()) break;
      auto kind = random() % 2 ? nn::ReductionKind::sum : random() % 2 ? nn::ReductionKind::max : nn::ReductionKind::min;
      real.push_back(build.broadcast(build.reduce(kind, build.tanh(pick()), over), now, kept));
      if (kind != nn::ReductionKind::sum) flag = build.broadcast(build.reduce(kind, flag, over), now, kept);
      if (random() % 2) whole = build.broadcast(build.reduce(kind, whole, over), now, kept);
      break;
    }
    }
  }
};

} // namespace

// What is padded, cut or put together into one dimension and then read backwards: quotients of negative numbers.
TEST(Kernels, ReadBackwards) {
  test::Context context;
  const char *text = R"(
    func.func private @merged(%x: tensor<3x4xf32>) -> tensor<16xf32> attributes {nn.kernel} {
      %pad = nn.pad %x with 0.0 : f32 low [1, 0] high [0, 0] interior [0, 0] : tensor<3x4xf32> -> tensor<4x4xf32>
      %row = nn.reshape %pad : tensor<4x4xf32> -> tensor<16xf32>
      %flip = nn.slice %row starts [15] sizes [16] steps [-1] : tensor<16xf32> -> tensor<16xf32>
      return %flip : tensor<16xf32>
    }
    func.func private @chunk(%x: tensor<2x1x4x16xf32>) -> tensor<2x12x16xf32> attributes {nn.kernel} {
      %pad = nn.pad %x with 0.0 : f32 low [0, 1, 0, 0] high [0, 1, 0, 0] interior [0, 0, 0, 0] : tensor<2x1x4x16xf32> -> tensor<2x3x4x16xf32>
      %row = nn.reshape %pad : tensor<2x3x4x16xf32> -> tensor<2x12x16xf32>
      %flip = nn.slice %row starts [0, 11, 0] sizes [2, 12, 16] steps [1, -1, 1] : tensor<2x12x16xf32> -> tensor<2x12x16xf32>
      return %flip : tensor<2x12x16xf32>
    }
    func.func private @last(%x: tensor<1x5xf32>) -> tensor<15xf32> attributes {nn.kernel} {
      %pad = nn.pad %x with 0.0 : f32 low [2, 0] high [0, 0] interior [0, 0] : tensor<1x5xf32> -> tensor<3x5xf32>
      %row = nn.reshape %pad : tensor<3x5xf32> -> tensor<15xf32>
      %flip = nn.slice %row starts [14] sizes [15] steps [-1] : tensor<15xf32> -> tensor<15xf32>
      %tanh = nn.tanh %flip : tensor<15xf32>
      return %tanh : tensor<15xf32>
    })";
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context.context);
  ASSERT_TRUE(module);
  for (auto kernel : module->getOps<func::FuncOp>()) {
    test::Library library({kernel}, "native");
    EXPECT_EQ(test::checkKernel(kernel, library, {.limit = 5, .target = "native"}), "") << kernel.getSymName().str();
    EXPECT_EQ(test::checkOnGpu(kernel, {.limit = 5}, 16), "") << kernel.getSymName().str();
  }
}

// ZERO_RANDOM_KERNELS=N looks at N of them.
TEST(RandomKernels, EqualTheInterpreter) {
  const char *wanted = std::getenv("ZERO_RANDOM_KERNELS");
  unsigned count = wanted ? unsigned(std::atoi(wanted)) : 60;
  for (unsigned seed = 0; seed < count; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::Context context;
    RandomKernel graph(context.context, seed);
    ASSERT_TRUE(succeeded(verify(*graph.module)));
    std::string text;
    llvm::raw_string_ostream(text) << graph.kernel;
    for (const char *target : {"native", "x86-64-v3"}) {
      test::Library library({graph.kernel}, target);
      ASSERT_EQ(test::checkKernel(graph.kernel, library, {.limit = 5, .target = target}), "") << target << "\n" << text;
    }
    for (unsigned alignment : {0, 16})
      ASSERT_EQ(test::checkOnGpu(graph.kernel, {.limit = 5}, alignment), "") << "on a GPU, aligned to " << alignment << "\n" << text;
  }
}
