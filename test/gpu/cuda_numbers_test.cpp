// Products by cuBLASLt and sums by NCCL and by our own kernel, beside the cpu's.
#include "runtime/comm/ordered_sum.h"
#include "runtime/device/cuda/cuda_program.h"
#include "runtime/device/cuda/tuner.h"
#include "runtime/engine/resolve.h"
#include "runtime/plan/epilogue.h"
#include "test/gpu/cuda_session.h"
#include <bit>
#include <cmath>

using namespace zero;
using namespace zero::plan;
using namespace zero::runtime;
using namespace zero::test;

namespace {

// ----------------------------------------------------------------------------------------------------- products

struct Form {
  int64_t m, n, k, batch, pad;
};

// Of every form, beside the cpu's.
void compareProducts(DType type, DType resultType) {
  uint64_t size = type == F32 ? 4 : 2, sizeC = resultType == F32 ? 4 : 2;
  for (Form form : {Form{70, 33, 45, 1, 0}, {1, 29, 100, 1, 3}, {57, 1, 64, 1, 1}, {20, 15, 10, 3, 5}, {9, 17, 8, 20, 0}})
    for (int variant = 0; variant < 8; ++variant) {
      bool transA = variant & 1, transB = variant & 2, accumulate = variant & 4;
      int64_t rowsA = transA ? form.k : form.m, rowsB = transB ? form.n : form.k;
      int64_t lda = (transA ? form.m : form.k) + form.pad, ldb = (transB ? form.k : form.n) + form.pad, ldc = form.n + form.pad;
      auto u = [](int64_t value) { return static_cast<uint64_t>(value); };
      auto results = [&](bool cuda) {
        PlanBuilder b;
        auto matrices = [&](const char *name, int64_t rows, int64_t columns, int64_t ld, uint64_t size) { // up to the last element
          return b.bytes(name, u((form.batch * rows - 1) * ld + columns) * size);
        };
        Ref a = matrices("a", rowsA, lda - form.pad, lda, size), second = matrices("b", rowsB, ldb - form.pad, ldb, size),
            c = matrices("c", form.m, form.n, ldc, sizeC);
        std::vector<Ref> reads{a, second};
        if (accumulate) reads.push_back(c);
        MatMul *product = b.step("product", reads, {c}).mutable_matmul();
        product->set_dtype(type), product->set_c_dtype(resultType), product->set_trans_a(transA), product->set_trans_b(transB);
        product->set_m(u(form.m)), product->set_n(u(form.n)), product->set_k(u(form.k)), product->set_batch(u(form.batch));
        product->set_lda(u(lda)), product->set_ldb(u(ldb)), product->set_ldc(u(ldc)), product->set_accumulate(accumulate);
        product->set_stride_a(u(rowsA * lda)), product->set_stride_b(u(rowsB * ldb)), product->set_stride_c(u(form.m * ldc));
        Session run(b, cuda);
        unsigned seed = 1;
        for (const auto &[ref, of] : {std::pair(a, type), {second, type}, {c, resultType}}) {
          std::vector<float> values = randomFloats(ref.bytes() / (of == F32 ? 4 : 2), seed++);
          if (of == F32) {
            run.write(ref, values);
            continue;
          }
          std::vector<uint16_t> halves; // cut, so that nothing has to be known of rounding
          for (float value : values) halves.push_back(static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16));
          if (of == F16)
            for (uint16_t &half : halves) half = static_cast<uint16_t>(0x3000 | (half & 0x8fff)); // small numbers, whatever they are
          run.engine->write(ref, 0, std::as_bytes(std::span(halves)));
        }
        run.engine->run(0);
        if (resultType == F32) return run.read(c);
        std::vector<uint16_t> halves(c.bytes() / 2);
        run.engine->read(c, 0, std::as_writable_bytes(std::span(halves)));
        std::vector<float> values; // in order of size, one apart where they are neighbours
        for (uint16_t half : halves) values.push_back(static_cast<float>(half & 0x8000 ? -(half & 0x7fff) : half));
        return values;
      };
      std::vector<float> cpu = results(false), gpu = results(true);
      ASSERT_EQ(cpu.size(), gpu.size());
      double worst = 0;
      for (size_t i = 0; i < cpu.size(); ++i) worst = std::max(worst, std::abs(double(cpu[i]) - gpu[i]));
      EXPECT_LE(worst, resultType == F32 ? 1e-4 * std::sqrt(double(form.k)) : 16)
          << form.m << " x " << form.n << " x " << form.k << ", " << variant;
    }
}

TEST(CudaProducts, F32) { compareProducts(F32, F32); }
TEST(CudaProducts, Bf16) { compareProducts(BF16, BF16), compareProducts(BF16, F32); }
TEST(CudaProducts, F16) { compareProducts(F16, F16), compareProducts(F16, F32); }

// C [13 x 16] of one product with an epilogue, what it reads beside A and B, and aux.
struct WithEpilogue {
  static constexpr uint64_t m = 13, n = 16, k = 37;
  explicit WithEpilogue(MatMul::Epilogue epilogue) {
    EpilogueForm form = formOf(epilogue);
    std::vector<Ref> reads{a, second}, writes{c};
    if (form.reads()) reads.push_back(form.readsBias ? bias : aux);
    if (form.writesAux) writes.push_back(aux);
    MatMul *product = b.step("product", reads, writes).mutable_matmul();
    product->set_dtype(F32), product->set_c_dtype(F32), product->set_epilogue(epilogue), product->set_batch(1);
    product->set_m(m), product->set_n(n), product->set_k(k), product->set_lda(k), product->set_ldb(n), product->set_ldc(n);
  }
  PlanBuilder b;
  Ref a = b.floats("a", m *k), second = b.floats("b", k *n), c = b.floats("c", m *n), bias = b.floats("bias", n),
      aux = b.floats("aux", m *n);
};

// A bias is added to each row, GELU taken of that, which aux keeps, and the gradient is multiplied by GELU's slope at aux.
TEST(CudaProducts, BiasAndGelu) {
  constexpr uint64_t m = WithEpilogue::m, n = WithEpilogue::n, k = WithEpilogue::k;
  std::vector<float> first = randomFloats(m * k, 1), second = randomFloats(k * n, 2), bias = randomFloats(n, 3),
                     aux = randomFloats(m * n, 4);
  auto gelu = [](double x) { return x / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); };
  auto slope = [&](double x) { return (gelu(x + 1e-5) - gelu(x - 1e-5)) / 2e-5; };
  for (MatMul::Epilogue epilogue : {MatMul::BIAS, MatMul::GELU, MatMul::GELU_GRADIENT}) {
    WithEpilogue plan(epilogue);
    Session session(plan.b, true);
    session.write(plan.a, first), session.write(plan.second, second), session.write(plan.bias, bias), session.write(plan.aux, aux);
    session.engine->run(0);
    std::vector<float> c = session.read(plan.c), after = session.read(plan.aux);
    for (uint64_t i = 0; i < m * n; ++i) {
      double sum = 0;
      for (uint64_t l = 0; l < k; ++l) sum += double(first[i / n * k + l]) * double(second[l * n + i % n]);
      if (epilogue == MatMul::GELU_GRADIENT)
        sum *= slope(double(aux[i]));
      else
        sum += double(bias[i % n]);
      bool isGelu = epilogue == MatMul::GELU;
      EXPECT_NEAR(c[i], isGelu ? gelu(sum) : sum, 1e-4) << epilogue << ", " << i;
      EXPECT_NEAR(after[i], isGelu ? sum : double(aux[i]), 1e-4) << epilogue << ", " << i;
    }
  }
}

TEST(CudaProducts, ALibraryWithoutAnEpilogueIsASentence) {
  WithEpilogue plan(MatMul::GELU);
  ::setenv("ZERO_FAKE_NO_EPILOGUES", "1", 1);
  std::string refusal = refusalOf([&] { Session session(plan.b, true); });
  ::unsetenv("ZERO_FAKE_NO_EPILOGUES");
  EXPECT_NE(refusal.find("a product of 13 x 16 x 37 in F32 and bias and GELU: cuBLASLt has no algorithm for it that sums in one order; "
                         "compile the plan with `zeroc --epilogues none`"),
            std::string::npos)
      << refusal;
}

TEST(CudaProducts, AreMeasuredWithTheirEpilogues) {
  WithEpilogue plan(MatMul::GELU);
  DeviceProgram program = resolve(plan.b.plan, plan.b.program(), [](const Ref &ref) { return Address{0, 64 * ref.buffer()}; });
  cuda::ProductTable table =
      cuda::parseTable(cuda::tuneProducts(std::span(&program, 1), {"table", ""}, [](const std::string &) {}), "table");
  ASSERT_EQ(table.at(0).products.size(), 1u);
  EXPECT_EQ(table[0].products.begin()->first, "F32 13 x 16 x 37 to F32 and bias and GELU, ld 37 16 16, aligned 64 64 64 and 64 and 64");
}

TEST(CudaProducts, TheirRoomIsSaid) {
  RoundsPlan b(1);
  Session run(b, true);
  EXPECT_EQ(run.device->notes(), std::vector<std::string>{"matrix products have 64 MiB of GPU memory to work in beside the plan's arenas"});
}

// --------------------------------------------------------------------------------------------------------- sums

// The text of our own kernels, run by the fake's machine, adds to the bits of the cpu's sums; also over the own part.
template <typename T> void compareSums(DType type) {
  auto device = makeCudaDevice({}); // whose context is current
  const cuda::Driver &driver = cuda::Driver::get();
  cuda::OrderedSum sums;
  cuda::OwnedStream stream = cuda::makeStream();
  for (uint64_t count : {1, 300})
    for (int world : {1, 3, 5})
      for (int own = 0; own < world; ++own) {
        uint64_t all = count * static_cast<uint64_t>(world), bytes = all * sizeof(T);
        std::vector<float> values = randomFloats(all, static_cast<unsigned>(own)), expected(count);
        std::vector<T> parts(all), mine(count);
        for (size_t i = 0; i < all; ++i) {
          if constexpr (sizeof(T) == 4)
            parts[i] = values[i];
          else
            parts[i] = static_cast<T>(std::bit_cast<uint32_t>(values[i]) >> 16);
        }
        std::swap_ranges(mine.begin(), mine.end(), parts.begin() + own * static_cast<long>(count)); // which leaves zeros there
        orderedSum(parts.data(), count, world, own, mine.data(), expected.data(), count);
        uint64_t given = bytes + count * sizeof(T), aligned = (given + 3) / 4 * 4, room = aligned + count * sizeof(float);
        cuda::PinnedMemory host = cuda::allocatePinned(room, "a test");
        auto *at = static_cast<std::byte *>(host.get());
        std::memcpy(at, parts.data(), bytes), std::memcpy(at + bytes, mine.data(), count * sizeof(T));
        cuda::DeviceMemory memory = cuda::allocateDevice(room, "a test");
        cuda::Pointer ownPart = memory.get() + bytes, dst = sizeof(T) == 4 ? ownPart : memory.get() + aligned;
        driver.require(driver.copyAsync(memory.get(), cuda::pointerTo(at), given, stream.get()), "test");
        sums.run({memory.get(), ownPart, type, dst, count, static_cast<uint32_t>(world), static_cast<uint32_t>(own)}, stream.get());
        driver.require(driver.copyAsync(cuda::pointerTo(at), dst, count * sizeof(float), stream.get()), "test");
        driver.require(driver.streamSynchronize(stream.get()), "test");
        EXPECT_EQ(0, std::memcmp(at, expected.data(), count * sizeof(float))) << count << " of rank " << own << " of " << world;
      }
}
TEST(CudaSums, F32) { compareSums<float>(F32); }
TEST(CudaSums, Bf16) { compareSums<Bf16Bits>(BF16); }

// NVIDIA's assembler takes them, where there is one.
TEST(CudaSums, TheirTextIsPtx) {
  Folder folder;
  folder.write("sum.ptx", cuda::orderedSumPtx());
  std::string assembler = "/usr/local/cuda/bin/ptxas";
  if (const char *named = std::getenv("ZERO_PTXAS")) assembler = named;
  if (!std::filesystem::exists(assembler)) GTEST_SKIP() << "there is no " << assembler;
  for (const char *gpu : {"sm_80", "sm_90"})
    EXPECT_EQ(0, std::system((assembler + " -arch=" + gpu + " -o " + (folder / "sum.cubin") + " " + (folder / "sum.ptx")).c_str()));
}

TEST(CudaSums, OfALibraryAreNotForTheCpu) {
  PlanBuilder b(1);
  Ref x = b.floats("x", 8);
  Step &sum = b.step("sum", {x}, {x});
  collect(sum, Collective::ALL_REDUCE, 8);
  sum.mutable_collective()->set_order(Collective::LIBRARY), sum.mutable_collective()->clear_slice();
  EXPECT_EQ(refusalOf([&] { Session(b, false); }),
            "step 0 'sum' of program 'step' sums in the order of a GPU's library, and CPUs sum in that of ranks, which takes room; compile "
            "with --target cpu");
  Session run(b, true);
  run.write(x, std::vector<float>(8, 3));
  run.engine->run(0);
  EXPECT_EQ(run.read(x), std::vector<float>(8, 3));
}

} // namespace
