// What a rank keeps on disk: both engines, one disk and several, room, locks, and disks that fail.
#include "runtime/device/disk_arenas.h"
#include "runtime/storage/ring_queue.h"
#include "runtime/storage/thread_queue.h"
#include "test/unit/run_fixtures.h"
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <map>
#include <random>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

using namespace zero;
using namespace zero::runtime;
using zero::test::Folder;
using zero::test::refusalOf;

namespace {

// Memory that begins at a block.
class Blocks {
public:
  explicit Blocks(uint64_t bytes) : bytes(bytes), memory(static_cast<std::byte *>(std::aligned_alloc(kBlockBytes, bytes)), std::free) {}
  std::span<std::byte> all() const { return {memory.get(), bytes}; }
  std::span<std::byte> part(uint64_t from, uint64_t count) const { return all().subspan(from, count); }
  void fill(uint64_t seed) const {
    std::mt19937_64 random(seed);
    for (uint64_t at = 0; at < bytes; at += 8) {
      uint64_t word = random();
      std::memcpy(memory.get() + at, &word, 8);
    }
  }

private:
  uint64_t bytes;
  std::unique_ptr<std::byte, decltype(&std::free)> memory;
};

bool same(std::span<const std::byte> a, std::span<const std::byte> b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }
bool isZero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte(0); });
}

std::vector<std::string> entries(const std::string &folder) {
  std::vector<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
  return names;
}

struct Case {
  const char *name;
  MakeQueue make;
  int disks;
  bool direct;
};
void PrintTo(const Case &c, std::ostream *out) { *out << c.name << " on " << c.disks << (c.direct ? "" : ", buffered"); }

class AnyStorage : public testing::TestWithParam<Case> {
protected:
  std::unique_ptr<Storage> open(int rank = 0) {
    std::vector<std::string> folders;
    for (int i = 0; i < GetParam().disks; ++i) folders.push_back(folder / ("disk" + std::to_string(i)));
    return std::make_unique<Storage>(folders, rank, GetParam().make, GetParam().direct);
  }
  Folder folder;
};

INSTANTIATE_TEST_SUITE_P(Engines, AnyStorage,
                         testing::Values(Case{"io_uring", makeRingQueue, 1, true}, Case{"io_uring", makeRingQueue, 3, true},
                                         Case{"io_uring", makeRingQueue, 2, false}, Case{"threads", makeThreadQueue, 1, true},
                                         Case{"threads", makeThreadQueue, 3, true}));

TEST_P(AnyStorage, ReturnsWhatWasWritten) {
  auto storage = open();
  const uint64_t size = 7 * kStripeBytes + 5 * kBlockBytes;
  EXPECT_EQ(storage->allocate(kBlockBytes), 0u);
  EXPECT_EQ(storage->allocate(size - kBlockBytes), kBlockBytes);
  Blocks expected(size), found(size);
  storage->registerMemory(std::vector{found.all()});
  std::fill(found.all().begin(), found.all().end(), std::byte(1));
  storage->read(0, found.all());
  EXPECT_TRUE(isZero(found.all()));
  expected.fill(1);
  storage->write(0, expected.all());
  // Around the edges of stripes, and none at all.
  for (uint64_t from : {uint64_t(0), kStripeBytes - kBlockBytes, kStripeBytes, 3 * kStripeBytes + kBlockBytes})
    for (uint64_t bytes : {uint64_t(0), kBlockBytes, 2 * kBlockBytes, kStripeBytes, kStripeBytes + kBlockBytes, 3 * kStripeBytes}) {
      Blocks part(kBlockBytes + bytes);
      storage->read(from, part.part(0, bytes));
      EXPECT_TRUE(same(part.part(0, bytes), expected.part(from, bytes))) << from << " " << bytes;
      part.fill(from + bytes);
      std::copy_n(part.all().begin(), bytes, expected.part(from, bytes).begin());
      storage->write(from, part.part(0, bytes));
    }
  storage->read(0, found.all());
  EXPECT_TRUE(same(found.all(), expected.all()));
  EXPECT_GT(storage->traffic().written, size);
  EXPECT_EQ(refusalOf([&] { storage->read(size, found.part(0, kBlockBytes)); }).find("this is an error in zerorun") == std::string::npos,
            false);
  EXPECT_NE(refusalOf([&] { storage->read(0, found.part(8, kBlockBytes)); }), "");
}

// Parts of any place and length, more of them than may be under way at once.
TEST_P(AnyStorage, TakesScatteredParts) {
  auto storage = open();
  const uint64_t blocks = 3 * kStripeBytes / kBlockBytes + 5;
  storage->allocate(blocks * kBlockBytes);
  storage->openScattered();
  Blocks expected(blocks * kBlockBytes), found(blocks * kBlockBytes), memory(blocks * kBlockBytes);
  expected.fill(1);
  storage->write(0, expected.all());
  std::mt19937_64 random(2);
  for (int round = 0; round < 8; ++round) {
    memory.fill(static_cast<uint64_t>(round) + 3);
    std::vector<Storage::Part> parts;
    uint64_t used = 0, bytes = 0; // blocks
    for (uint64_t at = random() % 3; at < blocks; at += 1 + random() % 5) {
      uint64_t count = std::min(random() % (round == 7 ? 300 : 3), blocks - at);
      parts.push_back({at * kBlockBytes, memory.all().data() + used * kBlockBytes, count * kBlockBytes});
      std::ranges::copy(memory.part(used * kBlockBytes, count * kBlockBytes), expected.part(at * kBlockBytes, count * kBlockBytes).begin());
      used += count, bytes += count * kBlockBytes, at += count;
    }
    std::ranges::shuffle(parts, random);
    DiskTraffic before = storage->traffic();
    storage->writeScattered(parts);
    EXPECT_EQ(storage->traffic().written - before.written, bytes);
    storage->read(0, found.all());
    EXPECT_TRUE(same(found.all(), expected.all())) << round;
    for (Storage::Part &part : parts) part.memory = found.all().data() + (part.memory - memory.all().data());
    storage->readScattered(parts);
    EXPECT_TRUE(same(found.part(0, bytes), memory.part(0, bytes))) << round;
  }
  storage->readScattered({});
  Storage::Part beyond{blocks * kBlockBytes, memory.all().data(), kBlockBytes};
  EXPECT_NE(refusalOf([&] { storage->readScattered({&beyond, 1}); }).find("this is an error in zerorun"), std::string::npos);
}

TEST_P(AnyStorage, ReadsWhileItWrites) {
  auto storage = open();
  const uint64_t half = 40 * kStripeBytes;
  storage->allocate(2 * half);
  Blocks first(half), second(half), found(half);
  first.fill(1), second.fill(2);
  storage->write(0, first.all());
  {
    std::jthread writer([&] { storage->write(half, second.all()); });
    storage->read(0, found.all());
  }
  EXPECT_TRUE(same(found.all(), first.all()));
  storage->read(half, found.all());
  EXPECT_TRUE(same(found.all(), second.all()));
}

TEST_P(AnyStorage, NothingIsLeft) {
  auto storage = open(3);
  storage->allocate(1 << 20);
  for (int disk = 0; disk < GetParam().disks; ++disk)
    EXPECT_EQ(entries(folder / ("disk" + std::to_string(disk))), std::vector<std::string>{"rank-3.lock"});
  EXPECT_NE(refusalOf([&] { open(3); }).find("disk0' is used by another run, whose rank 3 is at work there"), std::string::npos);
  EXPECT_EQ(refusalOf([&] { open(4)->allocate(1 << 20); }), ""); // another rank of the same run
  storage.reset();
  for (int disk = 0; disk < GetParam().disks; ++disk) EXPECT_TRUE(entries(folder / ("disk" + std::to_string(disk))).empty());
  EXPECT_EQ(refusalOf([&] { open(3); }), "");
}

TEST(Storage, NothingIsLeftOfAProcessThatWasKilled) {
  Folder folder;
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  pid_t other = fork();
  if (other == 0) {
    Storage storage({folder / "disk"}, 0, makeThreadQueue);
    storage.allocate(8 << 20);
    char byte = 1;
    if (write(ready[1], &byte, 1) != 1) _exit(1);
    for (;;) pause();
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  auto open = [&] { Storage({folder / "disk"}, 0, makeThreadQueue); };
  EXPECT_NE(refusalOf(open).find("is used by another run"), std::string::npos);
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
  EXPECT_EQ(entries(folder / "disk"), std::vector<std::string>{"rank-0.lock"});
  EXPECT_EQ(std::filesystem::file_size(folder / "disk/rank-0.lock"), 0u);
  EXPECT_EQ(refusalOf(open), ""); // what it left means nothing
  EXPECT_TRUE(entries(folder / "disk").empty());
}

// Where everybody may make files and remove only their own, as in /tmp. Only root can be others.
TEST(Storage, WhatOtherUsersHaveLeftIsInNobodysWay) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  Folder folder;
  std::filesystem::create_directory(folder / "disk");
  std::filesystem::permissions(folder / ".", std::filesystem::perms(0755));
  std::filesystem::permissions(folder / "disk", std::filesystem::perms(01777));
  std::string lock = folder.write("disk/rank-0.lock", "");
  ASSERT_EQ(::chown(lock.c_str(), 1234, 1234), 0);
  auto opened = [&](mode_t mode) {
    EXPECT_EQ(::chmod(lock.c_str(), mode), 0);
    EXPECT_EQ(::seteuid(1235), 0);
    std::string sentence = refusalOf([&] { DiskFiles({folder / "disk"}, 0); });
    EXPECT_EQ(::seteuid(0), 0);
    return sentence;
  };
  EXPECT_EQ(opened(0644), "");
  std::string sentence = opened(0600);
  EXPECT_NE(sentence.find("it belongs to another user, and may be removed if no run of theirs is at work there"), std::string::npos)
      << sentence;
  std::filesystem::remove(lock);
  EXPECT_EQ(::seteuid(1234), 0);
  {
    DiskFiles files({folder / "disk"}, 0);
    EXPECT_EQ(std::filesystem::status(lock).permissions() & std::filesystem::perms::others_read, std::filesystem::perms::others_read);
    EXPECT_EQ(::seteuid(0), 0);
    EXPECT_NE(opened(0644).find("is used by another run"), std::string::npos);
  }
}

TEST(Storage, RefusesFoldersThatCannotBeUsed) {
  Folder folder;
  folder.write("file", "x");
  auto refusal = [](const std::vector<std::string> &folders, uint64_t bytes = 0) {
    return refusalOf([&] { Storage(folders, 0, makeThreadQueue).allocate(bytes); });
  };
  EXPECT_EQ(refusal({folder / "made/on/the/way"}), "");
  EXPECT_NE(refusal({folder / "file"}).find("file' is no folder"), std::string::npos);
  EXPECT_NE(refusal({"/proc/none"}).find("--disk-path '/proc/none' cannot be used: "), std::string::npos);
  EXPECT_NE(refusal({folder / "a", ""}).find("names an empty folder"), std::string::npos);
  EXPECT_NE(refusal({folder / "a", folder / "./a"}).find("twice; give each disk once"), std::string::npos)
      << refusal({folder / "a", folder / "./a"});
  std::string room = refusal({folder / "a", folder / "b"}, uint64_t(1) << 46);
  EXPECT_EQ(room.find("no room for what this rank keeps on disk: 35184372088832 bytes were wanted in --disk-path '"), 0u) << room;
  EXPECT_NE(room.find("a', where "), std::string::npos) << room;
  EXPECT_NE(room.find(" are free; give a folder on a larger disk"), std::string::npos) << room;
}

// A disk that answers the requests of some numbers otherwise than it should.
class FaultyQueue final : public RequestQueue {
public:
  // `failed`: where not null, becomes the last request that was answered so: which one is the nth to complete is a matter of chance.
  FaultyQueue(std::span<const int> files, std::map<int, int64_t> answers, std::shared_ptr<Request> failed = nullptr)
      : queue(makeThreadQueue(files)), requests(queue->depth()), answers(std::move(answers)), failed(std::move(failed)) {}
  uint32_t depth() const override { return queue->depth(); }
  void submit(uint32_t slot, const Request &request) override {
    requests[slot] = request;
    queue->submit(slot, request);
  }
  Outcome wait(uint32_t together) override {
    Outcome outcome = queue->wait(together);
    if (auto answer = answers.find(count++); answer != answers.end()) {
      outcome.result = answer->second;
      if (failed) *failed = requests[outcome.slot];
    }
    return outcome;
  }

private:
  std::unique_ptr<RequestQueue> queue;
  std::vector<Request> requests;  // by slot
  std::map<int, int64_t> answers; // to the nth that completes
  std::shared_ptr<Request> failed;
  int count = 0;
};

TEST(Storage, SaysHowADiskFails) {
  Folder folder;
  const uint64_t size = 30 * kStripeBytes; // more than are under way at once
  Blocks memory(size), found(size);
  auto failed = std::make_shared<Request>();
  auto open = [&](std::map<int, int64_t> answers) {
    auto storage =
        std::make_unique<Storage>(std::vector{folder / "disk", folder / "other"}, 0, [answers, failed](std::span<const int> files) {
          return std::make_unique<FaultyQueue>(files, answers, failed);
        });
    storage->allocate(size);
    return storage;
  };
  auto refusal = [&](std::map<int, int64_t> answers, bool writes) {
    auto storage = open(std::move(answers));
    std::string sentence = refusalOf([&] { writes ? storage->write(0, memory.all()) : storage->read(0, memory.all()); });
    auto again = memory.part(0, kBlockBytes); // nothing is under way any more
    EXPECT_EQ(refusalOf([&] { writes ? storage->write(0, again) : storage->read(0, again); }), "");
    return sentence;
  };
  std::string text = refusal({{4, -EIO}}, false);
  std::string there = folder / (failed->file == 0 ? "disk" : "other");
  EXPECT_EQ(text.find("cannot read 1048576 bytes at offset " + std::to_string(failed->offset) + " of this rank's file in --disk-path '" +
                      there + "': Input/output error; the disk may be failing"),
            0u)
      << text;
  text = refusal({{0, -EIO}, {1, -ENOSPC}}, true);
  EXPECT_EQ(text.find("cannot write 1048576 bytes"), 0u) << text;
  EXPECT_NE(text.find("Input/output error"), std::string::npos) << text; // the first
  text = refusal({{29, -ENOSPC}}, true);
  EXPECT_NE(text.find("No space left on device; the file system needs room beside what was reserved"), std::string::npos) << text;
  for (int64_t result : {0, 1000}) {
    text = refusal({{3, result}}, false);
    EXPECT_NE(text.find("the transfer ended after " + std::to_string(result) + " of them"), std::string::npos) << text;
  }
  // What is only cut off, or interrupted, is gone on with.
  auto storage = open({{0, 4096}, {1, -EAGAIN}, {2, -EINTR}, {7, 65536}, {8, 8192}});
  memory.fill(3);
  EXPECT_EQ(refusalOf([&] { storage->write(0, memory.all()); }), "");
  EXPECT_EQ(refusalOf([&] { storage->read(0, found.all()); }), "");
  EXPECT_TRUE(same(memory.all(), found.all()));
}

// What is cut off, and would read as zeros as soon as something is written after it.
TEST_P(AnyStorage, NoticesThatAFileWasCut) {
  auto storage = open();
  storage->allocate(8 << 20);
  Blocks memory(4 << 20);
  memory.fill(1);
  storage->write(0, memory.all());
  for (const auto &entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code failed;
    if (!std::filesystem::read_symlink(entry.path(), failed).string().starts_with(folder / "disk0/rank-0.state")) continue;
    ASSERT_EQ(ftruncate(std::atoi(entry.path().filename().c_str()), 4096), 0);
  }
  // Of one disk the last bytes: its file is as long as before.
  std::string text = refusalOf([&] { storage->write((8 << 20) - (1 << 20), memory.part(0, 1 << 20)); });
  EXPECT_EQ(text.find("this rank's file in --disk-path '" + (folder / "disk0") + "' has lost "), 0u) << text;
  EXPECT_NE(text.find("resume from the last checkpoint"), std::string::npos) << text;
}

// State's pieces of arenas on disk.
TEST(DiskArenas, AnyOffsetAndLength) {
  Folder folder;
  DiskArenas arenas({folder / "a", folder / "b"}, 0);
  const uint64_t size = 5 * kPieceBytes + 1000;
  EXPECT_FALSE(arenas.any());
  arenas.allocate(1, "other", 4096), arenas.allocate(4, "states", size);
  EXPECT_EQ(arenas.find({0, 8}), std::nullopt);
  EXPECT_EQ(arenas.find({4, 8}), 4096u + 8);
  std::vector<std::byte> expected(size), found(size);
  uint64_t begin = *arenas.find({4, 0});
  auto read = [&](uint64_t from, uint64_t bytes) {
    std::vector<uint64_t> firsts;
    arenas.read(begin + from, bytes, [&](uint64_t first, std::span<const std::byte> piece) {
      EXPECT_LE(piece.size(), kPieceBytes);
      firsts.push_back(first);
      std::copy(piece.begin(), piece.end(), found.begin() + static_cast<long>(from + first));
    });
    for (size_t i = 0; i < firsts.size(); ++i) EXPECT_EQ(firsts[i], i * kPieceBytes);
    EXPECT_EQ(firsts.size(), (bytes + kPieceBytes - 1) / kPieceBytes);
  };
  std::mt19937_64 random(7);
  for (auto [from, bytes] : std::vector<std::pair<uint64_t, uint64_t>>{{0, size},
                                                                       {4, 4},
                                                                       {4092, 8},
                                                                       {4096, 4096},
                                                                       {8000, 100},
                                                                       {4, 4096},
                                                                       {12, 3 * kPieceBytes},
                                                                       {size - 4, 4},
                                                                       {100, 0},
                                                                       {4096, 4097}}) {
    arenas.write(begin + from, bytes, [&](uint64_t first, std::span<std::byte> piece) {
      for (std::byte &byte : piece) byte = std::byte(random());
      std::copy(piece.begin(), piece.end(), expected.begin() + static_cast<long>(from + first));
    });
    read(0, size);
    EXPECT_TRUE(same(found, expected)) << from << " " << bytes;
    read(from, bytes);
    EXPECT_TRUE(same(found, expected)) << from << " " << bytes;
  }
  arenas.read(*arenas.find({1, 0}), 4096, [&](uint64_t, std::span<const std::byte> piece) { EXPECT_TRUE(isZero(piece)); });
  EXPECT_GT(arenas.traffic().written, size);
}

// Pieces of ever other lengths, with small things made in between that stay: nothing grows but for those.
TEST(DiskArenas, StageInBoundedMemory) {
  Folder folder;
  DiskArenas arenas({folder / "a"}, 0);
  const uint64_t size = 64 << 20;
  arenas.allocate(0, "states", size);
  auto resident = [] {
    uint64_t all = 0, pages = 0;
    std::ifstream("/proc/self/statm") >> all >> pages;
    return pages * 4096;
  };
  uint64_t before = resident();
  std::vector<std::unique_ptr<char[]>> kept;
  for (uint64_t i = 1; i < 60; ++i) {
    arenas.write(0, size / 60 * i, [&](uint64_t, std::span<std::byte> piece) { piece[0] = std::byte(i); });
    for (int j = 0; j < 8; ++j) kept.push_back(std::make_unique<char[]>(500));
    arenas.read(0, size / 60 * i, [&](uint64_t, std::span<const std::byte>) {});
    EXPECT_LE(resident(), before + kStagingBytes + (2 << 20)) << i;
  }
  arenas.releaseStaging();
  EXPECT_LE(resident(), before + (2 << 20));
}

TEST(DiskArenas, NeedAFolder) {
  EXPECT_EQ(refusalOf([] { DiskArenas({}, 0).allocate(0, "states", 8192); }),
            "arena 'states' keeps 8192 bytes on disk; say where with --disk-path DIR");
}

// Whether `work` is as it should be in a process of its own, which it may deprive of anything.
bool inAnotherProcess(const std::function<bool()> &work) {
  pid_t other = fork();
  if (other == 0) {
    bool good = false;
    try {
      good = work();
    } catch (const std::exception &error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
    _exit(good ? 0 : 1);
  }
  int status = 1;
  waitpid(other, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Writes and reads in the folder, with memory registered.
bool works(Storage &storage) {
  Blocks written(16 << 20), found(16 << 20);
  storage.allocate(16 << 20);
  storage.registerMemory(std::vector{written.all(), found.all()});
  written.fill(5);
  storage.write(0, written.all()), storage.read(0, found.all());
  return same(written.all(), found.all());
}

// As containers do with their usual profile.
void forbidRings() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{std::size(filter), filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) throw Error("no filter");
}

TEST(Storage, GoesOnWithThreadsWhereRingsAreForbidden) {
  Folder folder;
  EXPECT_TRUE(inAnotherProcess([&] {
    forbidRings();
    auto storage = openStorage({folder / "disk"}, 0);
    return works(*storage) && storage->notes() == std::vector<std::string>{
                                                      "io_uring cannot make a queue here: Operation not permitted, as in many containers; "
                                                      "threads read and write the disk instead, which may be slower"};
  }));
}

TEST(Storage, GoesOnWithoutLockedMemory) {
  Folder folder;
  std::filesystem::permissions(folder / "", std::filesystem::perms::all);
  for (rlim_t bytes : {0, 1 << 20}) // too little for a ring, for newer systems; enough for rings alone
    EXPECT_TRUE(inAnotherProcess([&] {
      rlimit limit{bytes, bytes};
      if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0 || (geteuid() == 0 && setuid(65534) != 0)) return false; // root knows no limit
      return works(*openStorage({folder / "disk"}, 0));
    })) << bytes;
}

TEST(Storage, SaysWhatIsSlower) {
  Folder folder;
  Storage direct({folder / "a"}, 0, makeThreadQueue), buffered({folder / "b", folder / "c"}, 0, makeThreadQueue, false);
  direct.allocate(4096), buffered.allocate(4096);
  EXPECT_TRUE(direct.notes().empty());
  ASSERT_EQ(buffered.notes().size(), 1u);
  std::string note = buffered.notes()[0];
  EXPECT_NE(note.find("b' and '"), std::string::npos) << note;
  EXPECT_NE(note.find("c' knows no direct transfers: they go through the page cache"), std::string::npos) << note;
}

} // namespace
