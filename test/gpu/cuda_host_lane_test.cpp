// Lane UPDATE_HOST: what the host's processors do runs beside all other lanes, and in the order that waits ask for.
#include "test/gpu/cuda_session.h"

using namespace zero::test;

namespace {

constexpr uint64_t kElements = 1024; // a block of a disk

// A bucket that rests on the host, and one update of it there. `gradient` lies on the host.
struct HostPlan : PlanBuilder {
  int host = addArena(HOST, 4096);
  Ref work = aligned(floats("work", kElements)), gradient = bytesIn(host, "gradient", 4 * kElements);
  Ref master = bytesIn(host, "master", 4 * kElements), momentum = bytesIn(host, "momentum", 4 * kElements);

  HostPlan() {
    plan.mutable_optimizer()->set_kind(SGD);
    Bucket *bucket = plan.add_buckets();
    bucket->set_name("layer"), bucket->set_elements(kElements), bucket->set_shard_elements(kElements), bucket->set_trainable(true);
    addTensor(*bucket, StateTensor::MASTER, master, WHOLE), addTensor(*bucket, StateTensor::MOMENTUM, momentum, WHOLE);
    plan.add_kernels()->set_symbol("descend");
  }

  Ref aligned(const Ref &ref) {
    plan.mutable_arenas(0)->set_alignment(4096);
    return ref;
  }

  Step &update() {
    Step &update = step("update", {master, gradient, momentum}, {master, momentum}, UPDATE_HOST);
    update.mutable_update()->set_dtype(F32), update.mutable_update()->set_part(WHOLE);
    update.mutable_update()->mutable_launch()->set_extent(kElements);
    return update;
  }
};

// On the fake device, with `kernels` in C for the host.
struct HostSession {
  HostSession(HostPlan &b, const std::string &kernels, const DeviceOptions &options = {}) {
    b.boundKernels();
    makeCuda(b.plan);
    b.plan.mutable_kernels(0)->clear_gpu();
    object = compileKernels(kernels + boundsInC(b.plan));
    file = b.file();
    file.hostKernels = std::as_bytes(std::span(object));
    validate(file.plan, 0);
    device = deviceFor(file.plan.target(), "p.bin").make(options);
    engine = std::make_unique<Engine>(file, *device, *world, EngineOptions());
  }

  float first(const Ref &ref) {
    float value = 0;
    engine->read(ref, 0, std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }

  std::string object;
  PlanFile file;
  std::unique_ptr<Device> device;
  std::unique_ptr<Engine> engine;
};

// The update ends when a disk has brought what it looks for: it must not stand before the disk's transfers, as host functions would.
TEST(CudaHostLane, HoldsUpNoDisk) {
  Folder folder;
  HostPlan b;
  Ref far = b.bytesIn(b.addArena(DISK, 4096), "far", 4 * kElements);
  b.fill("fill", b.work, 3);
  b.update();
  Step &save = b.step("save", {b.work}, {far}, DISK_WRITE), &load = b.step("load", {far}, {b.gradient}, DISK_READ);
  save.mutable_copy(), load.mutable_copy();
  waitFor(*b.program().mutable_steps(2), COMPUTE, 1), waitFor(*b.program().mutable_steps(3), DISK_WRITE, 1);
  HostSession run(b,
                  "void descend(void *const *args, long begin, long end) { const volatile float *g = args[1]; float *p = args[3];"
                  "for (long looks = 0; looks < 2000000000 && g[end - 1] == 0; ++looks);"
                  "for (long i = begin; i < end; ++i) p[i] = g[i]; }\n",
                  {.threads = 1, .diskPaths = {folder / "disk"}});
  run.engine->run(0);
  EXPECT_EQ(run.first(b.master), 3);
  EXPECT_EQ(run.engine->stats()[UPDATE_HOST].steps, 1u);
}

// The GPU makes the gradient of what the host has updated, again and again, two programs under way at a time.
TEST(CudaHostLane, FollowsAndIsFollowed) {
  HostPlan b;
  Step &down = b.step("down", {b.work}, {b.gradient}, TO_HOST);
  down.mutable_copy();
  waitFor(b.update(), TO_HOST, 1);
  Step &up = b.step("up", {b.master}, {b.work}, TO_DEVICE);
  up.mutable_copy(), waitFor(up, UPDATE_HOST, 1);
  for (int threads : {1, 3}) {
    HostPlan each = b;
    HostSession run(each,
                    "void descend(void *const *args, long begin, long end) { const float *g = args[1]; float *p = args[3], *m = args[4];"
                    "for (long i = begin; i < end; ++i) p[i] = 2 * g[i] + 1, m[i] += 1; }\n",
                    {.threads = threads});
    EXPECT_EQ(run.device->threads(), threads);
    run.engine->submit({.program = 0});
    for (int i = 1; i < 10; ++i) run.engine->submit({.program = 0}), run.engine->finish();
    run.engine->finish();
    EXPECT_EQ(run.first(b.work), 1023);
    EXPECT_EQ(run.first(part(b.momentum, 4 * kElements - 4, 4)), 10);
  }
}

// What a disk wants after the last element of what the host has made.
TEST(CudaHostLane, FillsInItsOrder) {
  HostPlan b;
  b.update();
  b.fill("padding", part(b.master, 2 * kElements, 6), 3, UPDATE_HOST);
  HostSession run(b, "void descend(void *const *args, long begin, long end) { float *p = args[3];"
                     "for (long i = begin; i < end; ++i) p[i] = 1; }\n");
  run.engine->run(0);
  EXPECT_EQ(run.first(part(b.master, 2 * kElements, 4)), 3);
  EXPECT_EQ(run.first(part(b.master, 2 * kElements + 8, 4)), 1);
}

TEST(CudaHostLane, WantsTheProcessorsFeatures) {
  HostPlan b;
  b.update();
  b.plan.mutable_target()->set_cpu("x86-64-v9"), b.plan.mutable_target()->add_host_features("avx4096");
  std::string sentence = refusalOf([&] { HostSession(b, "void descend(void *const *args, long begin, long end) {}\n"); });
  EXPECT_EQ(sentence, "the plan updates on the host, with kernels compiled for x86-64-v9, which need avx4096; this machine does not have "
                      "that; compile with --cpu x86-64-v3, or on a machine like this one");
}

} // namespace
