// What a run computes and leaves behind.
#include "test/unit/zerorun_fixture.h"

using namespace zero;
using namespace zero::test;

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
  for (const auto &row : rows2) EXPECT_EQ(row["bytes"], (nlohmann::json{{"gather", 64}, {"reduce", 64 + 4 + 4}})); // of one step
  std::set<int> ranks;
  for (const auto &event : nlohmann::json::parse(folder.read("t.json"))) ranks.insert(event["pid"].get<int>());
  EXPECT_EQ(ranks, (std::set<int>{0, 1}));
}

TEST_F(Zerorun, ATraceHoldsTheFirstTenSteps) {
  succeed("one.plan", "--data data.safetensors --steps 12 --trace t.json");
  int updates = 0;
  for (const auto &event : nlohmann::json::parse(folder.read("t.json"))) updates += event["name"] == "update" && event["ph"] == "X";
  EXPECT_EQ(updates, 10);
}

TEST_F(Zerorun, AResumedRunEndsWithTheSameBits) {
  std::string constant = "--data data.safetensors --lr 0.05 ";
  succeed("two.plan", constant + "--steps 7 --checkpoint c --every 3", 2);
  EXPECT_TRUE(std::filesystem::exists(folder / "c/step-7/index.json")); // the end of the run, too
  EXPECT_TRUE(std::filesystem::exists(folder / "c/step-6/index.json")); // two stay
  EXPECT_FALSE(std::filesystem::exists(folder / "c/step-3"));
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

// Whichever rank notices it, all go on from the same older checkpoint.
TEST_F(Zerorun, ADamagedCheckpointIsPassedOver) {
  std::string constant = "--data data.safetensors --lr 0.05 ";
  succeed("two.plan", constant + "--steps 8 --export whole.safetensors", 2);
  auto whole = tensor("whole.safetensors", "linear.weight");
  namespace fs = std::filesystem;
  auto change = [&](const std::string &name, auto how) { folder.write(name, how(folder.read(name))); };
  auto flipped = [](std::string bytes) { return bytes[bytes.size() / 2] ^= 1, bytes; };
  auto inState = [](std::string bytes) {
    return bytes[bytes.size() - 3 * 4 - 8] ^= 1, bytes;
  }; // before the checksums: of v, which rank 0 alone reads
  auto cut = [](const std::string &bytes) { return bytes.substr(0, bytes.size() - 1); };
  struct Case {
    std::string words;
    std::function<void()> damage;
  };
  for (const Case &c : {Case{"'c/step-6/rank-0.safetensors' is damaged", [&] { change("c/step-6/rank-0.safetensors", inState); }},
                        Case{"rank-0.safetensors' is broken", [&] { change("c/step-6/rank-0.safetensors", cut); }},
                        Case{"lacks its file 'rank-0.safetensors'", [&] { fs::remove(folder / "c/step-6/rank-0.safetensors"); }},
                        Case{"index.json' is damaged", [&] { change("c/step-6/index.json", flipped); }}}) {
    fs::remove_all(folder / "c");
    succeed("two.plan", constant + "--steps 6 --checkpoint c --every 3", 2);
    c.damage();
    bool again = c.words.starts_with("lacks"); // the step of the damaged one is saved again
    Outcome outcome =
        run("two.plan", constant + "--steps 8 --resume c --checkpoint c --export w.safetensors" + (again ? " --every 3" : ""), 2);
    EXPECT_EQ(outcome.status, 0) << outcome.error;
    EXPECT_NE(outcome.error.find(c.words), std::string::npos) << c.words << ": " << outcome.error;
    EXPECT_NE(outcome.error.find("; the run goes on from 'c/step-3'"), std::string::npos) << outcome.error;
    EXPECT_NE(folder.read("out.txt").find("resumed from c/step-3 at step 3"), std::string::npos);
    EXPECT_EQ(tensor("w.safetensors", "linear.weight"), whole);
    std::set<std::string> names;
    for (const auto &entry : fs::directory_iterator(folder / "c")) names.insert(entry.path().filename());
    EXPECT_EQ(names, (std::set<std::string>{again ? "step-6" : "step-3", "step-6.damaged", "step-8"}));
  }
  // A run that was killed before it had removed what is too much.
  fs::copy(folder / "c/step-8", folder / "c/step-2", fs::copy_options::recursive);
  succeed("two.plan", constant + "--steps 8 --resume c --checkpoint c", 2);
  EXPECT_TRUE(!fs::exists(folder / "c/step-2") && fs::exists(folder / "c/step-3"));
  // All of them, and one that was named.
  for (const char *step : {"3", "8"}) change(std::string("c/step-") + step + "/index.json", cut);
  EXPECT_NE(run("two.plan", constant + "--steps 9 --resume c", 2).error.find("none of the 1 checkpoints beside it"), std::string::npos);
  EXPECT_NE(run("one.plan", constant + "--steps 9 --resume c/step-8").error.find("resume another checkpoint"), std::string::npos);
  EXPECT_TRUE(fs::exists(folder / "c/step-8"));
}

// What a model's update leaves is looked at before it takes the place of something whole.
TEST_F(Zerorun, NumbersThatAreNotFiniteAreNeitherSavedNorExported) {
  for (int world : {1, 2}) {
    std::string plan = world == 1 ? "one.plan" : "two.plan";
    std::filesystem::remove_all(folder / "c");
    succeed(plan, "--data data.safetensors --steps 2 --checkpoint c", world);
    // 1e39 is infinite in f32: loss and norm of step 3 are from before its update, and finite.
    std::string on = "--data data.safetensors --lr 1e39 --steps 3 --resume c ";
    Outcome outcome = run(plan, on + "--checkpoint c --keep 1 --metrics m.jsonl", world);
    EXPECT_EQ(outcome.status, 1);
    EXPECT_NE(outcome.error.find("the run has diverged: parameter 'linear.weight' holds"), std::string::npos) << outcome.error;
    EXPECT_NE(outcome.error.find("after step 3, so nothing of it is saved, and 'c/step-2' stays the last checkpoint"), std::string::npos)
        << outcome.error;
    EXPECT_FALSE(metrics("m.jsonl")[0]["loss"].is_null());
    EXPECT_TRUE(std::filesystem::exists(folder / "c/step-2/index.json"));
    EXPECT_FALSE(std::filesystem::exists(folder / "c/step-3"));
    outcome = run(plan, on + "--export w.safetensors", world);
    EXPECT_EQ(outcome.status, 1);
    EXPECT_NE(outcome.error.find("'linear.weight' holds"), std::string::npos) << outcome.error;
    EXPECT_NE(outcome.error.find("so it is not exported"), std::string::npos) << outcome.error;
    EXPECT_FALSE(std::filesystem::exists(folder / "w.safetensors"));
  }
}

TEST_F(Zerorun, ACommandThatIsStartedAgainGoesOn) {
  std::string job = "--data data.safetensors --lr 0.05 --resume c --checkpoint ./c --metrics m.jsonl --steps ";
  succeed("one.plan", job + "2");
  EXPECT_NE(folder.read("out.txt").find("no checkpoint in c yet"), std::string::npos);
  succeed("one.plan", job + "4");
  EXPECT_EQ(metrics("m.jsonl").size(), 4u);
  EXPECT_NE(run("one.plan", "--data data.safetensors --steps 4 --resume d --checkpoint e")
                .error.find("'d' holds no checkpoint: there is no such folder"),
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

// The same numbers wherever the optimizer's state lies, in what is exported and in what is saved.
TEST_F(Zerorun, StateOnDisk) {
  std::string flags = "--data data.safetensors --steps 5 --lr 0.05 --metrics m.jsonl --checkpoint ";
  succeed("two.plan", flags + "c --export w.safetensors", 2);
  succeed("disk.plan", flags + "d --export v.safetensors --disk-path a,on/the/way", 2);
  EXPECT_EQ(tensor("w.safetensors", "linear.weight"), tensor("v.safetensors", "linear.weight"));
  for (const auto &row : metrics("m.jsonl"))
    EXPECT_EQ(row["bytes"], (nlohmann::json{{"gather", 64}, {"reduce", 64 + 4 + 4}, {"disk_read", 8192}, {"disk_write", 8192}}));
  std::string said = folder.read("out.txt");
  EXPECT_NE(said.find("\n8192 bytes on disk per rank (0.0 MiB), in a and on/the/way\n"), std::string::npos) << said;
  size_t last = said.find("\n81920 bytes written to disk (0.1 MiB) and "); // 5 steps of 2 ranks
  EXPECT_NE(last, std::string::npos) << said;
  for (const char *disk : {"a", "on/the/way"}) EXPECT_TRUE(std::filesystem::is_empty(folder / disk));
  // Each resumes the other's.
  flags = "--data data.safetensors --steps 8 --lr 0.05 ";
  succeed("disk.plan", flags + "--resume c --export c.safetensors", 2);
  said = folder.read("out.txt");
  EXPECT_NE(said.find(", in ., where the plan lies (--disk-path chooses other disks)\n"), std::string::npos) << said;
  succeed("two.plan", flags + "--disk-path a --resume d --export d.safetensors", 2);
  EXPECT_EQ(tensor("c.safetensors", "linear.weight"), tensor("d.safetensors", "linear.weight"));
  EXPECT_NE(folder.read("out.txt").find("--disk-path is not needed: the plan keeps nothing on disk"), std::string::npos);
}
