// Kernels whose threads of a GPU go around more than once: rows of many vectors, and more updates than a block looks at in a round.
#include "../gpu/gpu_check.h"
#include <gtest/gtest.h>
#include <sstream>

using namespace mlir;
using namespace zero;
using test::replaced;

namespace {

/// The only kernel of the text, of random numbers that `change` has changed, for the processor and for a GPU.
void check(const std::string &text, test::CheckOptions options, const std::function<void(SmallVector<nn::Tensor> &)> &change = {}) {
  test::Context context;
  auto module = context.parse(text);
  ASSERT_TRUE(module) << text;
  auto kernel = *module->getOps<func::FuncOp>().begin();
  std::mt19937 random(7);
  SmallVector<nn::Tensor> inputs;
  for (Type t : kernel.getArgumentTypes()) inputs.push_back(test::randomTensor(cast<RankedTensorType>(t), random, options.limit));
  if (change) change(inputs);
  options.inputs = inputs;
  EXPECT_EQ(test::checkKernel(kernel, test::Library(kernel), options), "") << text;
  EXPECT_EQ(test::checkOnGpu(kernel, options), "") << "on a GPU\n" << text;
}

} // namespace

// Of rows that see something here and there, in one place or nowhere, of large numbers, of one that is none, and of the lowest there is.
TEST(LongKernels, Softmax) {
  for (const char *type : {"f32", "bf16"})
    for (int64_t columns : {4096, 8 * 2053, 20480}) {
      bool half = type != std::string("f32");
      std::string wide = "tensor<8x" + std::to_string(columns) + "xf32>", stored = "tensor<8x" + std::to_string(columns) + "x" + type + ">";
      std::string text = replaced(R"(
  func.func private @softmax(%x: STORED) -> (STORED, tensor<8xf32>, tensor<8xf32>) attributes {nn.kernel} {
    WIDEN
    %m = nn.reduce max %w dims [1] : WIDE -> tensor<8xf32>
    %l = nn.reduce min %w dims [1] : WIDE -> tensor<8xf32>
    %mb = nn.broadcast %m dims [0] : tensor<8xf32> -> WIDE
    %d = nn.sub %w, %mb : WIDE
    %e = nn.exp %d : WIDE
    %s = nn.reduce sum %e dims [1] : WIDE -> tensor<8xf32>
    %sb = nn.broadcast %s dims [0] : tensor<8xf32> -> WIDE
    %p = nn.div %e, %sb : WIDE
    NARROW
    return %y, %s, %l : STORED, tensor<8xf32>, tensor<8xf32>
  })",
                                  {{"WIDEN", half ? "%w = nn.cast %x : STORED -> WIDE" : ""},
                                   {"NARROW", half ? "%y = nn.cast %p : WIDE -> STORED" : ""},
                                   {"%w", half ? "%w" : "%x"},
                                   {"%y", half ? "%y" : "%p"},
                                   {"STORED", stored},
                                   {"WIDE", wide}});
      check(text, {.tolerance = half ? 1.2e-2 : 2e-5}, [&](SmallVector<nn::Tensor> &inputs) {
        nn::Tensor &x = inputs[0];
        double lowest = half ? -0x1.FEp127 : -0x1.FFFFFEp127; // what masks are made of
        for (int64_t i = 0; i < columns; ++i) {
          if (i % 3) x.set(columns + i, -INFINITY);
          if (i != 77) x.set(2 * columns + i, -INFINITY);
          x.set(3 * columns + i, -INFINITY);
          if (i < columns / 2) x.set(6 * columns + i, lowest);
          x.set(7 * columns + i, lowest);
          x.set(4 * columns + i, 1000 * x.at(4 * columns + i));
        }
        x.set(5 * columns + 1234, NAN);
      });
    }
}

// Columns that were added to a row, and to a bias for them: shares that end with the row, before it and after it, kept and not. None but
// the last vectors of a pass ask whether they are such columns, and read a bias number by number.
TEST(LongKernels, AddedColumns) {
  for (int64_t columns : {4096, 8 * 2053, 30528, 40000}) {
    std::string text = replaced(R"(
  func.func private @softmax(%x: tensor<3xCxbf16>, %b: tensor<Exbf16>) -> (tensor<3xCxbf16>, tensor<3xf32>) attributes {nn.kernel} {
    %wx = nn.cast %x : tensor<3xCxbf16> -> tensor<3xCxf32>
    %wb = nn.cast %b : tensor<Exbf16> -> tensor<Exf32>
    %pad = nn.pad %wb with 0.0 : f32 low [0] high [6] interior [0] : tensor<Exf32> -> tensor<Cxf32>
    %bias = nn.broadcast %pad dims [1] : tensor<Cxf32> -> tensor<3xCxf32>
    %sum = nn.add %wx, %bias : tensor<3xCxf32>
    %i = nn.iota 1 : tensor<3xCxi32>
    %end = nn.constant dense<E> : tensor<3xCxi32>
    %exists = nn.compare lt %i, %end : tensor<3xCxi32> -> tensor<3xCxi1>
    %low = nn.constant dense<0xFF800000> : tensor<3xCxf32>
    %w = nn.select %exists, %sum, %low : tensor<3xCxi1>, tensor<3xCxf32>
    %m = nn.reduce max %w dims [1] : tensor<3xCxf32> -> tensor<3xf32>
    %mb = nn.broadcast %m dims [0] : tensor<3xf32> -> tensor<3xCxf32>
    %d = nn.sub %w, %mb : tensor<3xCxf32>
    %e = nn.exp %d : tensor<3xCxf32>
    %s = nn.reduce sum %e dims [1] : tensor<3xCxf32> -> tensor<3xf32>
    %y = nn.cast %e : tensor<3xCxf32> -> tensor<3xCxbf16>
    return %y, %s : tensor<3xCxbf16>, tensor<3xf32>
  })",
                                {{"Ex", std::to_string(columns - 6) + "x"},
                                 {"<E>", "<" + std::to_string(columns - 6) + ">"},
                                 {"xCx", "x" + std::to_string(columns) + "x"},
                                 {"<Cx", "<" + std::to_string(columns) + "x"}});
    check(text, {.tolerance = 1.2e-2});
    test::Context context;
    auto module = context.parse(text);
    auto ptx = codegen::compileToPtx(codegen::GpuKernel{*module->getOps<func::FuncOp>().begin(), {16, 16, 16, 16}}, {"sm_80"}, 1);
    ASSERT_TRUE(succeeded(ptx));
    int ofOne = 0, passes = 2, lanes = 8;
    std::istringstream lines(*ptx);
    for (std::string line; std::getline(lines, line);)
      ofOne += line.find("\tld.") != std::string::npos && line.find("16 ") != std::string::npos;
    EXPECT_LE(ofOne, passes * lanes) << columns << " columns";
  }
}

// A norm's gradient, onto another one, and what sums columns of it and beside it, part by part: of threads in one warp and in several, some
// of which have no columns, and of several rows at once or the next one loaded ahead; with an element per row, and in place.
TEST(LongKernels, SumsOfColumns) {
  struct Shape {
    int64_t parts, rows, columns;
    const char *type;
  };
  for (const Shape &s : {Shape{2, 4, 256, "bf16"}, Shape{3, 6, 768, "bf16"}, Shape{2, 5, 1600, "bf16"}, Shape{2, 32, 128, "f32"},
                         Shape{5, 2, 8, "f32"}, Shape{2, 8, 2048, "f32"}}) {
    bool half = s.type != std::string("f32");
    auto tensor = [](std::vector<int64_t> sizes, const std::string &element) {
      std::string text = "tensor<";
      for (int64_t size : sizes) text += std::to_string(size) + "x";
      return text + element + ">";
    };
    std::string text = replaced(R"(
  func.func private @norm(%dz: STORED, %dy: STORED, %x: STORED, %mean: ROW, %scale: ROW, %gamma: COLUMN) -> (STORED, SUMS, ROW, SUMS, SUMS)
      attributes {nn.inplace = [[0, 0], [0, 1], [0, 2]], nn.kernel} {
    WIDEN
    %g = nn.broadcast %gamma dims [2] : COLUMN -> WIDE
    %m = nn.broadcast %mean dims [0, 1] : ROW -> WIDE
    %r = nn.broadcast %scale dims [0, 1] : ROW -> WIDE
    %c = nn.sub %Wx, %m : WIDE
    %h = nn.mul %c, %r : WIDE
    %d = nn.mul %Wdy, %g : WIDE
    %s = nn.reduce sum %d dims [2] : WIDE -> ROW
    %dh = nn.mul %d, %h : WIDE
    %t = nn.reduce sum %dh dims [2] : WIDE -> ROW
    %sb = nn.broadcast %s dims [0, 1] : ROW -> WIDE
    %tb = nn.broadcast %t dims [0, 1] : ROW -> WIDE
    %th = nn.mul %h, %tb : WIDE
    %e = nn.sub %d, %sb : WIDE
    %f = nn.sub %e, %th : WIDE
    %dx = nn.mul %r, %f : WIDE
    %sum = nn.add %Wdz, %dx : WIDE
    NARROW
    %dgamma = nn.mul %Wdy, %h : WIDE
    %p0 = nn.reshape %dgamma : WIDE -> PARTS
    %s0 = nn.reduce sum %p0 dims [1] : PARTS -> SUMS
    %p1 = nn.reshape %Wdy : WIDE -> PARTS
    %s1 = nn.reduce sum %p1 dims [1] : PARTS -> SUMS
    %p2 = nn.reshape %sum : WIDE -> PARTS
    %s2 = nn.reduce sum %p2 dims [1] : PARTS -> SUMS
    return %result, %s0, %t, %s1, %s2 : STORED, SUMS, ROW, SUMS, SUMS
  })",
                                {{"WIDEN", half ? "%Wdz = nn.cast %dz : STORED -> WIDE\n%Wdy = nn.cast %dy : STORED -> WIDE\n"
                                                  "%Wx = nn.cast %x : STORED -> WIDE"
                                                : ""},
                                 {"NARROW", half ? "%result = nn.cast %sum : WIDE -> STORED" : ""},
                                 {"%W", half ? "%wide_" : "%"},
                                 {"%result", half ? "%result" : "%sum"},
                                 {"STORED", tensor({s.rows, s.parts, s.columns}, s.type)},
                                 {"WIDE", tensor({s.rows, s.parts, s.columns}, "f32")},
                                 {"PARTS", tensor({s.parts, s.rows, s.columns}, "f32")},
                                 {"SUMS", tensor({s.parts, s.columns}, "f32")},
                                 {"ROW", tensor({s.rows, s.parts}, "f32")},
                                 {"COLUMN", tensor({s.columns}, "f32")}});
    check(text, {.tolerance = half ? 1.2e-2 : 2e-4});
  }
}

TEST(LongKernels, ScatterAdd) {
  for (int64_t updates : {257, 1025, 2500})
    for (int64_t rows : {3, 2100}) {
      std::string u = std::to_string(updates), r = std::to_string(rows);
      check(replaced(R"(
  func.func private @scatter(%ids: tensor<Uxi64>, %u: tensor<Ux20xf32>, %w: tensor<Rx20xf32>) -> tensor<Rx20xf32> attributes {nn.kernel} {
    %s = nn.scatter_add %ids, %u : tensor<Uxi64>, tensor<Ux20xf32> -> tensor<Rx20xf32>
    %a = nn.add %w, %s : tensor<Rx20xf32>
    return %a : tensor<Rx20xf32>
  })",
                     {{"<Ux", "<" + u + "x"}, {"<Rx", "<" + r + "x"}}),
            {.limit = rows});
    }
}
