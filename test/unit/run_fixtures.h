// What tests of the runtime share: a folder that goes away, kernels written in C, refusals, and ranks as threads.
#pragma once
#include "runtime/base/error.h"
#include "runtime/comm/communicator.h"
#include <barrier>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <sstream>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace zero::test {

class Folder {
public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "zero-test-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string &name) const { return path_ + "/" + name; }
  std::string write(const std::string &name, const std::string &bytes) const {
    std::ofstream(*this / name, std::ios::binary) << bytes;
    return *this / name;
  }
  std::string read(const std::string &name) const {
    std::ifstream file(*this / name, std::ios::binary);
    EXPECT_TRUE(file.good()) << name;
    std::stringstream all;
    all << file.rdbuf();
    return all.str();
  }

private:
  std::string path_;
};

// Ends the files of state in this folder, which have no name any more, before their first byte, as a disk that fails may.
inline void cutOffState(const std::string &folder) {
  for (const auto &entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (target.starts_with(folder) && target.ends_with(".state (deleted)")) {
      EXPECT_EQ(truncate(entry.path().c_str(), 0), 0);
    }
  }
}

// A shared object of kernels written in C, as a plan holds it.
inline std::string compileKernels(const std::string &source) {
  Folder folder;
  folder.write("kernels.c", source);
  EXPECT_EQ(std::system(("cc -O2 -shared -fPIC -o " + (folder / "kernels.so") + " " + (folder / "kernels.c")).c_str()), 0);
  return folder.read("kernels.so");
}

// The sentence with which `work` is refused, or nothing if it is not.
inline std::string refusalOf(const std::function<void()> &work) {
  try {
    work();
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

// Communication among threads of one process, as far as files need it.
class Ranks {
public:
  explicit Ranks(int world) : world(world), meeting(world), slots(static_cast<size_t>(world)) {}
  // Runs `body` once per rank, at the same time.
  void run(const std::function<void(runtime::Communicator &)> &body) {
    std::vector<std::jthread> threads;
    for (int r = 0; r < world; ++r)
      threads.emplace_back([&, r] {
        Member member(*this, r);
        body(member);
      });
  }

private:
  struct Member : runtime::Communicator {
    Member(Ranks &ranks, int me) : ranks(ranks), me(me) {}
    int rank() const override { return me; }
    int world() const override { return ranks.world; }
    void allGather(const void *src, void *dst, uint64_t bytes) override {
      ranks.slots[static_cast<size_t>(me)].assign(static_cast<const char *>(src), bytes);
      barrier();
      for (int r = 0; r < ranks.world; ++r)
        std::memcpy(static_cast<char *>(dst) + static_cast<uint64_t>(r) * bytes, ranks.slots[static_cast<size_t>(r)].data(), bytes);
      barrier();
    }
    void reduceScatter(runtime::WireType, const void *, float *, uint64_t, runtime::Staging) override { FAIL() << "files need no sums"; }
    void allReduce(float *, uint64_t, runtime::Staging) override { FAIL() << "files need no sums"; }
    void barrier() override { ranks.meeting.arrive_and_wait(); }
    void broadcast(void *, uint64_t, int) override { FAIL() << "files need no broadcast"; }
    void interrupt() override { FAIL() << "no test interrupts"; }
    uint64_t bytesSent() const override { return 0; }
    Ranks &ranks;
    int me;
  };

  int world;
  std::barrier<> meeting;
  std::vector<std::string> slots;
};

} // namespace zero::test
