// How a run ends that does not come to its end: refused, failed, diverged or stopped.
#include "test/unit/zerorun_fixture.h"
#include <map>

using namespace zero;
using namespace zero::test;

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
  refused("one.plan", good + "--metrics w.raw", "the model's weights and --metrics are the same file 'w.raw'");
  EXPECT_EQ(std::filesystem::file_size(folder / "w.raw"), 16u);
  refused("one.plan", good + "--export no/such/w.safetensors", "no/such");
  refused("one.plan", good + "--resume nothing", "nothing");
  refused("one.plan", good + "--simulate m.json", "--data has no say with --simulate");
  refused("one.plan", good + "--schedule square", "square");
  refused("one.plan", "--data data.safetensors --steps -2", "--steps");
  std::filesystem::remove(folder / "w.raw");
  refused("two.plan", good, "w.raw", 2);
}

// A sample of the tenth step is bad, on two ranks for rank 1.
static std::string badData() {
  auto layout = runtime::layoutSafetensors({{"x", runtime::Element::I32, {40, 4}}, {"y", runtime::Element::F32, {40, 1}}});
  std::vector<int32_t> values(160, 1);
  values[4 * 38 + 2] = 100;
  return layout.header + std::string(reinterpret_cast<const char *>(values.data()), 640) + std::string(160, '\0');
}

TEST_F(Zerorun, ABadSampleCostsNoStep) {
  folder.write("bad.safetensors", badData());
  Outcome outcome = run("one.plan", "--data bad.safetensors --steps 20 --checkpoint c --export w.safetensors --metrics m.jsonl");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.error.find("sample 38 of 'x' has the value 100 at position 2"), std::string::npos) << outcome.error;
  EXPECT_NE(outcome.error.find("; step 9 is saved in c\n"), std::string::npos) << outcome.error;
  EXPECT_TRUE(std::filesystem::exists(folder / "c/step-9/index.json"));
  EXPECT_EQ(metrics("m.jsonl").size(), 9u);
  // Held-out data would be read after the last step.
  outcome = run("one.plan", "--data data.safetensors --eval-data bad.safetensors --steps 20 --metrics none.jsonl");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.error.find("'bad.safetensors': sample 38 of 'x'"), std::string::npos) << outcome.error;
  EXPECT_FALSE(std::filesystem::exists(folder / "none.jsonl"));
}

TEST_F(Zerorun, ABadSampleOfOneRankCostsNoStepOfAny) {
  folder.write("bad.safetensors", badData());
  const std::string why = "zerorun: rank 1: 'bad.safetensors': sample 38 of 'x' has the value 100 at position 2";
  Outcome outcome = run("two.plan", "--data bad.safetensors --steps 20 --metrics m.jsonl --checkpoint c", 2);
  EXPECT_NE(outcome.status, 0);
  EXPECT_NE(outcome.error.find(why), std::string::npos) << outcome.error;
  EXPECT_NE(outcome.error.find("; step 9 is saved in c\n"), std::string::npos) << outcome.error;
  EXPECT_TRUE(std::filesystem::exists(folder / "c/step-9/index.json"));
  EXPECT_EQ(metrics("m.jsonl").size(), 9u);
  // Nothing is begun from there, nor lost.
  outcome = run("two.plan", "--data bad.safetensors --steps 20 --metrics m.jsonl --checkpoint c --resume c", 2);
  EXPECT_NE(outcome.status, 0);
  EXPECT_NE(outcome.error.find(why), std::string::npos) << outcome.error;
  EXPECT_TRUE(std::filesystem::exists(folder / "c/step-9/index.json"));
  EXPECT_EQ(metrics("m.jsonl").size(), 9u);
}

TEST_F(Zerorun, StopsBetweenStepsWhenAsked) {
  int status = stop("", "one.plan --data data.safetensors --steps 1000000000 --checkpoint c --metrics m.jsonl", SIGINT, [&] {
    if (!hasSteps("m.jsonl")) return false;
    // A second run would remove this one's checkpoints.
    Outcome second = run("one.plan", "--data data.safetensors --steps 2 --checkpoint c");
    EXPECT_NE(second.error.find("written by another run"), std::string::npos);
    second = run("one.plan", "--data data.safetensors --steps 2 --metrics m.jsonl");
    EXPECT_NE(second.error.find("--metrics 'm.jsonl' is being written by another run"), std::string::npos) << second.error;
    return true;
  });
  EXPECT_EQ(status, 130) << folder.read("err.txt");
  auto rows = metrics("m.jsonl");
  EXPECT_TRUE(std::filesystem::exists(folder / ("c/step-" + std::to_string(rows.size()) + "/index.json")));
  EXPECT_NE(folder.read("long.txt").find("stopped after step"), std::string::npos);
}

TEST_F(Zerorun, SignalsIgnoredFromOutsideStayIgnored) {
  int status = stop("env --ignore-signal=INT ", "one.plan --data data.safetensors --steps 3000 --metrics m.jsonl", SIGINT,
                    [&] { return hasSteps("m.jsonl"); });
  EXPECT_EQ(status, 0) << folder.read("err.txt");
  EXPECT_EQ(metrics("m.jsonl").size(), 3000u);
}

TEST_F(Zerorun, ALimitOnFilesIsSaidLikeAFullDisk) {
  int status = std::system(("cd " + (folder / "") + " && ulimit -f 100 && exec " + ZERORUN +
                            " one.plan --threads 1 --data data.safetensors --steps 2000 --metrics m.jsonl >/dev/null 2>err.txt")
                               .c_str());
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 1);
  EXPECT_NE(folder.read("err.txt").find("cannot write --metrics 'm.jsonl': File too large"), std::string::npos) << folder.read("err.txt");
}

// The folder of the trace goes while the run waits for a reader of its metrics.
TEST_F(Zerorun, WeightsComeBeforeTheTrace) {
  std::string reader = "(until test -d c; do sleep 0.1; done; rm -r t; exec timeout 60 cat m >lines) & ";
  std::string train =
      " one.plan --threads 1 --data data.safetensors --steps 9 --checkpoint c --metrics m --trace t/t.json --export w.safetensors";
  int status = std::system(
      ("cd " + (folder / "") + " && mkfifo m && mkdir t && { " + reader + "exec " + ZERORUN + train + " >out.txt 2>err.txt; }").c_str());
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 1);
  EXPECT_NE(folder.read("err.txt").find("cannot create 't/t.json.partial'"), std::string::npos) << folder.read("err.txt");
  EXPECT_EQ(tensor("w.safetensors", "linear.weight").size(), 4u);
}

// A user who is not root.
TEST_F(Zerorun, MetricsAreWrittenWhereTheFileAllowsIt) {
  std::filesystem::create_directory(folder / "closed");
  folder.write("closed/m.jsonl", "");
  std::filesystem::permissions(folder / "closed", std::filesystem::perms(0555));
  std::string start = geteuid() == 0 ? "setpriv --bounding-set=-dac_override,-dac_read_search " : "";
  auto status = [&](const std::string &file) {
    return std::system(("cd " + (folder / "") + " && " + start + ZERORUN +
                        " one.plan --threads 1 --data data.safetensors --steps 3 --metrics " + file + " >out.txt 2>err.txt")
                           .c_str());
  };
  EXPECT_EQ(status("closed/m.jsonl"), 0) << folder.read("err.txt");
  EXPECT_EQ(metrics("closed/m.jsonl").size(), 3u);
  EXPECT_EQ(status("/dev/null"), 0) << folder.read("err.txt");
  EXPECT_NE(status("closed/new.jsonl"), 0);
  EXPECT_NE(folder.read("err.txt").find("the folder 'closed' cannot be written"), std::string::npos) << folder.read("err.txt");
  std::filesystem::permissions(folder / "closed", std::filesystem::perms(0755));
}

TEST_F(Zerorun, OnlyRankZeroNeedsTheFolderOfMetrics) {
  std::filesystem::create_directories(folder / "first/logs");
  std::filesystem::create_directories(folder / "second");
  std::string train = std::string(ZERORUN) + " ../two.plan --threads 1 --data ../data.safetensors --steps 3 --metrics logs/m.jsonl ";
  ASSERT_EQ(std::system(("mpirun --oversubscribe --allow-run-as-root -np 1 -wdir " + (folder / "first") + " " + train + ": -np 1 -wdir " +
                         (folder / "second") + " " + train + ">" + (folder / "out.txt") + " 2>" + (folder / "err.txt"))
                            .c_str()),
            0)
      << folder.read("err.txt");
  EXPECT_EQ(metrics("first/logs/m.jsonl").size(), 3u);
}

TEST_F(Zerorun, AtTheLastStepWhatIsAskedForIsDoneOrRefused) {
  std::string job = "--data data.safetensors --steps 3 --resume c ";
  succeed("one.plan", "--data data.safetensors --steps 3 --checkpoint c");
  succeed("one.plan", job + "--eval-data data.safetensors --export w.safetensors");
  EXPECT_NE(folder.read("out.txt").find("held-out loss"), std::string::npos) << folder.read("out.txt");
  EXPECT_EQ(tensor("w.safetensors", "linear.weight").size(), 4u);
  Outcome outcome = run("one.plan", job + "--gradients g.safetensors");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.error.find("--gradients shows the first step's gradients, but checkpoint 'c/step-3' has made all 3 steps"),
            std::string::npos)
      << outcome.error;
}

// Evaluation on a large set may take longer than a batch system waits.
TEST_F(Zerorun, StopsInsideAnEvaluation) {
  const uint64_t samples = 20'000'000; // a file without blocks: it takes no room, and minutes to evaluate
  auto layout = runtime::layoutSafetensors({{"x", runtime::Element::F32, {samples, 4}}, {"y", runtime::Element::F32, {samples, 1}}});
  folder.write("large.safetensors", layout.header);
  std::filesystem::resize_file(folder / "large.safetensors", layout.bytes);
  for (std::string flags : {"--data data.safetensors --steps 9 --eval-every 1 --checkpoint c", "--steps 0"}) {
    auto begin = std::chrono::steady_clock::now();
    int status = stop("", "one.plan --eval-data large.safetensors " + flags, SIGTERM, [] { return usleep(300000) == 0; });
    EXPECT_EQ(status, 128 + SIGTERM) << folder.read("err.txt");
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  }
  EXPECT_TRUE(std::filesystem::exists(folder / "c/step-1/index.json"));
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
  int status = stop("mpirun -np 2 --oversubscribe --allow-run-as-root ",
                    "two.plan --data data.safetensors --steps 1000000000 --checkpoint c --metrics m.jsonl", SIGUSR1,
                    [&] { return hasSteps("m.jsonl"); });
  EXPECT_EQ(status, 128 + SIGUSR1) << folder.read("err.txt");
  EXPECT_NE(folder.read("long.txt").find("go on with --resume c"), std::string::npos) << folder.read("long.txt");
}

// A thread that could be interrupted may be inside the library of products, whose stack pointer lies in the heap.
TEST_F(Zerorun, NoThreadCanBeInterrupted) {
  constexpr uint64_t kStops = 1 << (SIGINT - 1) | 1 << (SIGTERM - 1) | 1 << (SIGHUP - 1) | 1 << (SIGUSR1 - 1) | 1 << (SIGUSR2 - 1);
  auto ranks = [&] { // processes that run in the test's folder
    std::vector<std::filesystem::path> found;
    std::error_code gone;
    for (const auto &process : std::filesystem::directory_iterator("/proc")) {
      if (process.path().filename().string().find_first_not_of("0123456789") != std::string::npos) continue;
      if (std::filesystem::equivalent(process.path() / "cwd", folder / "", gone) &&
          std::filesystem::read_symlink(process.path() / "exe", gone) == ZERORUN)
        found.push_back(process.path());
    }
    return found;
  };
  struct Start {
    std::string launcher, plan;
    size_t ranks;
  };
  for (const Start &start : {Start{"", "one.plan", 1}, Start{"mpirun -np 2 --oversubscribe --allow-run-as-root ", "two.plan", 2}}) {
    std::filesystem::remove(folder / "m.jsonl");
    int status = stop(start.launcher, start.plan + " --data data.safetensors --steps 1000000000 --metrics m.jsonl", SIGUSR1, [&] {
      if (!hasSteps("m.jsonl")) return false;
      EXPECT_EQ(ranks().size(), start.ranks);
      for (const auto &rank : ranks()) {
        int open = 0; // the one that waits; while it does, the system shows them as not blocked
        for (const auto &thread : std::filesystem::directory_iterator(rank / "task")) {
          std::ifstream file(thread.path() / "status");
          std::map<std::string, uint64_t> signals; // SigBlk, SigIgn, SigCgt
          for (std::string line; std::getline(file, line);)
            if (line.starts_with("Sig") && !line.starts_with("SigQ")) signals[line.substr(0, 6)] = std::stoull(line.substr(7), nullptr, 16);
          open += (signals["SigBlk"] & kStops) != kStops;
          EXPECT_EQ(signals["SigCgt"] & kStops, 0u) << thread.path(); // no handler
          EXPECT_TRUE(signals["SigIgn"] >> (SIGPIPE - 1) & 1) << thread.path();
        }
        EXPECT_LE(open, 1) << rank;
      }
      return true;
    });
    EXPECT_EQ(status, 128 + SIGUSR1) << folder.read("err.txt");
  }
}

TEST_F(Zerorun, TheSameSignalOnceMoreEndsTheRunAtOnce) {
  std::string command = "cd " + (folder / "") + " && mkfifo m && exec " + ZERORUN +
                        " one.plan --threads 1 --data data.safetensors --steps 9 --checkpoint c --metrics m >long.txt 2>err.txt";
  pid_t child = fork();
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
  // The run waits for a reader of its metrics, as it would inside a long step.
  auto until = [](const std::function<bool()> &holds) {
    for (int i = 0; i < 1000 && !holds(); ++i) usleep(10000);
    usleep(200000);
  };
  until([&] { return std::filesystem::exists(folder / "c"); });
  kill(child, SIGTERM);
  until([&] { return folder.read("err.txt").find("stopping after this step") != std::string::npos; });
  kill(child, SIGINT); // another one
  usleep(100000);
  EXPECT_EQ(kill(child, 0), 0);
  EXPECT_EQ(waitpid(child, nullptr, WNOHANG), 0);
  kill(child, SIGTERM);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
}

TEST_F(Zerorun, NobodyReadsAnyMore) {
  auto shell = [&](const std::string &command) {
    int status = std::system(("cd " + (folder / "") + " && bash -c '" + command + "' 2>err.txt").c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  };
  std::string train = std::string(ZERORUN) + " one.plan --threads 1 --data data.safetensors --steps 1000000000 ";
  EXPECT_EQ(shell(train + "--checkpoint c | head -n 1 >first.txt; exit ${PIPESTATUS[0]}"), 128 + SIGPIPE);
  EXPECT_NE(folder.read("err.txt").find("zerorun: cannot write to standard output: Broken pipe"), std::string::npos)
      << folder.read("err.txt");
  EXPECT_NE(folder.read("err.txt").find("go on with --resume c"), std::string::npos) << folder.read("err.txt");
  EXPECT_FALSE(std::filesystem::is_empty(folder / "c"));
  EXPECT_NE(folder.read("first.txt"), "");
  EXPECT_EQ(shell(train + "2>&1 | head -n 1; exit ${PIPESTATUS[0]}"), 128 + SIGPIPE); // stderr as well
  // A reader of metrics: the run ends like one on a full disk, but with its checkpoint.
  EXPECT_EQ(shell("mkfifo lines; head -n 2 lines >two.txt & " + train + "--metrics lines --checkpoint d"), 1);
  EXPECT_NE(folder.read("err.txt").find("cannot write --metrics \'lines\': Broken pipe"), std::string::npos) << folder.read("err.txt");
  EXPECT_NE(folder.read("err.txt").find("go on with --resume d"), std::string::npos) << folder.read("err.txt");
  EXPECT_FALSE(std::filesystem::is_empty(folder / "d"));
}

// The next file that is opened would have the number of the stream, and what is said would be written into it.
TEST_F(Zerorun, StandardStreamsThatAreClosedAreNoFiles) {
  std::string flags =
      "one.plan --threads 1 --data data.safetensors --steps 3 --metrics m.jsonl --export w.safetensors --checkpoint c --resume c";
  ASSERT_EQ(std::system(("cd " + (folder / "") + " && " + ZERORUN + " " + flags + " <&- >&- 2>&-").c_str()), 0);
  EXPECT_EQ(metrics("m.jsonl").size(), 3u);
  EXPECT_EQ(tensor("w.safetensors", "linear.weight").size(), 4u);
}

TEST_F(Zerorun, WhatCannotBeWrittenIsRefusedBeforeTraining) {
  std::string train = "--data data.safetensors --steps 1000000000 ", longName(252, 'x');
  Outcome outcome = run("one.plan", train + "--export " + longName.substr(0, 240) + ".safetensors"); // with .partial too long a name
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.error.find("could not be written: cannot create"), std::string::npos) << outcome.error;
  // What cannot be looked at is not taken for what is not there.
  std::filesystem::create_symlink("loop", folder / "loop");
  for (const char *flags : {"--export loop/w.safetensors", "--metrics loop", "--checkpoint loop/c", "--resume loop"}) {
    outcome = run("one.plan", train + flags);
    EXPECT_EQ(outcome.status, 1);
    EXPECT_NE(outcome.error.find("Too many levels of symbolic links"), std::string::npos) << flags << outcome.error;
    EXPECT_EQ(outcome.error.find("filesystem error"), std::string::npos) << outcome.error;
  }
  // What somebody has put there is not written through.
  folder.write("theirs", "theirs");
  std::filesystem::create_symlink("theirs", folder / "w.safetensors.partial");
  for (const char *flag : {"--export", "--gradients"}) {
    outcome = run("one.plan", train + flag + " w.safetensors");
    EXPECT_EQ(outcome.status, 1);
    EXPECT_NE(outcome.error.find("w.safetensors.partial\' is a symbolic link"), std::string::npos) << outcome.error;
  }
  std::filesystem::remove(folder / "w.safetensors.partial");
  std::filesystem::create_hard_link(folder / "theirs", folder / "w.safetensors.partial");
  EXPECT_NE(run("one.plan", train + "--export w.safetensors").error.find("another name"), std::string::npos);
  EXPECT_EQ(folder.read("theirs"), "theirs");
}
