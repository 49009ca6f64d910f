// Generated kernels against the reference interpreter: values, cuts of the extent, results in place.
#include "../gpu/gpu_check.h"
#include "compiler/nn/index.h"
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

using namespace mlir;
using namespace zero;
using test::replaced;

namespace {

/// Compile every function of the text that is a kernel, for the processor and for a GPU, and compare it with the interpreter.
void check(const std::string &text, test::CheckOptions options = {}) {
  test::Context context;
  auto module = context.parse(text);
  ASSERT_TRUE(module) << text;
  SmallVector<func::FuncOp> kernels(module->getOps<func::FuncOp>());
  test::Library library(kernels, options.target);
  for (func::FuncOp kernel : kernels)
    EXPECT_EQ(test::checkKernel(kernel, library, options), "") << kernel.getSymName().str() << "\n" << text;
  for (func::FuncOp kernel : kernels)
    EXPECT_EQ(test::checkOnGpu(kernel, options), "") << "on a GPU: " << kernel.getSymName().str() << "\n" << text;
}

const char *kLayerNorm = R"(
func.func private @layer_norm(%x: tensor<2xRxCxf32>, %r: tensor<2xRxCxf32>, %g: tensor<Cxf32>, %b: tensor<Cxf32>)
    -> (tensor<2xRxCxf32>, tensor<2xRxCxf32>, tensor<2xRxf32>, tensor<2xRxf32>) attributes {nn.kernel} {
  %y = nn.add %x, %r : tensor<2xRxCxf32>
  %n = nn.constant dense<INV> : tensor<2xRxf32>
  %eps = nn.constant dense<1.0e-05> : tensor<2xRxf32>
  %s = nn.reduce sum %y dims [2] : tensor<2xRxCxf32> -> tensor<2xRxf32>
  %mean = nn.mul %s, %n : tensor<2xRxf32>
  %mb = nn.broadcast %mean dims [0, 1] : tensor<2xRxf32> -> tensor<2xRxCxf32>
  %d = nn.sub %y, %mb : tensor<2xRxCxf32>
  %q = nn.mul %d, %d : tensor<2xRxCxf32>
  %qs = nn.reduce sum %q dims [2] : tensor<2xRxCxf32> -> tensor<2xRxf32>
  %var = nn.mul %qs, %n : tensor<2xRxf32>
  %ve = nn.add %var, %eps : tensor<2xRxf32>
  %rstd = nn.rsqrt %ve : tensor<2xRxf32>
  %rb = nn.broadcast %rstd dims [0, 1] : tensor<2xRxf32> -> tensor<2xRxCxf32>
  %h = nn.mul %d, %rb : tensor<2xRxCxf32>
  %gb = nn.broadcast %g dims [2] : tensor<Cxf32> -> tensor<2xRxCxf32>
  %bb = nn.broadcast %b dims [2] : tensor<Cxf32> -> tensor<2xRxCxf32>
  %hg = nn.mul %h, %gb : tensor<2xRxCxf32>
  %o = nn.add %hg, %bb : tensor<2xRxCxf32>
  return %y, %o, %mean, %rstd : tensor<2xRxCxf32>, tensor<2xRxCxf32>, tensor<2xRxf32>, tensor<2xRxf32>
})";

const char *kCrossEntropy = R"(
func.func private @cross_entropy(%x: tensor<RxCxf32>, %labels: tensor<Rxi64>, %scale: tensor<1xf32>)
    -> (tensor<Rxf32>, tensor<Rxf32>, tensor<RxCxf32>) attributes {nn.kernel} {
  %m = nn.reduce max %x dims [1] : tensor<RxCxf32> -> tensor<Rxf32>
  %mb = nn.broadcast %m dims [0] : tensor<Rxf32> -> tensor<RxCxf32>
  %d = nn.sub %x, %mb : tensor<RxCxf32>
  %e = nn.exp %d : tensor<RxCxf32>
  %s = nn.reduce sum %e dims [1] : tensor<RxCxf32> -> tensor<Rxf32>
  %l = nn.log %s : tensor<Rxf32>
  %lse = nn.add %l, %m : tensor<Rxf32>
  %ignore = nn.constant dense<3> : tensor<Rxi64>
  %zero = nn.constant dense<0> : tensor<Rxi64>
  %keep = nn.compare ne %labels, %ignore : tensor<Rxi64> -> tensor<Rxi1>
  %safe = nn.select %keep, %labels, %zero : tensor<Rxi1>, tensor<Rxi64>
  %picked = nn.take_along %x, %safe : tensor<RxCxf32>, tensor<Rxi64> -> tensor<Rxf32>
  %nll = nn.sub %lse, %picked : tensor<Rxf32>
  %sr = nn.broadcast %scale dims [0] : tensor<1xf32> -> tensor<Rxf32>
  %zf = nn.constant dense<0.0> : tensor<Rxf32>
  %w = nn.select %keep, %sr, %zf : tensor<Rxi1>, tensor<Rxf32>
  %loss = nn.mul %nll, %w : tensor<Rxf32>
  %lb = nn.broadcast %lse dims [0] : tensor<Rxf32> -> tensor<RxCxf32>
  %xs = nn.sub %x, %lb : tensor<RxCxf32>
  %p = nn.exp %xs : tensor<RxCxf32>
  %i = nn.iota 1 : tensor<RxCxi64>
  %labelsb = nn.broadcast %safe dims [0] : tensor<Rxi64> -> tensor<RxCxi64>
  %hit = nn.compare eq %i, %labelsb : tensor<RxCxi64> -> tensor<RxCxi1>
  %one = nn.constant dense<1.0> : tensor<RxCxf32>
  %zeros = nn.constant dense<0.0> : tensor<RxCxf32>
  %hot = nn.select %hit, %one, %zeros : tensor<RxCxi1>, tensor<RxCxf32>
  %pd = nn.sub %p, %hot : tensor<RxCxf32>
  %wb = nn.broadcast %w dims [0] : tensor<Rxf32> -> tensor<RxCxf32>
  %dx = nn.mul %pd, %wb : tensor<RxCxf32>
  return %loss, %lse, %dx : tensor<Rxf32>, tensor<Rxf32>, tensor<RxCxf32>
})";

} // namespace

TEST(Kernels, LayerNorm) {
  for (int64_t columns : {1, 3, 17, 64, 768, 1000})
    check(replaced(kLayerNorm, {{"RxC", "5x" + std::to_string(columns)},
                                {"tensor<C", "tensor<" + std::to_string(columns)},
                                {"xRx", "x5x"},
                                {"INV", std::to_string(1.0 / columns)}}));
}

TEST(Kernels, CrossEntropy) {
  for (int64_t columns : {5, 17, 50257}) check(replaced(kCrossEntropy, {{"RxC", "7x" + std::to_string(columns)}, {"<Rx", "<7x"}}));
}

TEST(Kernels, Chunks) {
  for (int64_t n : {1, 3, 2047, 2048, 2049, 10000})
    for (const char *target : {"native", "x86-64-v3"})
      check(replaced(
                R"(func.func private @gelu(%x: tensor<Nxf32>, %y: tensor<Nxf32>) -> (tensor<Nxf32>, tensor<Nxf32>) attributes {nn.kernel} {
    %h = nn.constant dense<0.5> : tensor<Nxf32>
    %c = nn.constant dense<0.70710678> : tensor<Nxf32>
    %one = nn.constant dense<1.0> : tensor<Nxf32>
    %s = nn.mul %x, %c : tensor<Nxf32>
    %e = nn.erf %s : tensor<Nxf32>
    %p = nn.add %e, %one : tensor<Nxf32>
    %hx = nn.mul %x, %h : tensor<Nxf32>
    %g = nn.mul %hx, %p : tensor<Nxf32>
    %gy = nn.mul %g, %y : tensor<Nxf32>
    return %g, %gy : tensor<Nxf32>, tensor<Nxf32>
  })",
                {{"Nx", std::to_string(n) + "x"}}),
            {.target = target});
}

TEST(Index, WhatReshapesTakeApartTheyPutTogetherAgain) {
  nn::Space space;
  nn::Index flat = nn::Index::atom(space.dim(2 * 5 * 7 * 3, -1, 0));
  nn::Indices parts = space.reshape({flat}, {210}, {2, 5, 7, 3});
  EXPECT_EQ(space.linearize(parts, {2, 5, 7, 3}), flat);
  EXPECT_EQ(space.linearize(ArrayRef(parts).drop_front(2), {7, 3}).terms.size(), 2u); // a part alone is no whole
}

TEST(Kernels, Columns) {
  for (int64_t columns : {1, 3, 64, 100, 768}) {
    std::string size = std::to_string(columns);
    check(replaced(
        R"(func.func private @columns(%x: tensor<4x9xCxf32>, %dy: tensor<36xCxf32>, %mean: tensor<36xf32>) -> (tensor<Cxf32>, tensor<Cxf32>)
      attributes {nn.kernel} {
    %v = nn.reshape %x : tensor<4x9xCxf32> -> tensor<36xCxf32>
    %mb = nn.broadcast %mean dims [0] : tensor<36xf32> -> tensor<36xCxf32>
    %d = nn.sub %v, %mb : tensor<36xCxf32>
    %p = nn.mul %d, %dy : tensor<36xCxf32>
    %p3 = nn.reshape %p : tensor<36xCxf32> -> tensor<4x9xCxf32>
    %a = nn.reduce sum %p3 dims [0, 1] : tensor<4x9xCxf32> -> tensor<Cxf32>
    %b = nn.reduce sum %dy dims [0] : tensor<36xCxf32> -> tensor<Cxf32>
    %two = nn.constant dense<2.0> : tensor<Cxf32>
    %b2 = nn.mul %b, %two : tensor<Cxf32>
    return %a, %b2 : tensor<Cxf32>, tensor<Cxf32>
  })",
        {{"xCx", "x" + size + "x"}, {"<Cx", "<" + size + "x"}}));
  }
}

TEST(Kernels, OneNumberBesideAllElements) {
  check(R"(
  func.func private @scaled(%x: tensor<6x5xf32>, %r: tensor<6xf32>, %s: tensor<f32>) -> (tensor<6x5xf32>, tensor<f32>) attributes {nn.kernel} {
    %root = nn.sqrt %r : tensor<6xf32>
    %rows = nn.broadcast %root dims [0] : tensor<6xf32> -> tensor<6x5xf32>
    %d = nn.div %x, %rows : tensor<6x5xf32>
    %e = nn.exp %s : tensor<f32>
    %all = nn.broadcast %e dims [] : tensor<f32> -> tensor<6x5xf32>
    %y = nn.mul %all, %d : tensor<6x5xf32>
    return %y, %e : tensor<6x5xf32>, tensor<f32>
  })");
}

// The mean of 16 normalised tokens of 16 columns has the shape of the norm's statistics, all of which each column's sum reads.
TEST(Kernels, SumsReadWhatNoColumnMayOverwrite) {
  check(R"(
  func.func private @mean(%x: tensor<2x16x16xf32>, %m: tensor<2x16xf32>, %s: tensor<2x16xf32>, %g: tensor<16xf32>)
      -> (tensor<2x16xf32>, tensor<2x16xf32>) attributes {nn.kernel} {
    %mb = nn.broadcast %m dims [0, 1] : tensor<2x16xf32> -> tensor<2x16x16xf32>
    %d = nn.sub %x, %mb : tensor<2x16x16xf32>
    %r = nn.tanh %s : tensor<2x16xf32>
    %rb = nn.broadcast %r dims [0, 1] : tensor<2x16xf32> -> tensor<2x16x16xf32>
    %h = nn.mul %d, %rb : tensor<2x16x16xf32>
    %gb = nn.broadcast %g dims [2] : tensor<16xf32> -> tensor<2x16x16xf32>
    %y = nn.mul %h, %gb : tensor<2x16x16xf32>
    %t = nn.reduce sum %y dims [1] : tensor<2x16x16xf32> -> tensor<2x16xf32>
    %n = nn.constant dense<0.0625> : tensor<2x16xf32>
    %mean = nn.mul %t, %n : tensor<2x16xf32>
    return %t, %mean : tensor<2x16xf32>, tensor<2x16xf32>
  })");
}

// The index of a row's largest element is reduced in the pass that stores the row, and only then is the element read.
TEST(Kernels, AnElementReadAtAReducedIndexIsNotOverwritten) {
  check(R"(
  func.func private @largest(%x: tensor<4x24xf32>) -> (tensor<4x24xf32>, tensor<4xf32>) attributes {nn.kernel} {
    %e = nn.exp %x : tensor<4x24xf32>
    %m = nn.reduce max %x dims [1] : tensor<4x24xf32> -> tensor<4xf32>
    %mb = nn.broadcast %m dims [0] : tensor<4xf32> -> tensor<4x24xf32>
    %hit = nn.compare eq %x, %mb : tensor<4x24xf32> -> tensor<4x24xi1>
    %i = nn.iota 1 : tensor<4x24xi64>
    %none = nn.constant dense<0> : tensor<4x24xi64>
    %at = nn.select %hit, %i, %none : tensor<4x24xi1>, tensor<4x24xi64>
    %idx = nn.reduce max %at dims [1] : tensor<4x24xi64> -> tensor<4xi64>
    %t = nn.take_along %x, %idx : tensor<4x24xf32>, tensor<4xi64> -> tensor<4xf32>
    return %e, %t : tensor<4x24xf32>, tensor<4xf32>
  })");
}

TEST(Kernels, Movement) {
  check(R"(
  func.func private @heads(%x: tensor<2x5x96xf32>, %b: tensor<96xf32>) -> (tensor<2x4x5x8xf32>, tensor<2x4x5x8xf32>, tensor<2x4x5x8xf32>) attributes {nn.kernel} {
    %bb = nn.broadcast %b dims [2] : tensor<96xf32> -> tensor<2x5x96xf32>
    %y = nn.add %x, %bb : tensor<2x5x96xf32>
    %q = nn.slice %y starts [0, 0, 0] sizes [2, 5, 32] steps [1, 1, 1] : tensor<2x5x96xf32> -> tensor<2x5x32xf32>
    %k = nn.slice %y starts [0, 0, 32] sizes [2, 5, 32] steps [1, 1, 1] : tensor<2x5x96xf32> -> tensor<2x5x32xf32>
    %v = nn.slice %y starts [0, 0, 64] sizes [2, 5, 32] steps [1, 1, 1] : tensor<2x5x96xf32> -> tensor<2x5x32xf32>
    %q4 = nn.reshape %q : tensor<2x5x32xf32> -> tensor<2x5x4x8xf32>
    %k4 = nn.reshape %k : tensor<2x5x32xf32> -> tensor<2x5x4x8xf32>
    %v4 = nn.reshape %v : tensor<2x5x32xf32> -> tensor<2x5x4x8xf32>
    %qt = nn.transpose %q4 perm [0, 2, 1, 3] : tensor<2x5x4x8xf32> -> tensor<2x4x5x8xf32>
    %kt = nn.transpose %k4 perm [0, 2, 1, 3] : tensor<2x5x4x8xf32> -> tensor<2x4x5x8xf32>
    %vt = nn.transpose %v4 perm [0, 2, 1, 3] : tensor<2x5x4x8xf32> -> tensor<2x4x5x8xf32>
    return %qt, %kt, %vt : tensor<2x4x5x8xf32>, tensor<2x4x5x8xf32>, tensor<2x4x5x8xf32>
  }
  func.func private @unheads(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x5x8xf32>, %v: tensor<2x4x5x8xf32>) -> (tensor<2x5x96xf32>) attributes {nn.kernel} {
    %qt = nn.transpose %q perm [0, 2, 1, 3] : tensor<2x4x5x8xf32> -> tensor<2x5x4x8xf32>
    %kt = nn.transpose %k perm [0, 2, 1, 3] : tensor<2x4x5x8xf32> -> tensor<2x5x4x8xf32>
    %vt = nn.transpose %v perm [0, 2, 1, 3] : tensor<2x4x5x8xf32> -> tensor<2x5x4x8xf32>
    %q3 = nn.reshape %qt : tensor<2x5x4x8xf32> -> tensor<2x5x32xf32>
    %k3 = nn.reshape %kt : tensor<2x5x4x8xf32> -> tensor<2x5x32xf32>
    %v3 = nn.reshape %vt : tensor<2x5x4x8xf32> -> tensor<2x5x32xf32>
    %qp = nn.pad %q3 with 0.0 : f32 low [0, 0, 0] high [0, 0, 64] interior [0, 0, 0] : tensor<2x5x32xf32> -> tensor<2x5x96xf32>
    %kp = nn.pad %k3 with 0.0 : f32 low [0, 0, 32] high [0, 0, 32] interior [0, 0, 0] : tensor<2x5x32xf32> -> tensor<2x5x96xf32>
    %vp = nn.pad %v3 with 0.0 : f32 low [0, 0, 64] high [0, 0, 0] interior [0, 0, 0] : tensor<2x5x32xf32> -> tensor<2x5x96xf32>
    %a = nn.add %qp, %kp : tensor<2x5x96xf32>
    %b = nn.add %a, %vp : tensor<2x5x96xf32>
    return %b : tensor<2x5x96xf32>
  }
  func.func private @rotate(%x: tensor<3x7x10xf32>) -> (tensor<3x7x10xf32>) attributes {nn.kernel} {
    %l = nn.slice %x starts [0, 0, 0] sizes [3, 7, 5] steps [1, 1, 1] : tensor<3x7x10xf32> -> tensor<3x7x5xf32>
    %r = nn.slice %x starts [0, 0, 5] sizes [3, 7, 5] steps [1, 1, 1] : tensor<3x7x10xf32> -> tensor<3x7x5xf32>
    %n = nn.neg %r : tensor<3x7x5xf32>
    %c = nn.concat %n, %l dim 2 : (tensor<3x7x5xf32>, tensor<3x7x5xf32>) -> tensor<3x7x10xf32>
    %y = nn.add %c, %x : tensor<3x7x10xf32>
    return %y : tensor<3x7x10xf32>
  }
  func.func private @flip(%x: tensor<6x19xf32>) -> (tensor<19x6xf32>, tensor<19x6xf32>) attributes {nn.kernel} {
    %t = nn.transpose %x perm [1, 0] : tensor<6x19xf32> -> tensor<19x6xf32>
    %f = nn.slice %t starts [18, 5] sizes [19, 6] steps [-1, -1] : tensor<19x6xf32> -> tensor<19x6xf32>
    return %t, %f : tensor<19x6xf32>, tensor<19x6xf32>
  }
  func.func private @dilate(%x: tensor<4x5xf32>) -> (tensor<10x11xf32>) attributes {nn.kernel} {
    %p = nn.pad %x with 2.5 : f32 low [0, 2] high [0, 0] interior [2, 1] : tensor<4x5xf32> -> tensor<10x11xf32>
    return %p : tensor<10x11xf32>
  }
  func.func private @misfit(%x: tensor<6x35xf32>) -> (tensor<10x21xf32>) attributes {nn.kernel} {
    %t = nn.transpose %x perm [1, 0] : tensor<6x35xf32> -> tensor<35x6xf32>
    %p = nn.reshape %t : tensor<35x6xf32> -> tensor<10x21xf32>
    return %p : tensor<10x21xf32>
  }
  func.func private @embed(%table: tensor<11x48xf32>, %ids: tensor<2x3xi64>, %pos: tensor<3x48xf32>) -> (tensor<2x3x48xf32>) attributes {nn.kernel} {
    %e = nn.gather %table, %ids : tensor<11x48xf32>, tensor<2x3xi64> -> tensor<2x3x48xf32>
    %p = nn.broadcast %pos dims [1, 2] : tensor<3x48xf32> -> tensor<2x3x48xf32>
    %s = nn.add %e, %p : tensor<2x3x48xf32>
    return %s : tensor<2x3x48xf32>
  }
  func.func private @pick(%table: tensor<11xf32>, %ids: tensor<40xi32>) -> (tensor<40xf32>) attributes {nn.kernel} {
    %e = nn.gather %table, %ids : tensor<11xf32>, tensor<40xi32> -> tensor<40xf32>
    return %e : tensor<40xf32>
  }
  func.func private @causal(%x: tensor<2x3x9x9xf32>) -> (tensor<2x3x9x9xf32>) attributes {nn.kernel} {
    %i = nn.iota 2 : tensor<2x3x9x9xi64>
    %j = nn.iota 3 : tensor<2x3x9x9xi64>
    %m = nn.compare le %j, %i : tensor<2x3x9x9xi64> -> tensor<2x3x9x9xi1>
    %ninf = nn.constant dense<0xFF800000> : tensor<2x3x9x9xf32>
    %s = nn.select %m, %x, %ninf : tensor<2x3x9x9xi1>, tensor<2x3x9x9xf32>
    %mx = nn.reduce max %s dims [3] : tensor<2x3x9x9xf32> -> tensor<2x3x9xf32>
    %mb = nn.broadcast %mx dims [0, 1, 2] : tensor<2x3x9xf32> -> tensor<2x3x9x9xf32>
    %d = nn.sub %s, %mb : tensor<2x3x9x9xf32>
    %e = nn.exp %d : tensor<2x3x9x9xf32>
    %t = nn.reduce sum %e dims [3] : tensor<2x3x9x9xf32> -> tensor<2x3x9xf32>
    %tb = nn.broadcast %t dims [0, 1, 2] : tensor<2x3x9xf32> -> tensor<2x3x9x9xf32>
    %p = nn.div %e, %tb : tensor<2x3x9x9xf32>
    return %p : tensor<2x3x9x9xf32>
  })");
}

// Whatever an index holds, what is read lies in the table: data does not lead a kernel out of its arguments.
TEST(Kernels, IndicesAreHeldInsideTheTable) {
  test::Context context;
  auto module = context.parse(R"(
  func.func private @rows(%table: tensor<4x48xf32>, %ids: tensor<6xi64>) -> tensor<6x48xf32> attributes {nn.kernel} {
    %e = nn.gather %table, %ids : tensor<4x48xf32>, tensor<6xi64> -> tensor<6x48xf32>
    return %e : tensor<6x48xf32>
  }
  func.func private @lanes(%table: tensor<4xf32>, %ids: tensor<40xi32>) -> tensor<40xf32> attributes {nn.kernel} {
    %e = nn.gather %table, %ids : tensor<4xf32>, tensor<40xi32> -> tensor<40xf32>
    return %e : tensor<40xf32>
  }
  func.func private @picked(%x: tensor<6x4xf32>, %ids: tensor<6xi64>) -> tensor<6xf32> attributes {nn.kernel} {
    %e = nn.take_along %x, %ids : tensor<6x4xf32>, tensor<6xi64> -> tensor<6xf32>
    return %e : tensor<6xf32>
  })");
  ASSERT_TRUE(module);
  auto held = [](int64_t i) { return i < 0 || i > 3 ? 3 : i; };
  const int64_t ids[6] = {0, 3, 4, -1, INT64_MAX, INT64_MIN};
  const int32_t few[6] = {0, 3, 4, -1, INT32_MAX, INT32_MIN};
  std::vector<int32_t> narrow;
  for (int i = 0; i < 40; ++i) narrow.push_back(few[i % 6]);
  std::vector<float> table(4 * 48), rows(6 * 48), lanes(40), picked(6);
  for (size_t i = 0; i < table.size(); ++i) table[i] = float(i);
  for (const char *target : {"native", "x86-64-v3"}) {
    test::Library library(SmallVector<func::FuncOp>(module->getOps<func::FuncOp>()), target);
    auto launch = [&](const char *name, const void *x, const void *at, float *result) {
      auto info = codegen::describe(module->lookupSymbol<func::FuncOp>(name));
      ASSERT_TRUE(succeeded(info) && library[info->symbol]);
      void *args[] = {const_cast<void *>(x), const_cast<void *>(at), result};
      library[info->symbol](args, 0, int64_t(info->extent));
    };
    launch("rows", table.data(), ids, rows.data());
    launch("lanes", table.data(), narrow.data(), lanes.data());
    launch("picked", table.data(), ids, picked.data());
    for (int i = 0; i < 6; ++i) {
      for (int c = 0; c < 48; ++c) EXPECT_EQ(rows[i * 48 + c], table[held(ids[i]) * 48 + c]) << target << ", index " << ids[i];
      EXPECT_EQ(picked[i], table[i * 4 + held(ids[i])]) << target << ", index " << ids[i];
    }
    for (int i = 0; i < 40; ++i) EXPECT_EQ(lanes[i], table[held(narrow[i])]) << target << ", index " << narrow[i];
  }
}

// The object says of each kernel how far it reaches.
TEST(Kernels, BoundsStandBesideTheCode) {
  test::Context context;
  auto module = context.parse(R"(
  func.func private @mixed(%x: tensor<6x5xf32>, %n: tensor<6xi64>) -> (tensor<6x5xf32>, tensor<6xi1>) attributes {nn.kernel} {
    %y = nn.mul %x, %x : tensor<6x5xf32>
    %c = nn.compare gt %n, %n : tensor<6xi64> -> tensor<6xi1>
    return %y, %c : tensor<6x5xf32>, tensor<6xi1>
  })");
  ASSERT_TRUE(module);
  func::FuncOp kernel = module->lookupSymbol<func::FuncOp>("mixed");
  auto info = codegen::describe(kernel);
  ASSERT_TRUE(succeeded(info));
  EXPECT_EQ(info->argBytes, (std::vector<uint64_t>{120, 48, 120, 6}));
  test::Library library(kernel);
  auto *bounds = reinterpret_cast<const uint64_t *>(library["mixed.bounds"]);
  ASSERT_TRUE(bounds);
  EXPECT_EQ(std::vector<uint64_t>(bounds, bounds + 7), (std::vector<uint64_t>{info->extent, 4, 120, 48, 120, 6, info->row}));
}

// A compiler that is stopped leaves nothing: no file ever has a name.
TEST(Kernels, AreLinkedWithoutFiles) {
  test::Context context;
  auto module = context.parse(R"(
  func.func private @twice(%x: tensor<6xf32>) -> tensor<6xf32> attributes {nn.kernel} {
    %y = nn.add %x, %x : tensor<6xf32>
    return %y : tensor<6xf32>
  })");
  ASSERT_TRUE(module);
  int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  for (const char *folder : {"/dev/shm", "/tmp", "."}) ASSERT_GE(inotify_add_watch(watch, folder, IN_CREATE), 0) << folder;
  test::Library library(module->lookupSymbol<func::FuncOp>("twice"));
  EXPECT_TRUE(library["twice"]);
  alignas(inotify_event) char events[4096];
  for (ssize_t n = read(watch, events, sizeof events), at = 0; at < n;) {
    auto *event = reinterpret_cast<inotify_event *>(events + at);
    EXPECT_EQ(std::string(event->name).find("kernels"), std::string::npos) << event->name;
    at += ssize_t(sizeof *event + event->len);
  }
  close(watch);
}

// More kernels than one group: the object says nothing of how many threads made it.
TEST(Kernels, ThreadsChangeNoByte) {
  test::Context context;
  std::string text;
  for (int i = 0; i < 24; ++i)
    text += replaced(kLayerNorm,
                     {{"@layer_norm", "@layer_norm_" + std::to_string(i)}, {"R", "3"}, {"C", std::to_string(30 + i)}, {"INV", "0.01"}});
  auto module = context.parse(text);
  ASSERT_TRUE(module);
  SmallVector<func::FuncOp> kernels(module->getOps<func::FuncOp>());
  std::string error;
  auto cpu = codegen::CpuTarget::fromName("native", error);
  ASSERT_TRUE(succeeded(cpu)) << error;
  auto made = [&](unsigned threads) { return std::move(*codegen::compileToSharedObject(kernels, *cpu, threads)); };
  auto alone = made(1);
  ASSERT_FALSE(alone.empty());
  for (unsigned threads : {2, 3, 64}) EXPECT_EQ(made(threads), alone) << threads;
  check(text); // all of them are there, and right
}

TEST(Kernels, ScatterAndScan) {
  check(R"(
  func.func private @scatter(%ids: tensor<3x5xi64>, %u: tensor<3x5x20xf32>) -> (tensor<150x20xf32>) attributes {nn.kernel} {
    %s = nn.scatter_add %ids, %u : tensor<3x5xi64>, tensor<3x5x20xf32> -> tensor<150x20xf32>
    return %s : tensor<150x20xf32>
  }
  func.func private @scatter_onto(%ids: tensor<15xi64>, %u: tensor<3x5x20xf32>, %w: tensor<150x20xf32>) -> (tensor<150x20xf32>) attributes {nn.kernel} {
    %v = nn.reshape %u : tensor<3x5x20xf32> -> tensor<15x20xf32>
    %s = nn.scatter_add %ids, %v : tensor<15xi64>, tensor<15x20xf32> -> tensor<150x20xf32>
    %a = nn.add %w, %s : tensor<150x20xf32>
    return %a : tensor<150x20xf32>
  }
  func.func private @scan(%x: tensor<4x13xi64>) -> (tensor<4x13xi64>) attributes {nn.kernel} {
    %one = nn.constant dense<1> : tensor<4x13xi64>
    %y = nn.sub %x, %one : tensor<4x13xi64>
    %s = nn.cumsum %y : tensor<4x13xi64> -> tensor<4x13xi64>
    return %s : tensor<4x13xi64>
  }
  func.func private @scan_back(%x: tensor<4x13xf32>) -> (tensor<4x13xf32>) attributes {nn.kernel} {
    %s = nn.cumsum %x {exclusive = true, reverse = true} : tensor<4x13xf32> -> tensor<4x13xf32>
    return %s : tensor<4x13xf32>
  })",
        {.limit = 150});
}

TEST(Kernels, Reductions) {
  check(R"(
  func.func private @loss(%x: tensor<300xf32>) -> (tensor<f32>) attributes {nn.kernel} {
    %s = nn.reduce sum %x dims [0] : tensor<300xf32> -> tensor<f32>
    return %s : tensor<f32>
  }
  func.func private @grouped(%x: tensor<2x3x4x5x16xf32>) -> (tensor<2x3x5x16xf32>) attributes {nn.kernel} {
    %s = nn.reduce sum %x dims [2] : tensor<2x3x4x5x16xf32> -> tensor<2x3x5x16xf32>
    return %s : tensor<2x3x5x16xf32>
  }
  func.func private @mixed(%x: tensor<3x4x5x6xf32>) -> (tensor<4x6xf32>) attributes {nn.kernel} {
    %s = nn.reduce max %x dims [0, 2] : tensor<3x4x5x6xf32> -> tensor<4x6xf32>
    return %s : tensor<4x6xf32>
  }
  func.func private @booleans(%x: tensor<6x33xi1>, %k: tensor<6x33xi64>) -> (tensor<6xi1>, tensor<6xi64>, tensor<6x33xi1>) attributes {nn.kernel} {
    %s = nn.reduce max %x dims [1] : tensor<6x33xi1> -> tensor<6xi1>
    %m = nn.reduce min %k dims [1] : tensor<6x33xi64> -> tensor<6xi64>
    %n = nn.not %x : tensor<6x33xi1>
    return %s, %m, %n : tensor<6xi1>, tensor<6xi64>, tensor<6x33xi1>
  }
  func.func private @squares(%g: tensor<9x100xf32>, %p: tensor<9x100xf32>, %h: tensor<16xf32>) -> (tensor<9x100xf32>, tensor<9xf32>) attributes {nn.kernel} {
    %lr = nn.slice %h starts [0] sizes [1] steps [1] : tensor<16xf32> -> tensor<1xf32>
    %lr2 = nn.reshape %lr : tensor<1xf32> -> tensor<1x1xf32>
    %lrb = nn.broadcast %lr2 dims [0, 1] : tensor<1x1xf32> -> tensor<9x100xf32>
    %d = nn.mul %g, %lrb : tensor<9x100xf32>
    %q = nn.sub %p, %d : tensor<9x100xf32>
    %g2 = nn.mul %g, %g : tensor<9x100xf32>
    %s = nn.reduce sum %g2 dims [1] : tensor<9x100xf32> -> tensor<9xf32>
    return %q, %s : tensor<9x100xf32>, tensor<9xf32>
  })");
}

TEST(Kernels, Random) {
  check(R"(
  func.func private @dropout(%x: tensor<4x6x50xf32>, %seed: tensor<2xi64>) -> (tensor<4x6x50xf32>) attributes {nn.kernel} {
    %u = nn.random %seed {id = 5 : i64, samples = 4 : i64} : tensor<2xi64> -> tensor<4x6x50xf32>
    %rate = nn.constant dense<0.25> : tensor<4x6x50xf32>
    %keep = nn.compare ge %u, %rate : tensor<4x6x50xf32> -> tensor<4x6x50xi1>
    %zero = nn.constant dense<0.0> : tensor<4x6x50xf32>
    %y = nn.select %keep, %x, %zero : tensor<4x6x50xi1>, tensor<4x6x50xf32>
    return %y : tensor<4x6x50xf32>
  })",
        {.limit = int64_t(1) << 40});
}

// bf16 in memory, f32 in registers: every half is widened exactly, every f32 rounded to nearest even once, NaN stays NaN. On processors
// without the type too.
TEST(Kernels, StoresRoundToNearestEven) {
  constexpr int64_t n = 6 << 16; // of every upper half some lower ones
  std::vector<uint32_t> bits;
  for (uint32_t high = 0; high < 1 << 16; ++high)
    for (uint32_t low : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) bits.push_back(high << 16 | low);
  std::string text = replaced(R"(
    func.func private @narrow(%x: tensor<Nxf32>) -> tensor<Nxbf16> attributes {nn.kernel} {
      %y = nn.cast %x : tensor<Nxf32> -> tensor<Nxbf16>
      return %y : tensor<Nxbf16>
    }
    func.func private @widen(%x: tensor<Nxbf16>) -> tensor<Nxf32> attributes {nn.kernel} {
      %y = nn.cast %x : tensor<Nxbf16> -> tensor<Nxf32>
      return %y : tensor<Nxf32>
    })",
                              {{"Nx", std::to_string(n) + "x"}});
  test::Context context;
  auto module = context.parse(text);
  ASSERT_TRUE(module);
  SmallVector<func::FuncOp> kernels(module->getOps<func::FuncOp>());
  for (const char *target : {"native", "x86-64-v3"}) {
    SCOPED_TRACE(target);
    test::Library library(kernels, target);
    std::vector<uint16_t> halves(n);
    std::vector<uint32_t> wide(n);
    for (func::FuncOp kernel : kernels) {
      auto info = codegen::describe(kernel);
      bool narrows = kernel.getSymName() == "narrow";
      void *args[] = {narrows ? (void *)bits.data() : halves.data(), narrows ? (void *)halves.data() : wide.data()};
      ASSERT_TRUE(succeeded(info) && library[info->symbol]);
      library[info->symbol](args, 0, int64_t(info->extent));
    }
    for (int64_t i = 0; i < n; ++i) {
      bool nan = (bits[i] & 0x7fffffff) > 0x7f800000;
      uint32_t below = bits[i] >> 16, rest = bits[i] & 0xffff;
      uint32_t expected = below + (rest > 0x8000 || (rest == 0x8000 && below % 2));
      ASSERT_TRUE(nan ? (halves[i] & 0x7fff) > 0x7f80 : halves[i] == expected) << std::hex << bits[i] << " became " << halves[i];
      ASSERT_EQ(wide[i], uint32_t(halves[i]) << 16);
    }
  }
}

// Kernels with arguments of bf16, and of both types: rows with ends that fill no vector, columns, gathers, results in place of operands.
TEST(Kernels, HalfArguments) {
  check(R"(
  func.func private @rows(%x: tensor<5x77xbf16>, %b: tensor<77xf32>) -> (tensor<5x77xbf16>, tensor<5xf32>) attributes {nn.kernel} {
    %w = nn.cast %x : tensor<5x77xbf16> -> tensor<5x77xf32>
    %c = nn.broadcast %b dims [1] : tensor<77xf32> -> tensor<5x77xf32>
    %s = nn.add %w, %c : tensor<5x77xf32>
    %m = nn.reduce sum %s dims [1] : tensor<5x77xf32> -> tensor<5xf32>
    %r = nn.broadcast %m dims [0] : tensor<5xf32> -> tensor<5x77xf32>
    %d = nn.sub %s, %r : tensor<5x77xf32>
    %y = nn.cast %d : tensor<5x77xf32> -> tensor<5x77xbf16>
    return %y, %m : tensor<5x77xbf16>, tensor<5xf32>
  }
  func.func private @columns(%x: tensor<90x77xbf16>) -> tensor<77xf32> attributes {nn.kernel} {
    %w = nn.cast %x : tensor<90x77xbf16> -> tensor<90x77xf32>
    %s = nn.reduce sum %w dims [0] : tensor<90x77xf32> -> tensor<77xf32>
    return %s : tensor<77xf32>
  }
  func.func private @moved(%x: tensor<6x10x33xbf16>) -> tensor<33x6x10xbf16> attributes {nn.kernel} {
    %w = nn.cast %x : tensor<6x10x33xbf16> -> tensor<6x10x33xf32>
    %t = nn.transpose %w perm [2, 0, 1] : tensor<6x10x33xf32> -> tensor<33x6x10xf32>
    %y = nn.cast %t : tensor<33x6x10xf32> -> tensor<33x6x10xbf16>
    return %y : tensor<33x6x10xbf16>
  }
  func.func private @table(%x: tensor<9x40xbf16>, %i: tensor<12xi64>) -> tensor<12x40xbf16> attributes {nn.kernel} {
    %w = nn.cast %x : tensor<9x40xbf16> -> tensor<9x40xf32>
    %g = nn.gather %w, %i : tensor<9x40xf32>, tensor<12xi64> -> tensor<12x40xf32>
    %e = nn.exp %g : tensor<12x40xf32>
    %y = nn.cast %e : tensor<12x40xf32> -> tensor<12x40xbf16>
    return %y : tensor<12x40xbf16>
  })",
        {.limit = 9, .tolerance = 5e-3});
}

// Elementary functions against the C library in double precision, in units in the last place, and at the ends.
TEST(Kernels, Elementary) {
  struct Case {
    const char *name;
    double (*exact)(double);
    double low, high, ulps;
  };
  const Case cases[] = {{"exp", std::exp, -104, 89, 1},
                        {"log", std::log, 1e-30, 1e30, 1.5},
                        {"log1p", std::log1p, 1e-30, 1e30, 3},
                        {"tanh", std::tanh, -10, 10, 3},
                        {"erf", std::erf, -5, 5, 2},
                        {"asinh", std::asinh, -20, 20, 4},
                        {"atan", std::atan, -20, 20, 4},
                        {"sqrt", std::sqrt, 0, 1e30, 0.5},
                        {"sin", std::sin, -3.1, 3.1, 3},
                        {"cos", std::cos, -1.5, 1.5, 3},
                        {"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }, -80, 80, 3},
                        {"rsqrt", [](double x) { return 1 / std::sqrt(x); }, 1e-30, 1e30, 1.5}};
  constexpr int64_t n = 100003;
  std::string text;
  for (const Case &c : cases)
    text +=
        replaced("func.func private @F_(%x: tensor<Nxf32>) -> tensor<Nxf32> attributes {nn.kernel} {\n %y = nn.F %x : tensor<Nxf32>\n "
                 "return %y : tensor<Nxf32>\n}\n",
                 {{"@F_", std::string("@") + c.name + "_"}, {"nn.F ", std::string("nn.") + c.name + " "}, {"Nx", std::to_string(n) + "x"}});
  test::Context context;
  auto module = context.parse(text);
  ASSERT_TRUE(module);
  SmallVector<func::FuncOp> kernels(module->getOps<func::FuncOp>());
  for (const char *target : {"native", "x86-64-v3"}) {
    test::Library library(kernels, target);
    for (const Case &c : cases) {
      SCOPED_TRACE(std::string(c.name) + " " + target);
      std::vector<float> x(n), y(n);
      bool logarithmic = c.low > 0;
      for (int64_t i = 0; i < n; ++i) {
        double t = double(i) / n;
        x[i] = float(logarithmic ? c.low * std::pow(c.high / c.low, t) : c.low + (c.high - c.low) * t);
      }
      const float infinity = INFINITY;
      std::vector<float> ends{infinity, -infinity, NAN, 0.0f, -0.0f, 1e-40f, 1.0f};
      std::copy(ends.begin(), ends.end(), x.begin());
      void *args[] = {x.data(), y.data()};
      auto function = library[std::string(c.name) + "_"];
      ASSERT_TRUE(function);
      function(args, 0, (n + 2047) / 2048);
      bool periodic = std::string(c.name) == "sin" || std::string(c.name) == "cos";
      for (int64_t i = 0; i < n; ++i) {
        double exact = c.exact(x[i]);
        if (periodic && !std::isfinite(x[i])) continue; // no number comes of it, whichever
        if (std::isnan(exact)) {
          EXPECT_TRUE(std::isnan(y[i])) << "at " << x[i];
          continue;
        }
        float rounded = float(exact);
        if (std::string(c.name) == "exp" && std::abs(exact) < 0x1p-125) rounded = 0; // as math.cpp says
        if (std::isinf(rounded) || rounded == 0) {
          EXPECT_EQ(y[i], rounded) << "at " << x[i];
          continue;
        }
        double unit = std::abs(double(std::nextafter(rounded, infinity)) - rounded);
        ASSERT_LE(std::abs(y[i] - exact), c.ulps * unit + (periodic ? 1e-8 : 0)) << "at " << x[i] << ": " << y[i] << ", expected " << exact;
      }
      for (int64_t i = 0; periodic && i < n; ++i)
        x[i] = float((i % 2 ? -1e4 : 1e4) * std::pow(1e5, double(i) / n)); // to seconds since 1970
      if (periodic) function(args, 0, (n + 2047) / 2048);
      for (int64_t i = 0; periodic && i < n; ++i) ASSERT_NEAR(y[i], c.exact(x[i]), 2e-5) << "at " << x[i];
    }
  }
}

// Down the columns, and inside a kernel of another shape: adding 100,000 times one number after another is off by hundreds of units.
TEST(Kernels, LongSumsKeepTheirDigits) {
  constexpr int64_t kTerms = 100000;
  test::Context context;
  auto module = context.parse(R"(
  func.func private @columns(%x: tensor<100000x4xf32>) -> tensor<4xf32> attributes {nn.kernel} {
    %s = nn.reduce sum %x dims [0] : tensor<100000x4xf32> -> tensor<4xf32>
    return %s : tensor<4xf32>
  }
  func.func private @within(%x: tensor<100000x4xf32>, %y: tensor<3x4xf32>) -> tensor<3x4xf32> attributes {nn.kernel} {
    %s = nn.reduce sum %x dims [0] : tensor<100000x4xf32> -> tensor<4xf32>
    %b = nn.broadcast %s dims [1] : tensor<4xf32> -> tensor<3x4xf32>
    %r = nn.add %b, %y : tensor<3x4xf32>
    return %r : tensor<3x4xf32>
  })");
  ASSERT_TRUE(module);
  std::vector<float> x(kTerms * 4), y(12, 0.0f), columns(4), within(12);
  std::vector<double> exact(4, 0.0);
  for (int64_t i = 0; i < kTerms * 4; ++i) exact[i % 4] += x[i] = 0.1f + 0.01f * float(i % 4);
  for (const char *target : {"native", "x86-64-v3"}) {
    test::Library library(SmallVector<func::FuncOp>(module->getOps<func::FuncOp>()), target);
    void *columnsArgs[] = {x.data(), columns.data()}, *withinArgs[] = {x.data(), y.data(), within.data()};
    for (auto [name, args] : {std::pair<const char *, void **>("columns", columnsArgs), {"within", withinArgs}}) {
      func::FuncOp kernel = module->lookupSymbol<func::FuncOp>(name);
      auto info = codegen::describe(kernel);
      ASSERT_TRUE(succeeded(info) && library[info->symbol]);
      library[info->symbol](args, 0, info->extent);
    }
    for (int i = 0; i < 12; ++i) {
      EXPECT_NEAR(columns[i % 4] / exact[i % 4], 1.0, 4e-6) << target;
      EXPECT_NEAR(within[i] / exact[i % 4], 1.0, 4e-6) << target;
    }
  }
}
