// gpu-check watch: what a command takes of the machine's memory while it runs.
#include "runtime/device/cpu/available_memory.h"
#include "test/gpu/check/check.h"
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace zero::check {
namespace {

constexpr auto kPause = std::chrono::milliseconds(5);
constexpr int kSeldom = 20; // pauses between looks at what takes files to know

/// The most that was taken of what there was most of.
struct Taken {
  uint64_t most = 0, used = 0;
  void see(uint64_t free) { most = std::max(most, free), used = std::max(used, most - free); }
};

} // namespace

int watch(int count, char **values) {
  if (count < 2) throw BadUsage("watch wants FILE COMMAND…");
  int gate[2];
  if (::pipe2(gate, O_CLOEXEC) != 0) throw Error(std::string("cannot make a pipe: ") + std::strerror(errno));
  pid_t child = ::fork(); // before the driver, which does not survive it
  if (child < 0) throw Error(std::string("cannot start a process: ") + std::strerror(errno));
  if (child == 0) {
    ::close(gate[1]);
    char opened = 0;
    (void)!::read(gate[0], &opened, 1); // until what was free before it has been seen
    std::vector<char *> command(values + 1, values + count);
    command.push_back(nullptr);
    ::execvp(command[0], command.data());
    ::_exit(127);
  }
  int status = 0;
  Taken device, host, disk;
  bool ended = false;
  auto over = [&] { return ended = ended || ::waitpid(child, &status, WNOHANG) == child; };
  auto begin = [&] {
    if (gate[1] >= 0) ::close(gate[1]);
    gate[1] = -1;
  };
  std::filesystem::path folder = std::filesystem::absolute(values[0]).parent_path();
  try {
    cuda::Gpu gpu(0);
    for (int look = 0; !over(); ++look, begin(), std::this_thread::sleep_for(kPause)) {
      device.see(gpu.freeBytes());
      std::error_code unknown;
      if (look % kSeldom) continue;
      host.see(runtime::availableMemory().bytes);
      if (auto space = std::filesystem::space(folder, unknown); !unknown) disk.see(space.free);
    }
  } catch (const Error &) { // the command will say so itself
  }
  begin();
  if (!ended) ::waitpid(child, &status, 0);
  std::ofstream(values[0]) << device.used << " " << host.used << " " << disk.used << "\n";
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

} // namespace zero::check
