// Kernels whose threads of a GPU go around more than once: rows of many vectors, and more updates than a block looks at in a round.
#include "../gpu/gpu_check.h"
#include <gtest/gtest.h>

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

// Of rows that see something here and there, in one place or nowhere, of large numbers, and of one that is none.
TEST(LongKernels, Softmax) {
  for (const char *type : {"f32", "bf16"})
    for (int64_t columns : {4096, 8 * 2053, 20480}) {
      bool half = type != std::string("f32");
      std::string wide = "tensor<6x" + std::to_string(columns) + "xf32>", stored = "tensor<6x" + std::to_string(columns) + "x" + type + ">";
      std::string text = replaced(R"(
  func.func private @softmax(%x: STORED) -> (STORED, tensor<6xf32>, tensor<6xf32>) attributes {nn.kernel} {
    WIDEN
    %m = nn.reduce max %w dims [1] : WIDE -> tensor<6xf32>
    %l = nn.reduce min %w dims [1] : WIDE -> tensor<6xf32>
    %mb = nn.broadcast %m dims [0] : tensor<6xf32> -> WIDE
    %d = nn.sub %w, %mb : WIDE
    %e = nn.exp %d : WIDE
    %s = nn.reduce sum %e dims [1] : WIDE -> tensor<6xf32>
    %sb = nn.broadcast %s dims [0] : tensor<6xf32> -> WIDE
    %p = nn.div %e, %sb : WIDE
    NARROW
    return %y, %s, %l : STORED, tensor<6xf32>, tensor<6xf32>
  })",
                                  {{"WIDEN", half ? "%w = nn.cast %x : STORED -> WIDE" : ""},
                                   {"NARROW", half ? "%y = nn.cast %p : WIDE -> STORED" : ""},
                                   {"%w", half ? "%w" : "%x"},
                                   {"%y", half ? "%y" : "%p"},
                                   {"STORED", stored},
                                   {"WIDE", wide}});
      check(text, {.tolerance = half ? 1.2e-2 : 2e-5}, [&](SmallVector<nn::Tensor> &inputs) {
        nn::Tensor &x = inputs[0];
        for (int64_t i = 0; i < columns; ++i) {
          if (i % 3) x.set(columns + i, -INFINITY);
          if (i != 77) x.set(2 * columns + i, -INFINITY);
          x.set(3 * columns + i, -INFINITY);
          x.set(4 * columns + i, 1000 * x.at(4 * columns + i));
        }
        x.set(5 * columns + 1234, NAN);
      });
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
