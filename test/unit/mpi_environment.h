// Tests that run alone and under mpirun: one connection for the whole test program.
#pragma once
#include "runtime/comm/communicator.h"
#include <chrono>
#include <filesystem>
#include <gtest/gtest.h>
#include <string>
#include <sys/wait.h>

namespace zero::test {

inline std::unique_ptr<runtime::CommunicatorFactory> world;

class MpiEnvironment : public testing::Environment {
public:
  void SetUp() override { world = runtime::connect(); }
  void TearDown() override { world->finalize(); }
};

// Runs one (disabled) test of this program under mpirun and returns its exit status; 124 if it did not end in time.
inline int runUnderMpi(int ranks, const std::string &test, double &seconds) {
  std::string self = std::filesystem::read_symlink("/proc/self/exe");
  std::string command = "timeout -k 1 20 mpirun -np " + std::to_string(ranks) + " --oversubscribe --allow-run-as-root " + self +
                        " --gtest_also_run_disabled_tests --gtest_filter=" + test + " >/dev/null 2>&1";
  auto begin = std::chrono::steady_clock::now();
  int status = std::system(command.c_str());
  seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

} // namespace zero::test
