// What the machine gives: memory, as /proc and control groups tell it, and threads.
#include "runtime/device/cpu/available_memory.h"
#include "runtime/device/cpu/thread_pool.h"
#include "runtime/process/processors.h"
#include "test/unit/run_fixtures.h"
#include <sys/resource.h>
#include <sys/wait.h>

using namespace zero;
using namespace zero::runtime;
using zero::test::Folder;
using zero::test::refusalOf;

namespace {

constexpr uint64_t kMiB = uint64_t(1) << 20;

// A /proc and a /sys of our own.
class Machine : public testing::Test {
protected:
  void write(const std::string &path, const std::string &text) {
    std::filesystem::create_directories(std::filesystem::path(root / path).parent_path());
    root.write(path, text);
  }
  void memory(uint64_t free, uint64_t available) {
    write("proc/meminfo", "MemTotal: 16777216 kB\nMemFree: " + std::to_string(free / 1024) +
                              " kB\nMemAvailable: " + std::to_string(available / 1024) + " kB\nHugePages_Total:       0\nBuffers: 12 kB\n");
  }
  void mounts(const std::string &lines) { write("proc/self/mountinfo", "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/root rw\n" + lines); }
  void groups(const std::string &lines) { write("proc/self/cgroup", lines); }
  void second(const std::string &folder, const std::string &limit, uint64_t used, uint64_t inactive = 0, uint64_t active = 0) {
    write(folder + "/memory.max", limit + "\n");
    write(folder + "/memory.current", std::to_string(used) + "\n");
    write(folder + "/memory.stat", "anon 5\nfile 77\ninactive_file " + std::to_string(inactive) + "\nactive_file " +
                                       std::to_string(active) + "\nslab_reclaimable 0\n");
  }
  void first(const std::string &folder, uint64_t limit, uint64_t used, uint64_t inactive = 0) {
    write(folder + "/memory.limit_in_bytes", std::to_string(limit) + "\n");
    write(folder + "/memory.usage_in_bytes", std::to_string(used) + "\n");
    // What a group itself holds stands first, what groups below hold counts as well.
    write(folder + "/memory.stat",
          "cache 1\ninactive_file 1\nactive_file 1\ntotal_inactive_file " + std::to_string(inactive) + "\ntotal_active_file 0\n");
  }
  void expect(uint64_t bytes, const std::string &group) {
    AvailableMemory found = availableMemory({}, root / "");
    EXPECT_EQ(found.bytes, bytes);
    EXPECT_EQ(found.group, group);
  }

  Folder root;
};

const std::string kSecondMount = "30 22 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
const std::string kFirstMount = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n";

TEST_F(Machine, CountsWhatCanBeReclaimed) {
  memory(100 * kMiB, 900 * kMiB);
  expect(900 * kMiB, "");
  mounts(kSecondMount);
  groups("0::/job\n");
  // 700 of the 800 MiB in use are page cache.
  second("sys/fs/cgroup/job", std::to_string(850 * kMiB), 800 * kMiB, 400 * kMiB, 300 * kMiB);
  expect(750 * kMiB, "/sys/fs/cgroup/job");
  memory(100 * kMiB, 700 * kMiB);
  expect(700 * kMiB, "");
}

TEST_F(Machine, ObeysTheNarrowestOfNestedGroups) {
  memory(8192 * kMiB, 8192 * kMiB);
  mounts(kSecondMount);
  groups("0::/slice/job/step\n");
  second("sys/fs/cgroup/slice/job/step", "max", 100 * kMiB);
  second("sys/fs/cgroup/slice/job", std::to_string(4096 * kMiB), 1024 * kMiB);
  second("sys/fs/cgroup/slice", std::to_string(5120 * kMiB), 4096 * kMiB, 512 * kMiB);
  expect(1536 * kMiB, "/sys/fs/cgroup/slice");
  second("sys/fs/cgroup/slice", std::to_string(5120 * kMiB), 6000 * kMiB); // above its limit, which was lowered
  expect(0, "/sys/fs/cgroup/slice");
  second("sys/fs/cgroup/slice", "max", 6000 * kMiB);
  expect(3072 * kMiB, "/sys/fs/cgroup/slice/job");
  second("sys/fs/cgroup/other", "1", 1); // not on the way up
  expect(3072 * kMiB, "/sys/fs/cgroup/slice/job");
}

TEST_F(Machine, KnowsTheFirstVersion) {
  memory(8192 * kMiB, 8192 * kMiB);
  mounts("34 31 0:31 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n" + kFirstMount +
         "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n");
  groups("9:name=systemd:/wrong\n5:cpu,cpuacct:/wrong\n4:memory:/slurm/job_7\n0::/\n");
  first("sys/fs/cgroup/memory/slurm/job_7", 0x7ffffffffffff000, 10 * kMiB); // what stands there when there is no limit
  first("sys/fs/cgroup/memory/wrong", 1, 1);
  first("sys/fs/cgroup/memory/slurm", 2048 * kMiB, 1024 * kMiB, 256 * kMiB);
  first("sys/fs/cgroup/memory", 0x7ffffffffffff000, 4096 * kMiB);
  expect(1280 * kMiB, "/sys/fs/cgroup/memory/slurm");
}

// A container sees its own group as the root of the mount, whose name in /proc/self/cgroup is the machine's.
TEST_F(Machine, FindsTheGroupOfAContainer) {
  memory(8192 * kMiB, 8192 * kMiB);
  mounts("35 31 0:32 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  groups("4:memory:/docker/abc\n");
  first("sys/fs/cgroup/memory", 512 * kMiB, 100 * kMiB);
  expect(412 * kMiB, "/sys/fs/cgroup/memory");
  groups("4:memory:/docker/abc/inner\n");
  first("sys/fs/cgroup/memory/inner", 64 * kMiB, 0);
  expect(64 * kMiB, "/sys/fs/cgroup/memory/inner");
  groups("4:memory:/../other\n");
  expect(412 * kMiB, "/sys/fs/cgroup/memory");
}

TEST_F(Machine, KnowsWhatItHolds) {
  EXPECT_EQ(heldMemory(root / ""), 0u);
  write("proc/self/status",
        "Name:\ta program\nState:\tR (running)\nVmRSS:\t    9000 kB\nRssAnon:\t    3000 kB\nRssFile:\t    5500 kB\nRssShmem:\t     500 kB\n"
        "VmPTE:\t     100 kB\nThreads:\t1\n");
  EXPECT_EQ(heldMemory(root / ""), 3600 * 1024 + 4 * kMiB); // the system's own is a guess
}

TEST_F(Machine, KnowsNoLimitWhereNothingCanBeRead) { expect(UINT64_MAX, ""); }

TEST_F(Machine, GivesProcessorsByTime) {
  const unsigned bound = processors(root / "");
  EXPECT_GE(bound, 1u);
  mounts(kSecondMount);
  groups("0::/slice/job\n");
  write("sys/fs/cgroup/slice/job/cpu.max", "max 100000\n");
  EXPECT_EQ(processors(root / ""), bound);
  write("sys/fs/cgroup/slice/cpu.max", "110000 100000\n"); // a little more than one, by the group above
  EXPECT_EQ(processors(root / ""), std::min(bound, 2u));
  write("sys/fs/cgroup/slice/job/cpu.max", "50000 100000\n");
  EXPECT_EQ(processors(root / ""), 1u);
  write("sys/fs/cgroup/slice/job/cpu.max", "9000000000000000 1\n");
  EXPECT_EQ(processors(root / ""), std::min(bound, 2u));
  mounts("34 31 0:31 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n");
  groups("5:cpu,cpuacct:/job\n");
  write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(processors(root / ""), bound);
  write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "100000\n");
  EXPECT_EQ(processors(root / ""), 1u);
}

TEST(Threads, AreRefusedInASentence) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need memory of their own for threads";
#endif
  pid_t child = fork(); // its limit would stay
  if (child == 0) {
    uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit room{pages * 4096 + 64 * kMiB, RLIM_INFINITY}; // for a few stacks, not for a hundred
    setrlimit(RLIMIT_AS, &room);
    std::string sentence = refusalOf([] { ThreadPool pool(100); });
    bool good = sentence.find("cannot start thread ") == 0 && sentence.find(" of the 100 that compute: ") != std::string::npos;
    if (!good) std::fprintf(stderr, "said: '%s'\n", sentence.c_str());
    _exit(good ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

} // namespace
