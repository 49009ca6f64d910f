// A step allocates nothing: every allocation of this program is counted, libraries included, while an engine runs again
// what it has run before. Alone, and as two ranks.
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/engine/engine.h"
#include "runtime/plan/validate.h"
#include "test/unit/mpi_environment.h"
#include "test/unit/plan_builder.h"
#include "test/unit/run_fixtures.h"
#include <atomic>
#include <cstdlib>
#include <malloc.h>

using namespace zero;
using namespace zero::plan;
using namespace zero::runtime;
using zero::test::collect;
using zero::test::PlanBuilder;
using zero::test::waitFor;
using zero::test::world;

// Sanitizers bring an allocator of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__GLIBC__)

namespace {
std::atomic<bool> counting{false};
std::atomic<uint64_t> allocations{0};
void count() {
  if (counting.load(std::memory_order_relaxed)) allocations.fetch_add(1, std::memory_order_relaxed);
}
} // namespace

extern "C" {
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void *malloc(size_t bytes) { return count(), __libc_malloc(bytes); }
void *calloc(size_t items, size_t bytes) { return count(), __libc_calloc(items, bytes); }
void *realloc(void *old, size_t bytes) { return count(), __libc_realloc(old, bytes); }
void *memalign(size_t alignment, size_t bytes) { return count(), __libc_memalign(alignment, bytes); }
void *aligned_alloc(size_t alignment, size_t bytes) { return count(), __libc_memalign(alignment, bytes); }
int posix_memalign(void **result, size_t alignment, size_t bytes) {
  count();
  *result = __libc_memalign(alignment, bytes);
  return *result ? 0 : 12; // ENOMEM
}
}

namespace {

auto *environment = testing::AddGlobalTestEnvironment(new zero::test::MpiEnvironment);

void setProduct(MatMul &product, uint64_t n) {
  product.set_dtype(F32), product.set_c_dtype(F32), product.set_batch(1);
  product.set_m(n), product.set_n(n), product.set_k(n), product.set_lda(n), product.set_ldb(n), product.set_ldc(n);
}

// Fills, copies and all collectives on three lanes, copies from and to disk and rows of a table on two more; products if asked for.
PlanBuilder makePlan(bool products) {
  const uint64_t shard = 4096, n = static_cast<uint64_t>(world->world());
  PlanBuilder b(static_cast<uint32_t>(n));
  b.plan.mutable_arenas(0)->set_alignment(4096);
  Ref near = b.bytes("near", 3 << 20), far = b.bytesIn(b.addArena(DISK, 4096), "far", 3 << 20);
  b.step("load", {far}, {near}, DISK_READ).mutable_copy();
  Step &store = b.step("store", {near}, {far}, DISK_WRITE);
  store.mutable_copy(), waitFor(store, DISK_READ, 1);
  Ref rows = b.floats("rows", 5 * 600), indices = b.bytes("indices", 5 * 4);
  Step &put = b.step("rows", {rows, indices, far}, {far}, DISK_WRITE);
  put.mutable_write_rows()->set_index_type(I32), put.mutable_write_rows()->set_row_bytes(600 * 4);
  Ref own = b.floats("own", shard), whole = b.floats("whole", shard * n), sum = b.floats("sum", shard * n), loss = b.floats("loss", 1);
  Ref staging = b.floats("staging", shard * n), few = b.floats("few", n), square = b.floats("square", 64 * 64);
  for (uint64_t round = 0; round < 5; ++round) {
    Step &gather = b.step("gather", {own}, {whole}, GATHER);
    if (round > 0) waitFor(gather, REDUCE, 2 * round);
    collect(gather, Collective::ALL_GATHER, shard);
    Step &use = b.step("use", {whole}, {sum});
    waitFor(use, GATHER, round + 1);
    use.mutable_copy();
    b.fill("fill", square, 1.0f);
    if (products) {
      Ref a = b.floats("a", 64 * 64), c = b.floats("c", 64 * 64);
      setProduct(*b.step("product", {a, square}, {c}).mutable_matmul(), 64);
    }
    Step &reduce = b.step("reduce", {sum}, b.staged(own, staging), REDUCE);
    waitFor(reduce, COMPUTE, (products ? 3 : 2) * (round + 1));
    collect(reduce, Collective::REDUCE_SCATTER, shard);
    collect(b.step("loss", {loss}, b.staged(loss, few), REDUCE), Collective::ALL_REDUCE, 1);
  }
  return b;
}

uint64_t allocationsOf(Engine &engine, int runs) {
  for (int i = 0; i < 20; ++i) engine.run(0); // libraries prepare themselves at first use
  engine.resetStats();
  allocations = 0;
  counting = true;
  for (int i = 0; i < runs; ++i) engine.run(0);
  counting = false;
  return allocations;
}

struct Session {
  explicit Session(bool products)
      : file(makePlan(products).file()), device(makeCpuDevice({.threads = 2, .rank = world->rank(), .diskPaths = {folder / "disk"}})) {
    validate(file.plan, 0);
    engine = std::make_unique<Engine>(file, *device, *world, EngineOptions{});
  }
  test::Folder folder;
  PlanFile file;
  std::unique_ptr<Device> device;
  std::unique_ptr<Engine> engine;
};

TEST(SteadyState, TheCounterCounts) {
  allocations = 0;
  counting = true;
  std::free(std::malloc(100));
  auto number = std::make_unique<int>(3);
  counting = false;
  EXPECT_EQ(allocations, 2u);
}

TEST(SteadyState, StepsAllocateNothing) {
  Session session(false);
  EXPECT_EQ(allocationsOf(*session.engine, 50), 0u);
}

// The library of products allocates its packing room in a call and frees it again: nothing may stay.
TEST(SteadyState, ProductsKeepNothing) {
  if (world->world() > 1) GTEST_SKIP();
  Session session(true);
  allocationsOf(*session.engine, 1);
  size_t before = mallinfo2().uordblks;
  session.engine->resetStats();
  for (int i = 0; i < 200; ++i) session.engine->run(0);
  EXPECT_LE(mallinfo2().uordblks, before + 1024);
}

TEST(SteadyState, AlsoOnTwoRanks) {
  if (world->world() > 1) GTEST_SKIP();
  double seconds = 0;
  EXPECT_EQ(zero::test::runUnderMpi(2, "SteadyState.StepsAllocateNothing", seconds), 0);
}

} // namespace

#else
TEST(SteadyState, NotWithSanitizers) {}
#endif
