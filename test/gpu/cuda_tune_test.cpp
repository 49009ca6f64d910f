// zerorun --tune on the stand-in for cuBLASLt, whose algorithms take known times: the table that it writes, and what runs make of it.
#include "runtime/device/cuda/product_table.h"
#include "test/gpu/cuda_zerorun.h"

using namespace zero;
using namespace zero::runtime;
using namespace zero::test;

namespace {

// Words of the stand-in's algorithms: what they were chosen for, and how they multiply (test/gpu/fake/blas_lt.cpp).
constexpr size_t kRows = 1, kWay = 6;
constexpr uint64_t kHalves = 3, kInAnyOrder = 5;

class CudaTune : public CudaZerorun {
protected:
  void SetUp() override {
    CudaZerorun::SetUp();
    ::setenv("ZERO_FAKE_PRODUCT_MICROSECONDS", "1000000", 1);
  }
  void TearDown() override {
    for (const char *name : {"ZERO_FAKE_PRODUCT_MICROSECONDS", "ZERO_FAKE_BLAS_VERSION", "ZERO_FAKE_FAIL"}) ::unsetenv(name);
  }

  std::string said() { return folder.read("out.txt"); }
  void expectRefused(const std::string &flags, const std::string &why, const std::string &plan = "cuda.plan", int world = 1) {
    Outcome outcome = run(plan, flags, world);
    EXPECT_EQ(outcome.status, 1);
    EXPECT_NE(outcome.error.find(why), std::string::npos) << outcome.error;
    if (world == 1) { // mpirun has something to say as well
      EXPECT_TRUE(outcome.error.starts_with("zerorun: ") && std::ranges::count(outcome.error, '\n') == 1) << outcome.error;
    }
  }
  cuda::ProductTable table() { return cuda::parseTable(folder.read("cuda.plan.tune"), "the table"); }
  void write(const cuda::ProductTable &table) { folder.write("cuda.plan.tune", cuda::textOf(table)); }

  const std::string train = "--data data.safetensors --steps 3 --lr 0.05 ";
};

TEST_F(CudaTune, TheFastestThatKeepsItsBitsIsTaken) {
  succeed("cuda.plan", "--tune");
  EXPECT_NE(said().find("measuring on "), std::string::npos) << said();
  EXPECT_NE(said().find("(3 tried, 1 would not run, 1 gave other bits the second time)"), std::string::npos) << said();
  cuda::ProductTable written = table();
  ASSERT_EQ(written.size(), 1u);
  ASSERT_EQ(written[0].products.size(), 2u); // forward, and its gradient
  for (const auto &[key, product] : written[0].products) {
    EXPECT_EQ(product.algorithm.data[kWay], kHalves) << key;
    ASSERT_EQ(product.tried.size(), 3u);
    EXPECT_EQ(product.heuristic, product.tried[0]);
    EXPECT_EQ(product.microseconds, *std::ranges::min_element(product.tried));
    EXPECT_GT(product.microseconds, 999000);
  }
  ::unsetenv("ZERO_FAKE_PRODUCT_MICROSECONDS");
  succeed("cuda.plan", train);
  EXPECT_NE(said().find("matrix products take the algorithms of 'cuda.plan.tune', measured on "), std::string::npos) << said();
  ::setenv("ZERO_FAKE_FAIL", "cublasLtMatmulAlgoCheck:1", 1); // what a run asks of an algorithm that it has read
  expectRefused(train, "'cuda.plan.tune' has an algorithm for a product of 4 x 1 x 4 in F32 that cannot be taken: an internal error");
  ::setenv("ZERO_FAKE_FAIL", "cublasLtMatmulAlgoConfigGetAttribute:1", 1);
  expectRefused(train, "that cannot be taken: an internal error");
}

TEST_F(CudaTune, WhatWasMeasuredStaysAndOtherMachinesJoinIt) {
  ::unsetenv("ZERO_FAKE_PRODUCT_MICROSECONDS");
  succeed("cuda.plan", "--tune");
  std::string first = folder.read("cuda.plan.tune");
  succeed("cuda.plan", "--tune");
  EXPECT_EQ(folder.read("cuda.plan.tune"), first);
  EXPECT_NE(said().find("0 products measured, 2 were in 'cuda.plan.tune' already"), std::string::npos) << said();
  ::setenv("ZERO_FAKE_BLAS_VERSION", "120000", 1);
  succeed("cuda.plan", train);
  EXPECT_NE(said().find("'cuda.plan.tune' was measured on "), std::string::npos) << said();
  EXPECT_NE(said().find("cuBLASLt 120000: matrix products take the first that cuBLASLt's heuristic names; zerorun --tune measures here"),
            std::string::npos)
      << said();
  succeed("cuda.plan", "--tune");
  ASSERT_EQ(table().size(), 2u);
  EXPECT_EQ(table()[1].library, 120000u);
  cuda::ProductTable less = table();
  for (auto &device : less) device.products.erase(device.products.begin());
  write(less); // as if it were another plan's
  succeed("cuda.plan", train);
  EXPECT_NE(said().find("; 1 of 2 are not in it and take the first"), std::string::npos) << said();
}

TEST_F(CudaTune, AChangedTableIsSaidWhereARunGoesOn) {
  ::unsetenv("ZERO_FAKE_PRODUCT_MICROSECONDS");
  succeed("cuda.plan", train + "--checkpoint c");
  succeed("cuda.plan", "--tune");
  succeed("cuda.plan", "--data data.safetensors --steps 4 --lr 0.05 --resume c");
  EXPECT_NE(said().find("the table of algorithms beside the plan is a file with checksum "), std::string::npos) << said();
  EXPECT_NE(said().find(", where the checkpoint's run had no file"), std::string::npos) << said();
}

TEST_F(CudaTune, RanksReadTheSameTable) {
  forCuda("two.plan", "cuda.plan", true);
  ::unsetenv("ZERO_FAKE_PRODUCT_MICROSECONDS");
  succeed("cuda.plan", "--tune"); // of one rank, whatever the plan's world
  succeed("cuda.plan", train, 2);
  EXPECT_NE(said().find("matrix products take the algorithms of 'cuda.plan.tune'"), std::string::npos) << said();
  expectRefused("--tune", "--tune measures one GPU, and this run has 2 ranks; start one process, once on a machine of each kind",
                "cuda.plan", 2);
}

TEST_F(CudaTune, WhatCannotBeTakenIsRefused) {
  ::unsetenv("ZERO_FAKE_PRODUCT_MICROSECONDS");
  expectRefused("--tune", "'one.plan' was compiled for cpu, whose products leave nothing to be measured", "one.plan");
  expectRefused("--tune " + train, "--tune measures and trains nothing; run it without --data");
  succeed("cuda.plan", "--tune");
  std::string whole = folder.read("cuda.plan.tune");
  for (size_t at : {size_t(1), whole.size() / 2, whole.size() - 4}) {
    std::string damaged = whole;
    damaged[at] = damaged[at] == '5' ? '6' : '5';
    folder.write("cuda.plan.tune", damaged);
    for (const std::string &flags : {train, std::string("--tune")})
      expectRefused(flags, "'cuda.plan.tune' is no table of algorithms for products, or is damaged");
  }
  folder.write("cuda.plan.tune", whole.substr(0, whole.size() / 2));
  expectRefused(train, "is damaged: it is not what `zerorun --tune` has written; delete it");
  folder.write("cuda.plan.tune", "");
  expectRefused(train, "'cuda.plan.tune' is empty");
  // Whole, but not what this library would say: another product's algorithm, and one that adds in any order.
  folder.write("cuda.plan.tune", whole);
  cuda::ProductTable wrong = table();
  for (auto &[key, product] : wrong[0].products) ++product.algorithm.data[kRows];
  write(wrong);
  expectRefused(train, "that cannot be taken: it has no algorithm for this (CUBLAS_STATUS_NOT_SUPPORTED)");
  folder.write("cuda.plan.tune", whole);
  wrong = table();
  for (auto &[key, product] : wrong[0].products) product.algorithm.data[kWay] = kInAnyOrder;
  write(wrong);
  expectRefused(train, "it adds parts of a sum in any order, and would give other bits each time; delete it");
}

TEST_F(CudaTune, AFailureLeavesNoTable) {
  for (const char *fault : {"cublasLtMatmul:1:later", "cublasLtMatmulAlgoGetHeuristic:2", "cuEventElapsedTime:1", "cuMemAlloc_v2:2"}) {
    ::setenv("ZERO_FAKE_FAIL", fault, 1);
    Outcome outcome = run("cuda.plan", "--tune");
    EXPECT_EQ(outcome.status, 1) << fault;
    EXPECT_EQ(std::ranges::count(outcome.error, '\n'), 1) << outcome.error;
    EXPECT_FALSE(std::filesystem::exists(folder / "cuda.plan.tune") || std::filesystem::exists(folder / "cuda.plan.tune.partial")) << fault;
  }
}

TEST(ProductTable, ComesBackAsItWasWritten) {
  cuda::MeasuredProduct product{{{1, 2, 3, UINT64_MAX, 5, 6, 7, 8}}, 12.5, 20.25, {20.25, 12.5}};
  cuda::ProductTable table{{"A", 1, {{"F32 1 x 2 x 3", product}}}, {"B \"quoted\"", 130000, {}}};
  std::string text = cuda::textOf(table);
  cuda::ProductTable again = cuda::parseTable(text, "t");
  EXPECT_EQ(cuda::textOf(again), text);
  ASSERT_EQ(again.size(), 2u);
  EXPECT_EQ(again[0].products.at("F32 1 x 2 x 3").algorithm.data[3], UINT64_MAX);
  EXPECT_EQ(again[1].device, "B \"quoted\"");
  EXPECT_NE(cuda::findDevice(again, "A", 1), nullptr);
  EXPECT_EQ(cuda::findDevice(again, "A", 2), nullptr);
}

// Where a place is by chance does not show in a key, and what its bytes are multiples of at least does.
TEST(ProductTable, KeysSayWhatAnAlgorithmDependsOn) {
  MatMulOf<cuda::Pointer> product{{8, 16, 32, 1, true, false, 8, 16, 16, 0, 0, 0, false, plan::BF16, plan::F32}, 4096, 4096 + 64, 4096 + 4};
  EXPECT_EQ(cuda::keyOf(product), "BF16 8 x 16 x 32 A^T to F32, ld 8 16 16, aligned 64 64 4");
  product.a += 64, product.b += 64, product.c += 128;
  EXPECT_EQ(cuda::keyOf(product), "BF16 8 x 16 x 32 A^T to F32, ld 8 16 16, aligned 64 64 4");
  product.batch = 3, product.strideA = 257, product.strideC = 128, product.accumulate = true;
  EXPECT_EQ(cuda::keyOf(product), "BF16 8 x 16 x 32 A^T to F32 added, 3 with strides 257 0 128, ld 8 16 16, aligned 2 64 4");
  product.batch = 1, product.accumulate = false, product.epilogue = plan::MatMul::BIAS, product.bias = 4096 + 16;
  EXPECT_EQ(cuda::keyOf(product), "BF16 8 x 16 x 32 A^T to F32 and bias, ld 8 16 16, aligned 64 64 4 and 16");
  product.epilogue = plan::MatMul::GELU, product.cDtype = plan::BF16, product.aux = 4096;
  EXPECT_EQ(cuda::keyOf(product), "BF16 8 x 16 x 32 A^T to BF16 and bias and GELU, ld 8 16 16, aligned 64 64 4 and 16 and 64");
}

} // namespace
