#include "runtime/base/error.h"
#include "runtime/process/file_limit.h"
#include "runtime/train/agreement.h"
#include "runtime/train/groups.h"
#include "runtime/train/hyper.h"
#include "runtime/train/loss_scale.h"
#include "runtime/train/programs.h"
#include "runtime/train/settings.h"
#include "runtime/train/setup.h"
#include "test/unit/full_disk.h"
#include "test/unit/run_fixtures.h"
#include <atomic>
#include <cmath>
#include <sys/resource.h>

using namespace zero;
using namespace zero::runtime;
using zero::test::refusalOf;

TEST(FileLimit, IsRaisedAsFarAsAllowed) {
  rlimit before{}, now{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low{before.rlim_max / 2, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  raiseFileLimit();
  getrlimit(RLIMIT_NOFILE, &now);
  EXPECT_EQ(now.rlim_cur, before.rlim_max);
  setrlimit(RLIMIT_NOFILE, &before);
}

TEST(Results, AnExportThatFindsNoRoomIsRefused) {
  test::Folder folder;
  plan::Plan plan;
  plan::Parameter *parameter = plan.add_parameters();
  parameter->set_name("w"), parameter->add_shape(1000);
  TrainOptions options;
  options.exportTo = folder / "new/w.safetensors";
  auto refused = [&] { return refusalOf([&] { tryResults(options, plan, 1); }); };
  EXPECT_EQ(refused(), "");
  {
    test::FullDisk full(2000);
    EXPECT_NE(refused().find("w.safetensors' could not be written: cannot make"), std::string::npos) << refused();
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "new"));
}

TEST(Results, ACheckpointThatFindsNoRoomIsRefused) {
  test::Folder folder;
  plan::Plan plan;
  plan::Bucket *bucket = plan.add_buckets();
  bucket->set_elements(1000), bucket->set_trainable(true);
  for (auto role : {plan::StateTensor::MASTER, plan::StateTensor::FIRST_MOMENT}) bucket->add_tensors()->set_role(role);
  TrainOptions options;
  options.checkpoint = folder / "c";
  test::FullDisk full(6000);
  auto refused = [&](uint64_t steps) { return refusalOf([&] { tryResults(options, plan, steps); }); };
  EXPECT_NE(refused(1).find("--checkpoint '"), std::string::npos) << refused(1);
  EXPECT_EQ(refused(0), "");
  EXPECT_FALSE(std::filesystem::exists(folder / "c"));
}

TEST(Schedule, RisesThenFalls) {
  for (Schedule schedule : {Schedule::Constant, Schedule::Cosine, Schedule::Linear}) {
    EXPECT_DOUBLE_EQ(learningRate(schedule, 1.0, 0, 100, 10), 0.1);
    EXPECT_DOUBLE_EQ(learningRate(schedule, 1.0, 9, 100, 10), 1.0);
    EXPECT_DOUBLE_EQ(learningRate(schedule, 1.0, 10, 100, 10), 1.0);
    EXPECT_DOUBLE_EQ(learningRate(schedule, 2.0, 0, 100, 0), 2.0);
  }
  EXPECT_DOUBLE_EQ(learningRate(Schedule::Constant, 1.0, 99, 100, 10), 1.0);
  EXPECT_DOUBLE_EQ(learningRate(Schedule::Linear, 1.0, 55, 100, 10), 0.5);
  EXPECT_DOUBLE_EQ(learningRate(Schedule::Cosine, 1.0, 55, 100, 10), 0.5);
  EXPECT_NEAR(learningRate(Schedule::Cosine, 1.0, 25, 100, 0), 0.8535533905932737, 1e-15);
  EXPECT_NEAR(learningRate(Schedule::Linear, 1.0, 99, 100, 0), 0.01, 1e-15);
}

TEST(Hyper, AdamwAndSgdTakeTheirOwnFlags) {
  plan::Plan adamw, sgd;
  sgd.mutable_optimizer()->set_kind(plan::SGD);
  TrainOptions options;
  Hyper hyper = resolveHyper(adamw, options);
  EXPECT_EQ(hyper.beta1, 0.9);
  EXPECT_EQ(hyper.weightDecay, 0.01);
  EXPECT_EQ(resolveHyper(sgd, options).weightDecay, 0);
  options.betas = {0.8};
  EXPECT_EQ(resolveHyper(sgd, options).momentum, 0.8);
  EXPECT_NE(refusalOf([&] { resolveHyper(adamw, options); }).find("--betas"), std::string::npos);
  options.betas = {0.8, 1.0};
  EXPECT_NE(refusalOf([&] { resolveHyper(adamw, options); }), "");
  options.betas = {0.9, 0.99999999}; // in single precision
  EXPECT_NE(refusalOf([&] { resolveHyper(adamw, options); }).find("is 1 in single precision"), std::string::npos);
  options.betas = {0.9, 0.9999999};
  EXPECT_EQ(refusalOf([&] { resolveHyper(adamw, options); }), "");
  options.betas.clear(), options.eps = 1e-6;
  EXPECT_NE(refusalOf([&] { resolveHyper(sgd, options); }).find("--eps"), std::string::npos);
  options.eps.reset(), options.clip = -1;
  EXPECT_NE(refusalOf([&] { resolveHyper(adamw, options); }).find("--clip"), std::string::npos);
}

TEST(Hyper, InputFollowsThePlansLayout) {
  auto values = hyperInput({0.9, 0.99, 1e-8, 0.1, 0.5, 2.0}, 1e-3, 1);
  EXPECT_EQ(values[plan::LR], 1e-3f);
  EXPECT_NEAR(values[plan::BIAS_CORRECTION1], 0.19, 1e-7);
  EXPECT_NEAR(values[plan::BIAS_CORRECTION2], 0.0199, 1e-7);
  // what the first update divides by is what it multiplied by, to the bit
  auto first = hyperInput({0.9, 0.999, 1e-8, 0.1, 0.5, 2.0}, 1e-3, 0);
  EXPECT_EQ(first[plan::BIAS_CORRECTION2], 1 - first[plan::BETA2]);
  EXPECT_EQ(values[plan::MOMENTUM], 0.5f);
  EXPECT_EQ(values[plan::CLIP], 2.0f);
  EXPECT_EQ(values[plan::INVERSE_LOSS_SCALE], 1.0f);
  EXPECT_EQ(hyperInput({0.9, 0.99, 1e-8, 0.1, 0.5, 0, 1024}, 1e-3, 1)[plan::CLIP], INFINITY); // any norm
  EXPECT_EQ(hyperInput({0.9, 0.99, 1e-8, 0.1, 0.5, 0, 1024}, 1e-3, 1)[plan::INVERSE_LOSS_SCALE], 0x1p-10f);
}

TEST(LossScale, FollowsTheGradients) {
  plan::Plan plan;
  TrainOptions options;
  Progress at;
  startLossScale(plan, options, at);
  EXPECT_FALSE(at.scale);
  EXPECT_EQ(refusalOf([&] { checkLossScale(plan, options); }), "");
  options.lossScale = 4;
  EXPECT_NE(refusalOf([&] { checkLossScale(plan, options); }).find("--precision f16"), std::string::npos);
  plan.set_scales_loss(true);
  checkLossScale(plan, options);
  startLossScale(plan, options, at);
  EXPECT_EQ(at.scale->value, 4u);
  for (int i = 0; i < 1999; ++i) adjustLossScale(at, true);
  EXPECT_EQ(at.scale->value, 4u);
  adjustLossScale(at, true);
  EXPECT_EQ(at.scale->value, 8u);
  for (int i = 0; i < 1999; ++i) adjustLossScale(at, true);
  adjustLossScale(at, false); // one step before it would be doubled: from the beginning
  EXPECT_EQ(at.scale->value, 4u);
  for (int i = 0; i < 1999; ++i) adjustLossScale(at, true);
  EXPECT_EQ(at.scale->value, 4u);
  EXPECT_EQ(at.skipped, 1u);
  startLossScale(plan, options, at); // resumed: as it was
  EXPECT_EQ(at.scale->good, 1999u);
  for (int i = 0; i < 3; ++i) adjustLossScale(at, false);
  EXPECT_EQ(at.scale->value, 0u);
  at.scale = LossScale{kLargestLossScale, 1999};
  adjustLossScale(at, true);
  EXPECT_EQ(at.scale->value, kLargestLossScale);
  at.scale.reset();
  options.lossScale = 0; // auto
  startLossScale(plan, options, at);
  EXPECT_EQ(at.scale->value, 65536u);
}

TEST(Groups, FollowTheNames) {
  plan::Plan plan;
  for (bool trainable : {true, false}) plan.add_buckets()->set_trainable(trainable);
  for (const char *name : {"wte.weight", "h.0.ln.weight", "h.0.ln.bias", "h.0.fc.weight", "h.0.fc.bias"}) {
    plan::Parameter *parameter = plan.add_parameters();
    parameter->set_name(name), parameter->add_pieces();
  }
  plan.mutable_parameters(0)->add_aliases()->set_name("lm_head.weight");
  plan.add_parameters()->set_name("frozen.bias"), plan.mutable_parameters(5)->add_pieces()->set_bucket(1);
  TrainOptions options;
  Hyper hyper{0.9, 0.999, 1e-8, 0.1, 0, 0};
  EXPECT_TRUE(resolveGroups(plan, options, hyper).of.empty());
  options.noDecay = {"ln", "bias$"}, options.lrScales = {{"weight", 0.5}, {"^lm_head", 2}};
  HyperGroups groups = resolveGroups(plan, options, hyper);
  auto group = [&](size_t i) { return groups.list[groups.of[i]]; };
  EXPECT_EQ(group(0), (HyperGroup{2, true})); // by the name of what is tied to it; the last one counts
  EXPECT_EQ(group(1), (HyperGroup{0.5, false}));
  EXPECT_EQ(group(2), (HyperGroup{1, false}));
  EXPECT_EQ(group(3), (HyperGroup{0.5, true}));
  EXPECT_EQ(groups.of[5], 0u);
  EXPECT_EQ(groups.report,
            (std::vector<std::string>{"weight decay 0.1 for 2 tensors, none for 3 (--no-decay)",
                                      "learning rate x 0.5 for 2 tensors, x 2 for 1 tensor, as it is for 2 tensors (--lr-scale)"}));
  auto values = hyperInput(hyper, group(1), 1e-2, 0);
  EXPECT_EQ(values[plan::LR], 5e-3f);
  EXPECT_EQ(values[plan::WEIGHT_DECAY], 0.0f);
  EXPECT_EQ(hyperInput(hyper, group(0), 1e-2, 0)[plan::WEIGHT_DECAY], 0.1f);

  auto refused = [&](std::vector<std::string> noDecay, std::vector<std::pair<std::string, double>> scales) {
    options.noDecay = noDecay, options.lrScales = scales;
    return refusalOf([&] { resolveGroups(plan, options, hyper); });
  };
  std::string sentence = refused({"h.0.lnn.weight"}, {});
  EXPECT_NE(sentence.find("--no-decay 'h.0.lnn.weight' is found in the name of no trained parameter; near ones are 'h.0.ln"),
            std::string::npos)
      << sentence;
  EXPECT_NE(refused({"frozen"}, {}), "");
  EXPECT_NE(refused({}, {{"(", 1}}).find("--lr-scale '(' is no regular expression"), std::string::npos);
  EXPECT_NE(refused({}, {{"ln", -1}}).find("must be finite, and not negative"), std::string::npos);
}

TEST(Programs, FollowAccumulationAndClipping) {
  plan::Plan plan;
  auto add = [&](plan::Program::Role role, bool clips) {
    plan.add_programs()->set_role(role);
    plan.mutable_programs(plan.programs_size() - 1)->set_clips(clips);
  };
  add(plan::Program::FIRST, false), add(plan::Program::MIDDLE, false), add(plan::Program::LAST, false), add(plan::Program::LAST, true);
  plan.set_accumulate(4);
  EXPECT_EQ(choosePrograms(plan, true, false, false).micros, (std::vector<uint32_t>{0, 1, 1, 2}));
  EXPECT_EQ(choosePrograms(plan, true, true, false).micros, (std::vector<uint32_t>{0, 1, 1, 3}));
  EXPECT_EQ(choosePrograms(plan, true, true, false).used(), (std::vector<uint32_t>{0, 1, 3}));
  plan.set_accumulate(3);
  EXPECT_EQ(choosePrograms(plan, true, false, false).micros, (std::vector<uint32_t>{0, 1, 2}));
  plan.set_accumulate(2);
  EXPECT_EQ(choosePrograms(plan, true, false, false).micros, (std::vector<uint32_t>{0, 2}));
  EXPECT_NE(refusalOf([&] { choosePrograms(plan, true, false, true); }).find("evaluation"), std::string::npos);
  plan.mutable_programs()->DeleteSubrange(3, 1);
  EXPECT_NE(refusalOf([&] { choosePrograms(plan, true, true, false); }).find("--clip"), std::string::npos);
}

TEST(Agreement, OneSpeaksAndAllStop) {
  std::atomic<int> spoke = 0, silent = 0;
  std::string sentence;
  test::Ranks(3).run([&](Communicator &communicator) {
    collectively(communicator, [] {});
    try {
      collectively(communicator, [&] {
        if (communicator.rank() >= 1) throw Error("no such file");
      });
    } catch (const CollectiveError &error) {
      ++spoke, sentence = error.what();
    } catch (const ReportedElsewhere &) {
      ++silent;
    }
    EXPECT_EQ(largest(communicator, static_cast<uint8_t>(communicator.rank())), 2);
  });
  EXPECT_EQ(spoke, 1);
  EXPECT_EQ(silent, 2);
  EXPECT_EQ(sentence, "rank 1: no such file");
}

// What each of the ranks ends with when they have these values of a setting.
static std::vector<std::string> compared(const std::vector<Settings> &given) {
  std::vector<std::string> ends(given.size());
  test::Ranks(static_cast<int>(given.size())).run([&](Communicator &communicator) {
    auto rank = static_cast<size_t>(communicator.rank());
    try {
      requireSame(communicator, given[rank]);
    } catch (const CollectiveError &error) {
      ends[rank] = error.what();
    } catch (const ReportedElsewhere &) {
      ends[rank] = "silent";
    }
  });
  return ends;
}

TEST(Agreement, ADifferenceNamesTheFlagAndTheRanks) {
  Settings usual{{"--lr", "0.001"}, {"--clip", ""}}, clipped{{"--lr", "0.001"}, {"--clip", "0.5"}},
      other{{"--lr", "0.01"}, {"--clip", "1"}};
  EXPECT_EQ(compared({usual, usual, usual}), (std::vector<std::string>{"", "", ""}));
  EXPECT_EQ(compared({usual, usual, usual, clipped}),
            (std::vector<std::string>{"--clip is not given on ranks 0 to 2, but 0.5 on rank 3; all ranks of a run must be given the same",
                                      "silent", "silent", "silent"}));
  EXPECT_EQ(compared({usual, other, usual})[0],
            "--lr is 0.001 on ranks 0, 2, but 0.01 on rank 1; --clip differs too; all ranks of a run must be given the same");
  // One that has files which another one lacks.
  EXPECT_EQ(compared({{{"a", "x"}}, {{"a", "x"}, {"b", "y"}}})[0],
            "b is unknown on rank 0, but y on rank 1; all ranks of a run must be given the same");
  std::vector<Settings> all;
  for (int rank = 0; rank < 7; ++rank) all.push_back({{"--seed", std::to_string(rank)}});
  EXPECT_NE(compared(all)[0].find("3 on rank 3, but still another on 3 more; "), std::string::npos) << compared(all)[0];
}

TEST(Agreement, FlagsAreComparedByTheirMeaning) {
  TrainOptions one, two;
  EXPECT_EQ(flagSettings(one), flagSettings(two));
  one.data = "/here/data.bin", two.data = "/there/copy.bin", two.threads = 7, two.plan = "other.plan";
  one.checkpoint = "/a", two.checkpoint = "/b", one.exportTo = "/a/x.onnx", two.exportTo = "/b/x.onnx";
  EXPECT_EQ(flagSettings(one), flagSettings(two)); // contents and folders are compared by themselves
  two.exportTo = "/b/y.onnx";
  EXPECT_NE(flagSettings(one), flagSettings(two)); // all ranks write one file
  for (auto change : std::vector<std::function<void(TrainOptions &)>>{
           [](auto &o) { o.shuffle = true; }, [](auto &o) { o.noDecay = {"bias"}; },
           [](auto &o) {
             o.lrScales = {{"wte", 0.5}};
           },
           [](auto &o) { o.reading.ignored = {"mask"}; }, [](auto &o) { o.reading.labels = *labelRule("shifted"); }}) {
    two = one, change(two);
    EXPECT_NE(flagSettings(one), flagSettings(two));
  }
  two = one, two.resume = "/a";
  EXPECT_NE(flagSettings(one), flagSettings(two));
}

TEST(Hyper, CheckpointsThatStay) {
  EXPECT_EQ(keptBy({}), 2u);
  EXPECT_EQ(keptBy({{"--lr", "7"}, {"--keep", "20"}}), 20u);
  EXPECT_EQ(keptBy({{"--keep", "x"}}), 2u);
  EXPECT_EQ(keptBy({{"--keep", "0"}}), 2u);
}

TEST(Hyper, ChangesAgainstACheckpointAreSaid) {
  plan::Plan adamw, sgd;
  sgd.mutable_optimizer()->set_kind(plan::SGD);
  TrainOptions options;
  auto settings = [&](const plan::Plan &plan) { return hyperSettings(plan, options, resolveHyper(plan, options)); };
  Settings before = settings(adamw);
  options.betas = {0.9, 0.999}, options.eps = 1e-8; // the defaults, given
  EXPECT_TRUE(changes(before, settings(adamw)).empty());
  options.betas = {0.9, 0.95}, options.lr = 0.5;
  EXPECT_EQ(changes(before, settings(adamw)), (std::vector<std::string>{"--lr is 0.5, where the checkpoint's run had 0.001",
                                                                        "--betas is 0.9,0.95, where the checkpoint's run had 0.9,0.999"}));
  EXPECT_TRUE(changes({}, settings(adamw)).empty()); // an older checkpoint remembers nothing
  options = {}, options.schedule = Schedule::Cosine, options.steps = 10;
  before = settings(sgd), options.steps = 20;
  EXPECT_EQ(changes(before, settings(sgd)).size(), 1u); // the schedule ends elsewhere
}
