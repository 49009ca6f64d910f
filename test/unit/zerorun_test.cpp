// zerorun as users call it, on a plan made by hand: linear regression y = x·w with AdamW, its kernels compiled from C. Nothing
// of the compiler takes part.
#include "runtime/data/safetensors.h"
#include "runtime/data/tensor_file.h"
#include "runtime/plan/validate.h"
#include "test/unit/plan_builder.h"
#include "test/unit/run_fixtures.h"
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sys/wait.h>

using namespace zero;
using namespace zero::plan;
using zero::test::Folder;
using zero::test::part;
using zero::test::PlanBuilder;
using zero::test::waitFor;

namespace {

constexpr const char *kKernels = R"(
#include <math.h>
void mse(void *const *a, long begin, long end) { /* pred, y, scale, diff, loss */
  const float *pred = a[0], *y = a[1], *scale = a[2], *n = a[3]; float *diff = a[4], *loss = a[5];
  for (long i = begin; i < end; ++i) {
    *loss = 0;
    for (long r = 0; r < (long)*n; ++r) { float d = pred[r] - y[r]; diff[r] = 2 * *scale * d; *loss += *scale * d * d; }
  }
}
void norm(void *const *a, long begin, long end) { /* gradient shard, sum */
  const float *g = a[0]; float *sum = a[1];
  for (long i = begin; i < end; ++i) { *sum = 0; for (int k = 0; k < 16; ++k) *sum += g[k] * g[k]; }
}
void adamw(void *const *a, long begin, long end) {
  const float *g = a[0], *h = a[1]; float *w = a[2], *m = a[3], *v = a[4];
  for (long i = begin; i < end; ++i) {
    m[i] = h[1] * m[i] + (1 - h[1]) * g[i]; v[i] = h[2] * v[i] + (1 - h[2]) * g[i] * g[i];
    w[i] -= h[0] * (m[i] / h[5] / (sqrtf(v[i] / h[6]) + h[3]) + h[4] * w[i]);
  }
}
)";

const std::vector<float> kWeights{0.5f, -0.25f, 1.0f, 0.0f};

// y = x·w; the bucket is padded to 16 elements per rank, each rank updates its shard and all gather the rest.
void writePlan(const Folder &folder, const std::string &name, uint32_t world, uint64_t batch) {
  PlanBuilder b(world);
  b.plan.set_samples(batch), b.plan.set_tokens(batch), b.plan.set_stage(2);
  b.plan.mutable_optimizer()->set_states(2);
  b.plan.mutable_loss()->set_kind(MSE), b.plan.mutable_loss()->set_labels("y");
  Ref x = b.floats("x", batch * 4), y = b.floats("y", batch), scale = b.floats("scale", 1), hyper = b.floats("hyper", 16);
  Ref w = b.floats("w", 16 * world), m = b.floats("m", 16), v = b.floats("v", 16), gradient = b.floats("gradient", 16 * world);
  Ref pred = b.floats("pred", batch), diff = b.floats("diff", batch), loss = b.floats("loss", 1), sum = b.floats("norm", 1);
  Ref staging = b.floats("staging", 16 * world), few = b.floats("few", world), count = b.floats("count", 1);
  Ref myW = part(w, 0, 64, 64), myGradient = part(gradient, 0, 64, 64);
  auto input = [&](const char *name, Input::Role role, std::vector<int64_t> shape, const Ref &ref) {
    Input *in = b.plan.add_inputs();
    in->set_name(name), in->set_role(role), in->set_dtype(F32), *in->mutable_ref() = ref;
    in->mutable_shape()->Add(shape.begin(), shape.end());
  };
  auto rows = static_cast<int64_t>(batch);
  input("x", Input::DATA, {rows, 4}, x), input("y", Input::LABELS, {rows, 1}, y);
  b.plan.mutable_inputs(0)->set_limit(100); // for data files that hold integers
  input("scale", Input::LOSS_SCALE, {1}, scale), input("hyper", Input::HYPER, {16}, hyper);
  Constant *constant = b.plan.add_constants();
  *constant->mutable_ref() = count;
  Bucket *bucket = b.plan.add_buckets();
  bucket->set_name("all"), bucket->set_elements(16 * world), bucket->set_shard_elements(16), bucket->set_trainable(true);
  *bucket->mutable_parameter() = w, *bucket->add_states() = m, *bucket->add_states() = v, bucket->set_padding_elements(16 * world - 4);
  Parameter *parameter = b.plan.add_parameters();
  parameter->set_name("linear.weight"), parameter->add_shape(4), parameter->add_shape(1), parameter->set_decay(true);
  Source *source = parameter->mutable_source();
  source->set_file(folder / "w.raw"), source->set_bytes(16), source->set_dtype(F32);

  auto kernel = [&](const char *symbol, uint32_t args) {
    b.plan.add_kernels()->set_symbol(symbol), b.plan.mutable_kernels(b.plan.kernels_size() - 1)->set_args(args);
  };
  kernel("mse", 6), kernel("norm", 2), kernel("adamw", 5);
  auto launch = [](Launch *launch, uint32_t kernel, std::vector<Ref> args, uint32_t outputs, uint64_t extent) {
    launch->set_kernel(kernel), launch->set_outputs_from(outputs), launch->set_extent(extent);
    launch->mutable_args()->Add(args.begin(), args.end());
  };
  auto product = [&](const char *name, const Ref &a, const Ref &c, const Ref &right, bool transposed, uint64_t rowsOut, uint64_t inner) {
    MatMul *mm = b.step(name).mutable_matmul();
    mm->set_dtype(F32), *mm->mutable_a() = a, *mm->mutable_b() = right, *mm->mutable_c() = c, mm->set_trans_a(transposed);
    mm->set_m(rowsOut), mm->set_n(1), mm->set_k(inner), mm->set_batch(1), mm->set_lda(4), mm->set_ldb(1), mm->set_ldc(1);
  };
  auto sumOver = [&](const char *name, const Ref &ref, uint64_t tick) {
    Step &step = b.step(name, REDUCE);
    waitFor(step, COMPUTE, tick);
    Collective *all = step.mutable_collective();
    all->set_kind(Collective::ALL_REDUCE), all->set_count(1), all->set_dtype(F32);
    *all->mutable_src() = ref, *all->mutable_dst() = ref, *all->mutable_staging() = few;
  };
  product("forward", x, pred, part(w, 0, 16), false, batch, 4);
  launch(b.step("loss").mutable_launch(), 0, {pred, y, scale, count, diff, loss}, 4, 1);
  sumOver("loss of all", loss, 2);
  Program eval = b.program();
  b.fill("clear", gradient, 0);
  product("backward", x, part(gradient, 0, 16), diff, true, 4, batch);
  Step &reduce = b.step("reduce", REDUCE);
  waitFor(reduce, COMPUTE, 4);
  Collective *scatter = reduce.mutable_collective();
  scatter->set_kind(Collective::REDUCE_SCATTER), scatter->set_count(16), scatter->set_dtype(F32);
  *scatter->mutable_src() = gradient, *scatter->mutable_dst() = myGradient, *scatter->mutable_staging() = staging;
  Step &square = b.step("square");
  waitFor(square, REDUCE, 2);
  launch(square.mutable_launch(), 1, {myGradient, sum}, 1, 1);
  sumOver("norm", sum, 5);
  Step &step = b.step("update", UPDATE);
  waitFor(step, REDUCE, 2);
  Update *update = step.mutable_update();
  *update->mutable_gradient() = myGradient;
  launch(update->mutable_launch(), 2, {myGradient, hyper, myW, m, v}, 2, 16);
  Step &gather = b.step("gather", GATHER);
  waitFor(gather, UPDATE, 1);
  Collective *all = gather.mutable_collective();
  all->set_kind(Collective::ALL_GATHER), all->set_count(16), all->set_dtype(F32);
  *all->mutable_src() = myW, *all->mutable_dst() = w;
  *b.program().mutable_loss() = loss, *b.program().mutable_gradient_norm() = sum;
  eval.set_name("eval"), eval.set_role(Program::EVAL), *eval.mutable_loss() = loss;
  *b.plan.add_programs() = eval;

  static const std::string object = test::compileKernels(kKernels);
  auto countBytes = static_cast<float>(batch);
  save(folder / name, b.plan, std::as_bytes(std::span(object)), std::as_bytes(std::span(&countBytes, 1)));
}

class Zerorun : public testing::Test {
protected:
  void SetUp() override {
    folder.write("w.raw", {reinterpret_cast<const char *>(kWeights.data()), 16});
    for (int i = 0; i < 10 * 4; ++i) x.push_back(std::sin(static_cast<float>(i)));
    for (int i = 0; i < 10; ++i) y.push_back(std::cos(static_cast<float>(3 * i)));
    writeData("data.safetensors", x, y);
    writePlan(folder, "one.plan", 1, 4);
    writePlan(folder, "two.plan", 2, 2);
  }

  void writeData(const std::string &name, const std::vector<float> &xs, const std::vector<float> &ys) {
    auto layout = runtime::layoutSafetensors({{"x", runtime::Element::F32, {ys.size(), 4}}, {"y", runtime::Element::F32, {ys.size(), 1}}});
    auto bytes = [](const std::vector<float> &v) { return std::string(reinterpret_cast<const char *>(v.data()), v.size() * 4); };
    folder.write(name, layout.header + bytes(xs) + bytes(ys));
  }

  struct Outcome {
    int status;
    std::string error;
  };
  // Flags are seen by a shell in the test's folder.
  Outcome run(const std::string &plan, const std::string &flags, int world = 1) {
    std::string start = world == 1 ? "" : "mpirun -np " + std::to_string(world) + " --oversubscribe --allow-run-as-root ";
    int status = std::system(
        ("cd " + (folder / "") + " && " + start + ZERORUN + " " + plan + " --threads 1 " + flags + " >out.txt 2>err.txt").c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, folder.read("err.txt")}; // a killed shell has no status: 0 would look fine
  }
  void succeed(const std::string &plan, const std::string &flags, int world = 1) {
    Outcome outcome = run(plan, flags, world);
    ASSERT_EQ(outcome.status, 0) << outcome.error;
  }
  std::vector<nlohmann::json> metrics(const std::string &name) {
    std::stringstream lines(folder.read(name));
    std::vector<nlohmann::json> rows;
    for (std::string line; std::getline(lines, line);) rows.push_back(nlohmann::json::parse(line));
    return rows;
  }
  std::vector<float> tensor(const std::string &file, const std::string &name) {
    runtime::TensorFile opened = runtime::openTensorFile(folder / file);
    const runtime::Tensor *found = opened.find(name);
    std::vector<float> values(found ? found->bytes.size() / 4 : 0);
    if (found) std::memcpy(values.data(), found->bytes.data(), found->bytes.size());
    return values;
  }

  Folder folder;
  std::vector<float> x, y;
};

} // namespace

TEST_F(Zerorun, TrainsLikeTheFormulas) {
  succeed("one.plan",
          "--data data.safetensors --steps 6 --lr 0.1 --schedule linear --warmup 2 --weight-decay 0.1 --betas 0.8,0.9 --eps 1e-6 "
          "--metrics m.jsonl --gradients g.safetensors --export w.safetensors --trace t.json");
  std::vector<double> w(kWeights.begin(), kWeights.end()), m(4), v(4);
  auto rows = metrics("m.jsonl");
  ASSERT_EQ(rows.size(), 6u);
  for (int step = 0; step < 6; ++step) {
    double loss = 0, g[4] = {}, norm = 0, lr = step < 2 ? 0.1 * (step + 1) / 2 : 0.1 * (1 - (step - 2) / 4.0);
    for (int i = 0; i < 4; ++i) {
      size_t sample = static_cast<size_t>(step * 4 + i) % 10;
      double d = -y[sample];
      for (size_t k = 0; k < 4; ++k) d += x[sample * 4 + k] * w[k];
      loss += d * d / 4;
      for (size_t k = 0; k < 4; ++k) g[k] += 2 * d * x[sample * 4 + k] / 4;
    }
    for (size_t k = 0; k < 4; ++k) {
      norm += g[k] * g[k];
      m[k] = 0.8 * m[k] + 0.2 * g[k], v[k] = 0.9 * v[k] + 0.1 * g[k] * g[k];
      if (step == 0) {
        EXPECT_NEAR(tensor("g.safetensors", "linear.weight")[k], g[k], 1e-6);
      }
      w[k] -= lr * (m[k] / (1 - std::pow(0.8, step + 1)) / (std::sqrt(v[k] / (1 - std::pow(0.9, step + 1))) + 1e-6) + 0.1 * w[k]);
    }
    auto &row = rows[static_cast<size_t>(step)];
    EXPECT_EQ(row["step"], step + 1);
    EXPECT_NEAR(row["loss"], loss, 1e-5);
    EXPECT_NEAR(row["lr"], lr, 1e-12);
    EXPECT_NEAR(row["grad_norm"], std::sqrt(norm), 1e-5);
  }
  for (size_t k = 0; k < 4; ++k) EXPECT_NEAR(tensor("w.safetensors", "linear.weight")[k], w[k], 1e-5);
  EXPECT_GT(nlohmann::json::parse(folder.read("t.json")).size(), 40u);
}

TEST_F(Zerorun, RanksShareTheBatch) {
  std::string flags = "--data data.safetensors --steps 5 --lr 0.05 --gradients g.safetensors --export w.safetensors --metrics m.jsonl";
  succeed("one.plan", flags);
  auto w = tensor("w.safetensors", "linear.weight"), g = tensor("g.safetensors", "linear.weight");
  auto rows = metrics("m.jsonl");
  succeed("two.plan", flags + " --trace t.json", 2);
  auto w2 = tensor("w.safetensors", "linear.weight"), g2 = tensor("g.safetensors", "linear.weight");
  auto rows2 = metrics("m.jsonl");
  ASSERT_EQ(rows2.size(), 5u);
  for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(rows[i]["loss"], rows2[i]["loss"].get<double>(), 1e-6);
  for (size_t k = 0; k < 4; ++k) {
    EXPECT_NEAR(w[k], w2[k], 1e-5);
    EXPECT_NEAR(g[k], g2[k], 1e-6);
  }
  EXPECT_EQ(rows2[0]["bytes"], (nlohmann::json{{"gather", 64}, {"reduce", 64 + 4 + 4}}));
  std::set<int> ranks;
  for (const auto &event : nlohmann::json::parse(folder.read("t.json"))) ranks.insert(event["pid"].get<int>());
  EXPECT_EQ(ranks, (std::set<int>{0, 1}));
}

TEST_F(Zerorun, AResumedRunEndsWithTheSameBits) {
  std::string constant = "--data data.safetensors --lr 0.05 ";
  succeed("two.plan", constant + "--steps 7 --checkpoint c --every 3", 2);
  EXPECT_TRUE(std::filesystem::exists(folder / "c/step-7/index.json")); // the end of the run, too
  EXPECT_FALSE(std::filesystem::exists(folder / "c/step-6"));
  EXPECT_NE(run("two.plan", constant + "--steps 7 --checkpoint c", 2).error.find("already holds step-7 of another run"), std::string::npos);
  std::filesystem::remove_all(folder / "c");

  succeed("two.plan", constant + "--steps 7 --export whole.safetensors --metrics whole.jsonl", 2);
  succeed("two.plan", constant + "--steps 3 --checkpoint c --metrics m.jsonl", 2);
  succeed("two.plan", constant + "--steps 7 --resume c --checkpoint c --export resumed.safetensors --metrics m.jsonl", 2);
  EXPECT_EQ(tensor("whole.safetensors", "linear.weight"), tensor("resumed.safetensors", "linear.weight"));
  auto whole = metrics("whole.jsonl"), resumed = metrics("m.jsonl");
  ASSERT_EQ(resumed.size(), 7u);
  for (size_t i = 0; i < 7; ++i) EXPECT_EQ(whole[i]["loss"], resumed[i]["loss"]);
  // One rank goes on with what two have left.
  succeed("one.plan", constant + "--steps 9 --resume c --metrics one.jsonl");
  succeed("two.plan", constant + "--steps 9 --resume c --metrics two.jsonl", 2);
  ASSERT_EQ(metrics("one.jsonl").size(), 2u);
  EXPECT_NEAR(metrics("one.jsonl")[1]["loss"], metrics("two.jsonl")[1]["loss"].get<double>(), 1e-6);
  EXPECT_NE(run("one.plan", constant + "--steps 9 --resume c --seed 5").error.find("--seed 5"), std::string::npos);
  EXPECT_NE(run("one.plan", constant + "--steps 2 --resume c").error.find("already made 7 steps"), std::string::npos);
  succeed("one.plan", "--resume c --export only.safetensors");
  EXPECT_EQ(tensor("only.safetensors", "linear.weight"), tensor("resumed.safetensors", "linear.weight"));
}

TEST_F(Zerorun, ACommandThatIsStartedAgainGoesOn) {
  std::string job = "--data data.safetensors --lr 0.05 --resume c --checkpoint ./c --metrics m.jsonl --steps ";
  succeed("one.plan", job + "2");
  EXPECT_NE(folder.read("out.txt").find("no checkpoint in c yet"), std::string::npos);
  succeed("one.plan", job + "4");
  EXPECT_EQ(metrics("m.jsonl").size(), 4u);
  EXPECT_NE(run("one.plan", "--data data.safetensors --steps 4 --resume d --checkpoint e").error.find("'d' holds no whole"),
            std::string::npos);
}

TEST_F(Zerorun, HeldOutLossIsTheMeanOfWholeBatches) {
  succeed("one.plan", "--data data.safetensors --steps 3 --lr 0 --eval-data data.safetensors --eval-every 2 --metrics m.jsonl");
  double loss = 0;
  for (size_t i = 0; i < 8; ++i) { // ten samples make two batches of four
    double d = -y[i];
    for (size_t k = 0; k < 4; ++k) d += x[i * 4 + k] * kWeights[k];
    loss += d * d / 8;
  }
  auto rows = metrics("m.jsonl");
  EXPECT_FALSE(rows[0].contains("eval_loss"));
  EXPECT_NEAR(rows[1]["eval_loss"], loss, 1e-6);
  EXPECT_NEAR(rows[2]["eval_loss"], loss, 1e-6); // and at the end of the run
  EXPECT_NE(folder.read("out.txt").find("2 of 10 samples"), std::string::npos);
}

TEST_F(Zerorun, RefusesInOneSentence) {
  auto refused = [&](const std::string &plan, const std::string &flags, const std::string &words, int world = 1) {
    Outcome outcome = run(plan, flags, world);
    EXPECT_NE(outcome.status, 0) << flags;
    EXPECT_NE(outcome.error.find(words), std::string::npos) << flags << ": " << outcome.error;
    size_t first = outcome.error.find("zerorun: ");
    EXPECT_NE(first, std::string::npos);
    EXPECT_EQ(outcome.error.find("zerorun: ", first + 1), std::string::npos) << outcome.error;
  };
  std::string good = "--data data.safetensors --steps 2 ";
  refused("gone.plan", good, "gone.plan");
  refused("two.plan", good, "mpirun -np 2");
  refused("one.plan", good, "compiled for 1 rank", 2);
  refused("two.plan", "--data data.safetensors --steps -2", "--steps", 2);
  refused("two.plan", "--data gone.npz --steps 2", "gone.npz", 2);
  refused("one.plan", "--data data.safetensors", "--steps");
  refused("one.plan", "--steps 2", "--data");
  refused("one.plan", good + "--metrics /dev/full", "No space left");
  refused("one.plan", good + "--clip 1", "--clip");
  refused("one.plan", good + "--every 2", "--checkpoint");
  refused("one.plan", good + "--eval-every 2", "--eval-data");
  refused("one.plan", good + "--warmup 3", "--warmup");
  refused("one.plan", good + "--export w.pt", "w.pt");
  refused("one.plan", good + "--export no/such/w.safetensors", "no/such");
  refused("one.plan", good + "--resume nothing", "nothing");
  refused("one.plan", good + "--disk-path /tmp", "--disk-path is not built yet");
  refused("one.plan", good + "--simulate m.json", "--simulate is not built yet");
  refused("one.plan", good + "--schedule square", "square");
  refused("one.plan", "--data data.safetensors --steps -2", "--steps");
  std::filesystem::remove(folder / "w.raw");
  refused("two.plan", good, "w.raw", 2);
}

TEST_F(Zerorun, ARankThatFailsAloneEndsTheOthers) {
  auto layout = runtime::layoutSafetensors({{"x", runtime::Element::I32, {40, 4}}, {"y", runtime::Element::F32, {40, 1}}});
  std::vector<int32_t> values(160, 1);
  values[4 * 38 + 2] = 100; // of the tenth step, for rank 1
  folder.write("bad.safetensors", layout.header + std::string(reinterpret_cast<const char *>(values.data()), 640) + std::string(160, '\0'));
  Outcome outcome = run("two.plan", "--data bad.safetensors --steps 20 --metrics m.jsonl", 2);
  EXPECT_NE(outcome.status, 0);
  EXPECT_NE(outcome.error.find("zerorun: rank 1: 'bad.safetensors': sample 38 of 'x' has the value 100 at position 2"), std::string::npos)
      << outcome.error;
  EXPECT_EQ(metrics("m.jsonl").size(), 9u);
}

TEST_F(Zerorun, StopsBetweenStepsWhenAsked) {
  std::string command = "cd " + (folder / "") + " && exec " + ZERORUN +
                        " one.plan --threads 1 --data data.safetensors --steps 1000000000 --checkpoint c "
                        "--metrics m.jsonl >long.txt 2>err.txt";
  pid_t child = fork();
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
  for (int i = 0; i < 500 && (!std::filesystem::exists(folder / "m.jsonl") || std::filesystem::file_size(folder / "m.jsonl") < 100); ++i)
    usleep(10000);
  // A second run would remove this one's checkpoints.
  EXPECT_NE(run("one.plan", "--data data.safetensors --steps 2 --checkpoint c").error.find("written by another run"), std::string::npos);
  kill(child, SIGINT);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 130) << folder.read("err.txt");
  auto rows = metrics("m.jsonl");
  EXPECT_TRUE(std::filesystem::exists(folder / ("c/step-" + std::to_string(rows.size()) + "/index.json")));
  EXPECT_NE(folder.read("long.txt").find("stopped after step"), std::string::npos);
}

TEST_F(Zerorun, EndsAtTheStepThatDiverges) {
  for (int world : {1, 2}) {
    std::filesystem::remove_all(folder / "c");
    Outcome outcome =
        run(world == 1 ? "one.plan" : "two.plan",
            "--data data.safetensors --steps 20 --lr 1e30 --checkpoint c --every 1 --metrics m.jsonl --export w.safetensors", world);
    EXPECT_EQ(outcome.status, 1);
    EXPECT_NE(outcome.error.find("zerorun: the loss of step 2 is inf, so the run ends; step 1 is saved in c"), std::string::npos)
        << outcome.error;
    EXPECT_TRUE(std::filesystem::exists(folder / "c/step-1/index.json"));
    EXPECT_FALSE(std::filesystem::exists(folder / "c/step-2"));
    EXPECT_FALSE(std::filesystem::exists(folder / "w.safetensors"));
    ASSERT_EQ(metrics("m.jsonl").size(), 2u);
    EXPECT_TRUE(metrics("m.jsonl")[1]["loss"].is_null());
  }
}

TEST_F(Zerorun, TheSignalOfBatchSystemsReachesAllRanks) {
  std::string command =
      "cd " + (folder / "") + " && exec mpirun -np 2 --oversubscribe --allow-run-as-root " + ZERORUN +
      " two.plan --threads 1 --data data.safetensors --steps 1000000000 --checkpoint c --metrics m.jsonl >out.txt 2>err.txt";
  pid_t child = fork();
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
  for (int i = 0; i < 1000 && (!std::filesystem::exists(folder / "m.jsonl") || std::filesystem::file_size(folder / "m.jsonl") < 100); ++i)
    usleep(10000);
  kill(child, SIGUSR1);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 128 + SIGUSR1) << folder.read("err.txt");
  EXPECT_NE(folder.read("out.txt").find("go on with --resume c"), std::string::npos) << folder.read("out.txt");
}
