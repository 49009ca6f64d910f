// What is left when a disk is full, or belongs to another run: whole files or none.
#include "runtime/checkpoint/lock.h"
#include "runtime/checkpoint/shared_file.h"
#include "runtime/report/metrics.h"
#include "test/unit/full_disk.h"
#include "test/unit/run_fixtures.h"
#include <sys/stat.h>
#include <sys/wait.h>

using namespace zero;
using namespace zero::runtime;
using zero::test::Folder;
using zero::test::FullDisk;
using zero::test::refusalOf;

TEST(FullDisk, LeavesNoHalfLineOfMetrics) {
  Folder folder;
  StepRecord record;
  record.step = 1;
  std::string line = metricsLine(record) + "\n";
  {
    Metrics metrics(folder / "m.jsonl", std::nullopt);
    metrics.write(record), metrics.write(record);
    FullDisk full(line.size() * 5 / 2);
    EXPECT_NE(refusalOf([&] { metrics.write(record); }).find("cannot write --metrics"), std::string::npos);
  }
  EXPECT_EQ(folder.read("m.jsonl"), line + line);
  {
    FullDisk full(10);
    EXPECT_EQ(refusalOf([&] { Metrics(folder / "m.jsonl", 1); }), "");
  }
  EXPECT_EQ(folder.read("m.jsonl"), line + line); // the past is not lost in going on
}

TEST(FullDisk, LeavesNoPartOfAResult) {
  Folder folder;
  folder.write("w.safetensors", "the one before");
  test::Ranks(1).run([&](Communicator &communicator) {
    FullDisk full(1000);
    auto reserve = [](const File &file) { file.reserve(2000); };
    EXPECT_NE(refusalOf([&] { SharedFile(folder / "w.safetensors", communicator, reserve); }), "");
    EXPECT_FALSE(std::filesystem::exists(folder / "w.safetensors.partial"));
    std::string much(2000, 'x');
    EXPECT_NE(refusalOf([&] {
                SharedFile shared(folder / "w.safetensors", communicator, [](const File &) {});
                shared.file().write(0, much.data(), much.size());
              }),
              "");
  });
  EXPECT_FALSE(std::filesystem::exists(folder / "w.safetensors.partial"));
  EXPECT_EQ(folder.read("w.safetensors"), "the one before");
}

TEST(SharedFile, OneRunAtATime) {
  Folder folder;
  test::Ranks(1).run([&](Communicator &communicator) {
    auto first = std::make_unique<SharedFile>(folder / "w.bin", communicator, [](const File &empty) { empty.write(0, "first", 5); });
    auto second = [&] { SharedFile(folder / "w.bin", communicator, [](const File &empty) { empty.write(0, "2nd", 3); }).publish(); };
    EXPECT_NE(refusalOf(second).find("w.bin.partial' is being written by another run"), std::string::npos);
    first->publish();
    EXPECT_EQ(folder.read("w.bin"), "first");
    EXPECT_EQ(refusalOf(second), ""); // what is published is nobody's any more
    EXPECT_EQ(folder.read("w.bin"), "2nd");
  });
}

TEST(SharedFile, ReplacesWhatALinkPointsTo) {
  Folder folder;
  folder.write("real.safetensors", "the one before");
  std::filesystem::create_symlink("real.safetensors", folder / "latest.safetensors");
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  test::Ranks(2).run([&](Communicator &communicator) {
    SharedFile shared(folder / "latest.safetensors", communicator, [](const File &empty) { empty.write(0, "new", 3); });
    shared.publish();
    EXPECT_NE(refusalOf([&] { SharedFile(folder / "pipe", communicator, [](const File &) {}); }), "");
  });
  EXPECT_EQ(folder.read("real.safetensors"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "latest.safetensors"));
  EXPECT_TRUE(std::filesystem::is_fifo(folder / "pipe"));
}

TEST(DirectoryLock, OneProcessAtATime) {
  Folder folder;
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  pid_t other = fork();
  if (other == 0) {
    DirectoryLock lock(folder / "");
    char byte = 1;
    if (write(ready[1], &byte, 1) != 1) _exit(1);
    for (;;) pause();
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_NE(refusalOf([&] { DirectoryLock lock(folder / ""); }).find("is being written by another run"), std::string::npos);
  kill(other, SIGKILL); // the lock ends with the process
  waitpid(other, nullptr, 0);
  EXPECT_EQ(refusalOf([&] { DirectoryLock lock(folder / ""); }), "");
  EXPECT_TRUE(std::filesystem::is_empty(folder / ""));
}

TEST(DirectoryLock, GoneWithAProcessThatEndsAtOnce) {
  Folder folder;
  pid_t other = fork();
  if (other == 0) {
    DirectoryLock lock(folder / "");
    bool refused = refusalOf([&] { DirectoryLock another(folder / ""); }) != ""; // whose end leaves the file to the first
    removeLockFiles();
    _exit(refused ? 0 : 1);
  }
  int status = 0;
  waitpid(other, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(std::filesystem::is_empty(folder / ""));
}
