// What ends a run on a GPU, or keeps it from beginning.
#include "runtime/device/cuda/peer_watch.h"
#include "test/gpu/cuda_session.h"
#include <csignal>
#include <sys/wait.h>
#include <thread>

using namespace zero;
using namespace zero::plan;
using namespace zero::runtime;
using namespace zero::test;

namespace {

// While a GPU is waited for: rank 1 is a child process.
TEST(CudaPeers, WhoIsStoppedOrEndedIsNamed) {
  pid_t child = ::fork();
  if (child == 0)
    for (;;) ::pause();
  Peer other = Peers::self();
  other.process = child;
  Peers peers({Peers::self(), other}, 0);
  const PatienceLimits limits{.look = std::chrono::milliseconds(1), .stopped = 5};
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
  EXPECT_NE(stopped.find("is stopped, and rank 0 has waited 0 s for it in a collective of their GPUs"), std::string::npos) << stopped;
  ::kill(child, SIGKILL);
  std::string ended = said(5000);
  EXPECT_EQ(ended.find(name), 0u) << ended;
  EXPECT_NE(ended.find("has ended while rank 0 waited for it in a collective of their GPUs"), std::string::npos) << ended;
  EXPECT_TRUE(cuda::PeerWatch(&peers, 0, 2, limits).missesAnyone());
  ::waitpid(child, nullptr, 0);
}

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
            "the plan was compiled for sm_100, and the GPU of this machine (fake device) is sm_90; compile without --gpu");
  target.set_features(0, "sm_90a");
  EXPECT_EQ(refusalOf([&] { device->requireTarget(target); }), "");
  target.set_features(0, "sm_80a"); // has what others lack, later ones too
  EXPECT_EQ(refusalOf([&] { device->requireTarget(target); }), "the plan was compiled for sm_80a, which GPUs of sm_80 run alone, and the "
                                                               "GPU of this machine (fake device) is sm_90; compile without "
                                                               "--gpu");
}

} // namespace
