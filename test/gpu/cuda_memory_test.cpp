// Memory of a GPU, of the host and on disk: cleared, filled, copied, read and written.
#include "runtime/device/cuda/handles.h"
#include "test/gpu/cuda_session.h"

using namespace zero;
using namespace zero::plan;
using namespace zero::runtime;
using namespace zero::test;

namespace {

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

// Transfers of submissions go from and to the very memory that they name, which therefore has to be the device's.
TEST(CudaMemory, TransfersHaveNoCopyBetween) {
  PlanBuilder b;
  Ref given = b.floats("given", 2000), result = b.floats("result", 2000);
  b.step("copy", {given}, {result}).mutable_copy();
  Session run(b, true);
  HostFloats from(*run.engine, 2000), to(*run.engine, 2000);
  EXPECT_TRUE(std::ranges::all_of(from.all(), [](float value) { return value == 0; }));
  std::vector<HostTransfer> writes{run.engine->transfer(given, from.bytes())}, reads{run.engine->transfer(result, to.bytes())};
  for (unsigned round = 0; round < 3; ++round) {
    std::ranges::copy(randomFloats(2000, round), from.all().begin());
    run.engine->submit({.program = 0, .writes = writes, .reads = reads});
    run.engine->finish();
    EXPECT_TRUE(std::ranges::equal(from.all(), to.all()));
  }
  std::vector<float> pageable(2000);
  writes = {run.engine->transfer(given, std::as_writable_bytes(std::span(pageable)))};
  run.engine->submit({.program = 0, .writes = writes});
  std::string sentence = refusalOf([&] { run.engine->finish(); });
  EXPECT_EQ(sentence.find("program 'step': cannot copy: "), 0u) << sentence;
}

// Between disk and memory of the host nothing goes another way.
TEST(CudaMemory, ADiskThatFailsEndsTheRun) {
  Folder folder;
  PlanBuilder b;
  Ref near = b.bytesIn(b.addArena(HOST, 4096), "near", 4 << 20), far = b.bytesIn(b.addArena(DISK, 4096), "far", 4 << 20);
  b.step("load", {far}, {near}, DISK_READ).mutable_copy();
  Session run(b, true, {.diskPaths = {folder / "disk"}});
  run.engine->run(0);
  cutOffState(folder / "disk");
  run.engine->submit({.program = 0});
  run.engine->submit({.program = 0});
  std::string sentence = refusalOf([&] { run.engine->finish(); });
  EXPECT_EQ(sentence.find("step 0 'load' of program 'step': cannot read 4194304 bytes at offset 0 "), 0u) << sentence;
  EXPECT_EQ(refusalOf([&] { run.engine->finish(); }), "no program can run after a step has failed");
}

} // namespace
