// The device for cuda on the libraries of test/gpu/fake: what holds for the cpu holds here. No GPU takes part.
#include "runtime/comm/ordered_sum.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/device/cuda/cubin_cache.h"
#include "runtime/device/cuda/cuda_device.h"
#include "runtime/device/cuda/cuda_program.h"
#include "runtime/device/cuda/graphs.h"
#include "runtime/device/cuda/peer_watch.h"
#include "runtime/device/devices.h"
#include "runtime/plan/error.h"
#include "runtime/plan/state.h"
#include "test/gpu/fake_machine.h"
#include "test/unit/sample_plans.h"
#include <bit>
#include <csignal>
#include <fstream>
#include <random>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace zero;
using namespace zero::plan;
using namespace zero::runtime;
using namespace zero::test;

namespace {

struct FakeMachine : testing::Environment {
  void SetUp() override { ::setenv("ZERO_CUDA_LIBRARIES", FAKES, 1), ::setenv("ZERORUN_CACHE", "", 1); }
};
auto *machine = testing::AddGlobalTestEnvironment(new FakeMachine);
auto *environment = testing::AddGlobalTestEnvironment(new MpiEnvironment);

// A plan with its engine on either device.
struct Session {
  template <typename Builder>
  Session(Builder &builder, bool cuda, const DeviceOptions &deviceOptions = {}, const std::string &kernels = "",
          EngineOptions options = {}) {
    if (cuda) makeCuda(builder.plan);
    code = cuda ? ptxOf(builder.plan) : kernels.empty() ? "" : compileKernels(kernels + boundsInC(builder.plan));
    if (cuda && !kernels.empty()) {
      ::setenv("ZERO_FAKE_KERNELS", folder.write("kernels.so", launches(builder.plan, kernels)).c_str(), 1);
    }
    file = builder.file();
    if (!kernels.empty()) file.kernels = std::as_bytes(std::span(code));
    validate(file.plan, file.constants.size());
    device = deviceFor(file.plan.target(), "p.bin").make(deviceOptions);
    engine = std::make_unique<Engine>(file, *device, *world, options);
  }

  void write(const Ref &ref, std::span<const float> values) { engine->write(ref, 0, std::as_bytes(values)); }
  std::vector<float> read(const Ref &ref) {
    std::vector<float> values(ref.bytes() / sizeof(float));
    engine->read(ref, 0, std::as_writable_bytes(std::span(values)));
    return values;
  }

  Folder folder;
  std::string code;
  PlanFile file;
  std::unique_ptr<Device> device;
  std::unique_ptr<Engine> engine;
};

std::vector<float> randomFloats(size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float &value : values) value = normal(generator);
  return values;
}

// ------------------------------------------------------------------------------------------------------- memory

TEST(CudaMemory, IsClearedReadAndWrittenInPieces) {
  auto device = makeCudaDevice({});
  for (Tier tier : {DEVICE, HOST}) {
    uint32_t arena = device->allocateArena("work", tier, 5 << 20);
    std::vector<uint32_t> values{7, 8, 9}, read(5);
    auto take = [&](uint64_t first, std::span<const std::byte> piece) {
      std::memcpy(reinterpret_cast<std::byte *>(read.data()) + first, piece.data(), piece.size());
    };
    device->write({arena, 4}, 12, [&](uint64_t, std::span<std::byte> piece) { std::memcpy(piece.data(), values.data(), piece.size()); });
    device->read({arena, 0}, 20, take);
    EXPECT_EQ(read, (std::vector<uint32_t>{0, 7, 8, 9, 0}));
    std::vector<std::pair<uint64_t, uint64_t>> pieces;
    bool clear = true;
    device->read({arena, 16}, 5000000, [&](uint64_t first, std::span<const std::byte> piece) {
      pieces.emplace_back(first, piece.size());
      clear = clear && std::ranges::all_of(piece, [](std::byte b) { return b == std::byte{0}; });
    });
    EXPECT_EQ(pieces, (std::vector<std::pair<uint64_t, uint64_t>>{{0, kPieceBytes}, {kPieceBytes, 5000000 - kPieceBytes}}));
    EXPECT_TRUE(clear);
  }
}

TEST(CudaMemory, TooMuchIsRefusedByName) {
  auto device = makeCudaDevice({});
  std::string gpu = refusalOf([&] { device->allocateArena("state", DEVICE, uint64_t(1) << 45); });
  EXPECT_EQ(gpu.find("arena 'state' takes 33554432.0 MiB of GPU memory, but 'fake device' has "), 0u) << gpu;
  std::string host = refusalOf([&] { device->allocateArena("pinned", HOST, uint64_t(1) << 45); });
  EXPECT_EQ(host.find("arena 'pinned' takes 33554432.0 MiB of host memory, but "), 0u) << host;
}

// Memory of the fake lies where the host cannot touch it: what reads it in any way but through the driver would have been ended here.
TEST(CudaMemory, IsApartFromTheHosts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const cuda::Driver &driver = cuda::Driver::get();
  auto device = makeCudaDevice({}); // whose context is current
  cuda::DeviceMemory memory = cuda::allocateDevice(4096, "a test");
  EXPECT_DEATH(std::printf("%d", *reinterpret_cast<volatile int *>(memory.get())), "");
  std::vector<std::byte> pageable(64);
  cuda::OwnedStream stream = cuda::makeStream();
  EXPECT_NE(driver.copyAsync(memory.get(), cuda::pointerTo(pageable.data()), 64, stream.get()), cuda::kSuccess);
  EXPECT_NE(driver.copyAsync(memory.get() + 64, memory.get(), 4096, stream.get()), cuda::kSuccess); // reaches too far
}

TEST(CudaMemory, FillsAndCopies) {
  PlanBuilder b;
  Ref words = b.floats("words", 625000), copy = b.floats("copy", 625000), odd = b.bytes("odd", 6),
      kept = b.bytesIn(b.addArena(HOST, 64), "kept", 6);
  b.fill("fill", words, 1.5f);
  b.step("copy", {words}, {copy}).mutable_copy();
  b.step("odd", {}, {odd}).mutable_fill()->set_pattern(0x44332211);
  b.step("keep", {odd}, {kept}, TO_HOST).mutable_copy();
  waitFor(*b.program().mutable_steps(3), COMPUTE, 3);
  Session run(b, true);
  run.engine->run(0);
  EXPECT_EQ(run.read(copy), std::vector<float>(625000, 1.5f));
  for (const Ref &ref : {odd, kept}) {
    std::vector<unsigned char> bytes(6);
    run.engine->read(ref, 0, std::as_writable_bytes(std::span(bytes)));
    EXPECT_EQ(bytes, (std::vector<unsigned char>{0x11, 0x22, 0x33, 0x44, 0x11, 0x22}));
  }
  EXPECT_EQ(run.engine->stats()[COMPUTE].steps, 3u);
  EXPECT_EQ(run.engine->stats()[TO_HOST].bytes, 6u);
}

TEST(CudaMemory, FromAndToDisk) {
  Folder folder;
  TieredPlan b(1);
  Session run(b, true, {.diskPaths = {folder / "a", folder / "b"}});
  for (int round = 0; round < 3; ++round) {
    std::vector<float> values = randomFloats(TieredPlan::kShard, static_cast<unsigned>(round));
    run.write(b.work, values);
    run.engine->resetStats();
    run.engine->run(0);
    for (const Ref &ref : {b.result, part(b.far, 4096, b.kShard * 4), b.near, b.work}) EXPECT_EQ(run.read(ref), values);
    for (Lane lane : {DISK_READ, DISK_WRITE, TO_DEVICE, TO_HOST}) EXPECT_EQ(run.engine->stats()[lane].bytes, b.kShard * 4);
  }
  EXPECT_GE(run.device->diskTraffic().written, 3 * b.kShard * 4);
}

// Between disk and memory of the host nothing goes another way.
TEST(CudaMemory, ADiskThatFailsEndsTheRun) {
  Folder folder;
  PlanBuilder b;
  Ref near = b.bytesIn(b.addArena(HOST, 4096), "near", 4 << 20), far = b.bytesIn(b.addArena(DISK, 4096), "far", 4 << 20);
  b.step("load", {far}, {near}, DISK_READ).mutable_copy();
  Session run(b, true, {.diskPaths = {folder / "disk"}});
  run.engine->run(0);
  for (const auto &entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (target.starts_with(folder / "disk") && target.ends_with(".state (deleted)")) {
      EXPECT_EQ(truncate(entry.path().c_str(), 0), 0);
    }
  }
  run.engine->submit({.program = 0});
  run.engine->submit({.program = 0});
  std::string sentence = refusalOf([&] { run.engine->finish(); });
  EXPECT_EQ(sentence.find("step 0 'load' of program 'step': cannot read 1048576 bytes at offset "), 0u) << sentence;
  EXPECT_EQ(refusalOf([&] { run.engine->finish(); }), "no program can run after a step has failed");
}

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

// ------------------------------------------------------------------------------------------------- the order of things

std::vector<float> roundsOn(RoundsPlan plan, bool cuda, uint64_t seed = 1) {
  ::setenv("ZERO_FAKE_SEED", std::to_string(seed).c_str(), 1);
  if (cuda) makeCuda(plan.plan);
  PlanFile file = plan.file();
  auto device = deviceFor(file.plan.target(), "p.bin").make({});
  return resultsOf(file, plan.own, plan.input, plan.result, *device);
}

bool same(const std::vector<float> &a, const std::vector<float> &b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(CudaOrder, AnyDelaysGiveTheSameBits) {
  RoundsPlan plan(1);
  std::vector<float> cpu = roundsOn(plan, false), first = roundsOn(plan, true);
  ASSERT_EQ(cpu.size(), first.size());
  float largest = 0;
  for (float value : cpu) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < cpu.size(); ++i) ASSERT_NEAR(cpu[i], first[i], 1e-5 * largest);
  for (uint64_t seed = 2; seed < 12; ++seed) EXPECT_TRUE(same(first, roundsOn(plan, true, seed))) << seed;
}

// The double is worth something: without the waits some delays give other bits.
TEST(CudaOrder, WaitsThatAreMissingAreSeen) {
  RoundsPlan plan(1), careless(1);
  for (Step &step : *careless.program().mutable_steps()) step.clear_waits();
  std::vector<float> expected = roundsOn(plan, true);
  bool seen = false;
  for (uint64_t seed = 0; seed < 40 && !seen; ++seed) seen = !same(expected, roundsOn(careless, true, seed));
  EXPECT_TRUE(seen);
}

TEST(CudaOrder, SubmissionsWaitForTheirTurn) {
  RoundsPlan plan(1);
  plan.program().clear_entries();
  Session run(plan, true);
  for (int i = 0; i < 20; ++i) {
    run.engine->submit({}), run.engine->submit({});
    EXPECT_NE(refusalOf([&] { run.engine->submit({}); }), "");
    Completion first = run.engine->finish(), second = run.engine->finish();
    EXPECT_LE(first.begin, first.end);
    EXPECT_LE(first.end, second.begin + std::chrono::microseconds(2)); // as exact as a float of milliseconds
    EXPECT_NE(refusalOf([&] { run.engine->finish(); }), "");
  }
  run.engine->submit({}), run.engine->submit({}); // the engine waits for them when it goes
}

// With an entry lane compute is in the second program while another lane is still in the first.
TEST(CudaOrder, LanesRunOn) {
  PlanBuilder b;
  Ref large = b.floats("large", 1 << 20);
  for (int i = 0; i < 20; ++i) b.fill("slow" + std::to_string(i), large, 1, UPDATE);
  b.program().add_entries();
  Session run(b, true);
  int ranOn = 0;
  for (int i = 0; i < 5; ++i) {
    run.engine->submit({}), run.engine->submit({});
    Completion first = run.engine->finish(), second = run.engine->finish();
    ranOn += second.begin < first.end;
    EXPECT_LE(first.end, second.end);
  }
  EXPECT_GT(ranOn, 0);
}

// The plan's order need not be one in which all that is waited for comes first; several waits for a lane are one.
TEST(CudaOrder, IsMadeForStreams) {
  PlanBuilder b;
  Ref x = b.floats("x", 8), y = b.floats("y", 8), z = b.floats("z", 8);
  Step &late = b.step("late", {x}, {y});
  late.mutable_copy(), waitFor(late, UPDATE, 1), waitFor(late, UPDATE, 2), waitFor(late, UPDATE, 1);
  Step &later = b.step("later", {y}, {z});
  later.mutable_copy(), waitFor(later, UPDATE, 2);
  b.fill("early", x, 3, UPDATE);
  b.fill("early too", x, 4, UPDATE);
  Session run(b, true);
  run.engine->run(0);
  EXPECT_EQ(run.read(z), std::vector<float>(8, 4));
  DeviceProgram program;
  program.source = &b.program();
  FillOf<Place> fill{Address{0, 0}, 0, 4};
  program.waits = {{UPDATE, 1}, {UPDATE, 2}, {UPDATE, 1}, {UPDATE, 2}, {COMPUTE, 0}};
  program.operations = {{COMPUTE, fill, 0, 0, 3}, {COMPUTE, fill, 1, 3, 4}, {UPDATE, fill, 2, 4, 5}, {UPDATE, fill, 3, 5, 5}};
  EXPECT_EQ(cuda::submissionOrder(program), (std::vector<uint32_t>{2, 3, 0, 1}));
  cuda::Failure failure;
  DiskArenas disk{{}, 0};
  cuda::Binding binding{[](Address a) { return a.offset; }, [](Address) { return nullptr; }, {}, disk, nullptr, {}, &failure};
  cuda::CudaProgram bound = cuda::boundProgram(program, binding);
  std::vector<std::vector<uint32_t>> waits;
  for (const cuda::CudaOperation &operation : bound.operations) {
    waits.emplace_back();
    for (const LaneWait &wait : operation.waits) waits.back().push_back(wait.tick);
  }
  EXPECT_EQ(waits, (std::vector<std::vector<uint32_t>>{{0}, {}, {2}, {}}));
}

// ------------------------------------------------------------------------------------------------------- graphs

// One on lane compute, cut where a step waits, where others wait for it, where an entry joins and at what cannot be captured.
TEST(CudaGraphs, AreStretchesOfALane) {
  cuda::CudaProgram program;
  cuda::FillCall fill{8, 0, 4};
  auto add = [&](int lane, cuda::Call call, std::vector<LaneWait> waits = {}) {
    uint32_t tick = ++program.ticks[static_cast<size_t>(lane)];
    program.operations.push_back({lane, call, 0, true, true, tick, nullptr, std::move(waits)});
  };
  for (int i = 0; i < 3; ++i) add(COMPUTE, fill); // 0, 1, 2
  add(UPDATE, fill);                              // 3: alone
  for (int i = 0; i < 2; ++i) add(COMPUTE, fill); // 4, 5: somebody waits for the second
  add(COMPUTE, cuda::Nothing{});                  // 6
  for (int i = 0; i < 2; ++i) add(COMPUTE, fill); // 7, 8: too few
  add(COMPUTE, fill, {{UPDATE, 1}});              // 9
  for (int i = 0; i < 2; ++i) add(COMPUTE, fill); // 10, 11
  add(COMPUTE, cuda::DiskCall{});                 // 12
  for (int i = 0; i < 3; ++i) add(COMPUTE, fill); // 13, 14, 15
  for (int i = 0; i < 3; ++i) add(COMPUTE, fill); // 16: an entry joins; 17, 18
  program.entries.push_back({0, {}, {{16, {UPDATE, 1}}}});
  auto isAwaited = [](int lane, uint32_t tick) { return lane == COMPUTE && tick == 5; };
  EXPECT_EQ(cuda::stretchesOf(program, isAwaited), (std::vector<cuda::Stretch>{{0, 1, 2, 4, 5}, {9, 10, 11}, {13, 14, 15}, {16, 17, 18}}));
}

// A run of several steps, the later ones as graphs, has the bits of streams whatever the delays.
TEST(CudaGraphs, GiveTheBitsOfStreams) {
  RoundsPlan plan(1);
  makeCuda(plan.plan);
  PlanFile file = plan.file();
  std::vector<float> expected;
  for (uint64_t seed = 1; seed < 9; ++seed) {
    ::setenv("ZERO_FAKE_SEED", std::to_string(seed).c_str(), 1);
    for (bool graphs : {false, true}) {
      auto device = deviceFor(file.plan.target(), "p.bin").make({.graphs = graphs});
      std::vector<float> values = resultsOf(file, plan.own, plan.input, plan.result, *device);
      if (expected.empty()) expected = values;
      EXPECT_TRUE(same(expected, values)) << seed << graphs;
    }
  }
}

// What the driver's documentation says cannot be captured the fake refuses.
TEST(CudaGraphs, TheFakeKnowsTheRules) {
  auto device = makeCudaDevice({}); // whose context is current
  const cuda::Driver &driver = cuda::Driver::get();
  cuda::OwnedStream origin = cuda::makeStream(), other = cuda::makeStream();
  cuda::OwnedEvent forks = cuda::makeEvent(cuda::kUntimed), joins = cuda::makeEvent(cuda::kUntimed);
  cuda::DeviceMemory memory = cuda::allocateDevice(64, "a test");
  auto fill = [&](const cuda::OwnedStream &on, unsigned value) { return driver.fill32Async(memory.get(), value, 4, on.get()); };
  auto captured = [&](auto &&during) {
    cuda::GraphHandle graph{};
    EXPECT_EQ(driver.beginCapture(origin.get(), cuda::kThreadLocalCapture), cuda::kSuccess);
    during();
    cuda::Status status = driver.endCapture(origin.get(), &graph);
    return std::pair(status, graph);
  };
  auto statusOf = [&](auto &&during) {
    auto [status, graph] = captured(during);
    cuda::OwnedGraph owned(graph, driver.graphDestroy);
    return status;
  };
  EXPECT_EQ(statusOf([&] { fill(origin, 1); }), cuda::kSuccess);
  EXPECT_EQ(statusOf([&] { EXPECT_EQ(driver.streamSynchronize(origin.get()), 900); }), 901); // invalidated
  EXPECT_EQ(statusOf([&] { EXPECT_EQ(driver.eventQuery(forks.get()), 900); }), 901);
  EXPECT_EQ(statusOf([&] {
              void *pinned = nullptr;
              EXPECT_EQ(driver.hostAllocate(&pinned, 64, cuda::kPortable), 900);
            }),
            901);
  driver.eventRecord(joins.get(), other.get());
  EXPECT_EQ(statusOf([&] { EXPECT_EQ(driver.streamWaitEvent(origin.get(), joins.get(), 0), 905); }), 901); // recorded outside
  auto fork = [&] { driver.eventRecord(forks.get(), origin.get()), driver.streamWaitEvent(other.get(), forks.get(), 0), fill(other, 2); };
  EXPECT_EQ(statusOf([&] { fill(origin, 1), fork(); }), 904); // a stream has not joined again
  auto [status, graph] = captured([&] {
    fill(origin, 1), fork();
    driver.eventRecord(joins.get(), other.get()), driver.streamWaitEvent(origin.get(), joins.get(), 0);
    driver.copyAsync(memory.get() + 32, memory.get(), 16, origin.get());
  });
  ASSERT_EQ(status, cuda::kSuccess);
  cuda::OwnedGraph owned(graph, driver.graphDestroy);
  cuda::GraphExecHandle exec{};
  EXPECT_EQ(driver.graphInstantiate(&exec, graph, 0), cuda::kSuccess);
  cuda::OwnedGraphExec runs(exec, driver.graphExecDestroy);
  EXPECT_EQ(driver.eventSynchronize(joins.get()), 907); // it was captured
  cuda::PinnedMemory pinned = cuda::allocatePinned(16, "a test");
  auto *words = static_cast<unsigned *>(pinned.get());
  words[3] = 7;
  for (int i = 0; i < 3; ++i) {
    fill(origin, 9);
    EXPECT_EQ(driver.graphLaunch(exec, origin.get()), cuda::kSuccess);
    driver.copyAsync(cuda::pointerTo(words), memory.get() + 32, 16, origin.get());
    EXPECT_EQ(driver.streamSynchronize(origin.get()), cuda::kSuccess);
    EXPECT_EQ(words[3], 2u);
  }
}

TEST(CudaOrder, ATraceHasEveryStep) {
  RoundsPlan b(1);
  Session run(b, true, {}, "", {.programs = {}, .trace = true});
  run.engine->submit({}), run.engine->submit({});
  run.engine->finish(), run.engine->finish();
  auto steps = static_cast<size_t>(b.program().steps_size());
  EXPECT_EQ(run.engine->trace().size(), 2 * steps);
  std::array<double, kLanes> busy{};
  for (const TraceEvent &event : run.engine->trace()) {
    EXPECT_LE(event.begin, event.end);
    busy[static_cast<size_t>(event.lane)] += event.end - event.begin;
  }
  for (size_t lane = 0; lane < kLanes; ++lane) EXPECT_NEAR(run.engine->stats()[lane].busySeconds, busy[lane], 1e-9);
}

// ------------------------------------------------------------------------------------------------------ kernels

constexpr const char *kSgd =
    "void sgd(void *const *args, long begin, long end) { const float *g = args[1], *hyper = args[2]; float *x = args[3];"
    "for (long i = begin; i < end; ++i) x[i] -= hyper[0] * g[i]; }\n";

struct SgdPlan : PlanBuilder {
  Ref parameter = floats("parameters", 32), gradient = floats("gradient", 32), hyper = floats("hyper", 16);
  SgdPlan() {
    Bucket *bucket = plan.add_buckets();
    bucket->set_name("layer"), bucket->set_elements(32), bucket->set_shard_elements(32);
    addTensor(*bucket, StateTensor::MASTER, parameter, WHOLE);
    plan.add_kernels()->set_symbol("sgd");
    fill("gradient", gradient, 3);
    Step &update = step("update", {parameter, gradient, hyper}, {parameter}, UPDATE);
    waitFor(update, COMPUTE, 1);
    update.mutable_update()->set_dtype(F32), update.mutable_update()->set_part(WHOLE);
    update.mutable_update()->mutable_launch()->set_extent(32);
    boundKernels();
  }
};

TEST(CudaKernels, HookSeesTheGradientFirst) {
  SgdPlan b;
  Session run(b, true, {}, kSgd);
  run.write(b.hyper, std::vector<float>(16, 2));
  int calls = 0;
  run.engine->run(0, [&](const Step &seen) {
    ++calls;
    EXPECT_EQ(run.read(gradientOf(seen)), std::vector<float>(32, 3));
    EXPECT_EQ(run.read(b.parameter)[1], 0.0f) << "the update has run before the hook";
  });
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(run.read(b.parameter), std::vector<float>(32, -6));
  UpdateHook refuses = [](const Step &) { throw Error("the hook refuses"); };
  run.engine->submit({.program = 0, .beforeUpdate = &refuses});
  run.engine->submit({.program = 0}); // is not run
  EXPECT_EQ(refusalOf([&] { run.engine->finish(); }), "step 1 'update' of program 'step': the hook refuses");
  EXPECT_NE(refusalOf([&] { run.engine->finish(); }), "");
  EXPECT_NE(refusalOf([&] { run.engine->run(0); }), "");
}

// 70 elements in rows of 2, a block for 8 rows, so that the last one is short; and a sum of each row.
struct GroupsPlan : PlanBuilder {
  static constexpr uint64_t kElements = 70, kBlock = 16;
  Ref parameters = floats("parameters", kElements), gradient = floats("gradient", kElements), hyper = floats("hyper", 16),
      sums = floats("sums", kElements / 2);
  Ref momentum = floats("momentum", kElements);
  GroupsPlan() {
    plan.mutable_optimizer()->set_kind(SGD);
    Input *input = plan.add_inputs();
    input->set_name("hyper"), input->set_role(Input::HYPER), input->set_dtype(F32), input->add_shape(16), *input->mutable_ref() = hyper;
    Bucket *bucket = plan.add_buckets();
    bucket->set_name("all"), bucket->set_elements(kElements), bucket->set_shard_elements(kElements), bucket->set_trainable(true);
    addTensor(*bucket, StateTensor::MASTER, parameters, WHOLE), addTensor(*bucket, StateTensor::MOMENTUM, momentum, WHOLE);
    for (uint64_t at : {0, 20, 24, 40, 66}) {
      uint64_t end = at == 0 ? 20 : at == 20 ? 24 : at == 24 ? 40 : at == 40 ? 66 : 70;
      Parameter *parameter = plan.add_parameters();
      parameter->set_name("p" + std::to_string(at)), parameter->add_shape(static_cast<int64_t>(end - at));
      addPiece(*parameter, 0, at);
    }
    plan.add_kernels()->set_symbol("sgd");
    Update *update = step("update", {parameters, gradient, momentum, hyper}, {parameters, momentum, sums}, UPDATE).mutable_update();
    update->set_dtype(F32), update->set_part(WHOLE), update->set_row(kBlock);
    update->mutable_launch()->set_extent((kElements + kBlock - 1) / kBlock);
    boundKernels();
  }
};
constexpr const char *kGroups = "void sgd(void *const *a, long begin, long end) { float *x = a[4], *g = a[1], *h = a[3], *sums = a[6];"
                                "for (long e = begin * 16; e < end * 16 && e < 70; e += 2) { sums[e / 2] = g[e] + g[e + 1];"
                                "x[e] -= h[0] * g[e]; x[e + 1] -= h[0] * g[e + 1]; } }\n";

TEST(CudaKernels, GroupsOfParametersHaveTheirHyperParameters) {
  const std::vector<uint32_t> groupOf{0, 1, 0, 2, 1};
  const std::vector<uint64_t> ends{20, 24, 40, 66, 70};
  GroupsPlan b;
  Session run(b, true, {}, kGroups, {.groups = groupOf});
  std::vector<float> start = randomFloats(GroupsPlan::kElements, 1), gradient = randomFloats(GroupsPlan::kElements, 2);
  run.write(b.parameters, start), run.write(b.gradient, gradient), run.write(b.sums, std::vector<float>(GroupsPlan::kElements / 2, 9));
  std::array<std::array<float, 16>, 3> hyper{};
  for (size_t g = 0; g < 3; ++g) hyper[g][0] = 0.5f + static_cast<float>(g);
  run.write(b.hyper, hyper[0]);
  std::vector<HostTransfer> others;
  for (uint32_t g : {1, 2}) others.push_back(run.engine->hyperTransfer(g, std::as_writable_bytes(std::span(hyper[g]))));
  run.engine->submit({.program = 0, .writes = others});
  run.engine->finish();
  std::vector<float> updated = run.read(b.parameters), sums = run.read(b.sums);
  for (size_t e = 0, p = 0; e < updated.size(); ++e) {
    p += e == ends[p];
    EXPECT_EQ(updated[e], start[e] - hyper[groupOf[p]][0] * gradient[e]) << e;
    EXPECT_EQ(sums[e / 2], gradient[e / 2 * 2] + gradient[e / 2 * 2 + 1]) << e;
  }
}

TEST(CudaKernels, AreHeldAgainstThePlan) {
  SgdPlan b;
  makeCuda(b.plan);
  Folder folder;
  ::setenv("ZERO_FAKE_KERNELS", folder.write("kernels.so", launches(b.plan, kSgd)).c_str(), 1);
  auto device = makeCudaDevice({});
  std::string ptx = ptxOf(b.plan);
  auto refusal = [&](const std::string &text, const std::string &name, uint64_t extent) {
    KernelSymbol symbol{name, extent, {128, 128, 64, 128}, 0, b.plan.kernels(0).gpu()};
    return refusalOf([&] { device->loadKernels(std::as_bytes(std::span(text)), {&symbol, 1}); });
  };
  EXPECT_EQ(refusal(ptx, "sgd", 32), "");
  EXPECT_EQ(refusal(ptx, "sgd", 64),
            "kernel 'sgd' is made for 32 iterations over 128, 128, 64, 128 bytes, but the plan says 64 iterations over 128, "
            "128, 64, 128 bytes; compile the plan again");
  EXPECT_EQ(refusal(ptx, "adam", 32),
            "kernel 'adam' is not in the plan's kernel segment; compile the plan again: it is not there (CUDA_ERROR_NOT_FOUND)");
  EXPECT_EQ(refusal("no code", "sgd", 32),
            "cannot load the plan's kernels (ptxas fatal : the fake device finds no .version): the driver refuses the PTX; "
            "compile the plan again (CUDA_ERROR_INVALID_PTX)");
  std::string silent = std::regex_replace(ptx, std::regex("sgd_bounds"), "other_bounds");
  EXPECT_NE(refusal(silent, "sgd", 32).find("kernel 'sgd' "), std::string::npos);
}

// -------------------------------------------------------------------------------------------------------- peers

// While a GPU is waited for: rank 1 is a child process.
TEST(CudaPeers, WhoIsStoppedOrEndedIsNamed) {
  pid_t child = ::fork();
  if (child == 0)
    for (;;) ::pause();
  Peer other = Peers::self();
  other.process = child;
  Peers peers({Peers::self(), other}, 0);
  const cuda::PeerWatchLimits limits{{.look = std::chrono::milliseconds(1)}, 5};
  auto said = [&](int looks) {
    cuda::PeerWatch watch(&peers, 0, 2, limits);
    auto begin = Clock::now();
    return refusalOf([&] {
      for (int i = 0; i < looks; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1)), watch.look(begin);
    });
  };
  std::string name = "rank 1 (process " + std::to_string(child) + " on ";
  EXPECT_EQ(said(50), "");
  EXPECT_FALSE(cuda::PeerWatch(&peers, 0, 2, limits).missesAnyone());
  ::kill(child, SIGSTOP);
  std::string stopped = said(5000);
  EXPECT_EQ(stopped.find(name), 0u) << stopped;
  EXPECT_NE(stopped.find("is stopped, and the GPU of rank 0 has waited for its GPU for 5 s"), std::string::npos) << stopped;
  ::kill(child, SIGKILL);
  std::string ended = said(5000);
  EXPECT_EQ(ended.find(name), 0u) << ended;
  EXPECT_NE(ended.find("has ended while rank 0 waited for it in a collective of their GPUs"), std::string::npos) << ended;
  EXPECT_TRUE(cuda::PeerWatch(&peers, 0, 2, limits).missesAnyone());
  ::waitpid(child, nullptr, 0);
}

// ----------------------------------------------------------------------------------------------------- the cache

std::vector<std::byte> bytesOf(size_t count, unsigned char value) { return std::vector<std::byte>(count, std::byte{value}); }

TEST(CubinCache, KeepsWhatIsWhole) {
  Folder folder;
  cuda::CubinCache cache(folder / "a/b");
  EXPECT_FALSE(cache.find("key"));
  cache.keep("key", bytesOf(1000, 7)), cache.keep("other", bytesOf(10, 8));
  EXPECT_EQ(cache.find("key"), bytesOf(1000, 7));
  EXPECT_EQ(cache.find("other"), bytesOf(10, 8));
  EXPECT_FALSE(cache.find("key "));
  cache.keep("key", bytesOf(5, 9)); // again, by another rank
  EXPECT_EQ(cache.find("key"), bytesOf(5, 9));
  for (const auto &entry : std::filesystem::directory_iterator(folder / "a/b")) {
    std::filesystem::permissions(entry, std::filesystem::perms::group_write, std::filesystem::perm_options::add);
    EXPECT_EQ(cache.find("key").has_value() + cache.find("other").has_value(), 1) << "what others can write is not run";
    std::filesystem::permissions(entry, std::filesystem::perms::group_write, std::filesystem::perm_options::remove);
  }
  for (const auto &entry : std::filesystem::directory_iterator(folder / "a/b")) {
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(33), file.put('x');
  }
  EXPECT_FALSE(cache.find("key") || cache.find("other"));
  cuda::CubinCache none(""), unwritable("/proc/nobody");
  none.keep("key", bytesOf(5, 9)), unwritable.keep("key", bytesOf(5, 9));
  EXPECT_FALSE(none.find("key") || unwritable.find("key"));
}

TEST(CubinCache, IsBounded) {
  Folder folder;
  cuda::CubinCache cache(folder / "", 10000);
  cache.keep("much", bytesOf(6000, 1));
  EXPECT_FALSE(cache.find("much")); // more than half of all there is
  for (unsigned char i = 0; i < 5; ++i) {
    cache.keep(std::to_string(i), bytesOf(3000, i));
    if (i > 0) EXPECT_TRUE(cache.find("0")) << "it was used last but one";
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_FALSE(cache.find("1") || cache.find("2"));
  EXPECT_TRUE(cache.find("0") && cache.find("3") && cache.find("4"));
}

// ----------------------------------------------------------------------------------------------------- refusals

TEST(CudaRefusals, WhatIsNotBuiltYet) {
  PlanBuilder b;
  Ref q = b.floats("q", 64), out = b.floats("out", 64), lse = b.floats("lse", 16);
  Attention *attention = b.step("look", {q, q, q}, {out, lse}).mutable_attention();
  attention->set_batch(1), attention->set_heads(2), attention->set_kv_heads(2), attention->set_q_len(8), attention->set_kv_len(8);
  attention->set_dim(4), attention->set_scale(1), attention->set_dtype(F32);
  EXPECT_EQ(refusalOf([&] { Session(b, true); }).find("step 0 'look' of program 'step' is attention, which is not built yet for cuda"), 0u);
}

TEST(CudaRefusals, OtherArchitectures) {
  auto device = makeCudaDevice({});
  Target target;
  EXPECT_NE(refusalOf([&] { device->requireTarget(target); }).find("compiled for cpu"), std::string::npos);
  target.set_kind(Target::CUDA), target.add_features("sm_80");
  EXPECT_EQ(refusalOf([&] { device->requireTarget(target); }), ""); // PTX is compiled for later ones too
  target.set_features(0, "sm_100");
  EXPECT_EQ(refusalOf([&] { device->requireTarget(target); }),
            "the plan was compiled for sm_100, and the GPU of this machine (fake device) is sm_90; compile with --gpu sm_90");
}

} // namespace
