// Starts this test program as the ranks of one run over TCP, on this machine alone.
#pragma once
#include <arpa/inet.h>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <random>
#include <sstream>
#include <string>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace zero::test {

// Below the ports the system gives out by itself, so that nobody takes it before it is used.
inline uint16_t freePort() {
  std::random_device random;
  for (;;) {
    auto port = static_cast<uint16_t>(20000 + random() % 10000);
    sockaddr_in address{};
    address.sin_family = AF_INET, address.sin_port = htons(port), address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    int status = ::bind(fd, reinterpret_cast<sockaddr *>(&address), sizeof address);
    ::close(fd);
    if (status == 0) return port;
  }
}

struct TcpRun {
  std::vector<int> statuses; // of each rank: exit status, or -signal
  std::string output;        // of all together
  double seconds = 0;
};

// Runs the tests of this program that the filter names, disabled ones too. What is still there after 20 seconds is killed.
inline TcpRun runOverTcp(int ranks, const std::string &filter) {
  std::string self = std::filesystem::read_symlink("/proc/self/exe");
  std::string log = testing::TempDir() + "tcp-" + std::to_string(::getpid()) + ".log", port = std::to_string(freePort());
  std::filesystem::remove(log);
  auto begin = std::chrono::steady_clock::now();
  auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    std::string command = "RANK=" + std::to_string(rank) + " WORLD_SIZE=" + std::to_string(ranks) +
                          " MASTER_ADDR=127.0.0.1 MASTER_PORT=" + port + " exec '" + self +
                          "' --gtest_also_run_disabled_tests --gtest_filter=" + filter + " >>'" + log + "' 2>&1";
    pid_t child = ::fork();
    if (child == 0) {
      ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      ::_exit(127);
    }
    children.push_back(child);
  }
  TcpRun run;
  run.statuses.resize(children.size());
  for (size_t i = 0; i < children.size(); ++i) {
    int status = 0;
    while (::waitpid(children[i], &status, WNOHANG) == 0) {
      if (seconds() > 20) ::kill(children[i], SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    run.statuses[i] = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  run.seconds = seconds();
  std::ifstream file(log);
  run.output = (std::stringstream() << file.rdbuf()).str();
  std::filesystem::remove(log);
  return run;
}

} // namespace zero::test
