// fault: runs a program under ptrace, counts its file calls below some folders (or its new threads), and makes one of them fail.
//
// The calls are seen where the kernel is entered (a seccomp filter stops the thread at each of them), so that none escapes: those inside
// libc and the C++ library, of any thread and of child processes.
#include "test/faults/calls.h"
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <map>
#include <sched.h>
#include <string>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace zero::faults {
namespace {

constexpr const char *kUsage =
    "usage: fault --under DIR… | --threads  [--log FILE] [--at K --do FAULT]  -- PROGRAM ARGS…\n"
    "Counts the file calls of PROGRAM on files under the folders, from 1, and at call K\n"
    "  kill-before, kill-after   SIGKILLs it, the call not begun or done\n"
    "  EIO, ENOSPC               fails the call without doing it (a close is done)\n"
    "  full                      fails this call with ENOSPC, and every later one that takes room on disk\n"
    "  short                     lets a read or write move half of its bytes\n"
    "With --threads it counts the threads that PROGRAM starts instead, and EAGAIN says that the system has none to give.\n"
    "--log: a line `K NAME TRAITS PATH<tab>OTHER-PATH` per call, with c in the traits if it changes the disk, r if it takes room, m if it\n"
    "moves bytes; after the K-th a line `done FAULT K`.\n"
    "The exit status is the program's; if a signal ended it, the same signal ends fault.\n";

[[noreturn]] void die(const std::string &what) {
  std::fprintf(stderr, "fault: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(125);
}

struct Options {
  std::vector<std::string> folders;
  std::string log, fault;
  uint64_t at = 0;
  bool threads = false; // count new threads, not file calls
  char **command = nullptr;
};

Options parse(int argc, char **argv) {
  Options options;
  int i = 1;
  for (; i < argc && std::strcmp(argv[i], "--") != 0; ++i) {
    std::string flag = argv[i];
    if (flag == "--threads") {
      options.threads = true;
      continue;
    }
    if (++i == argc) break;
    if (flag == "--under")
      options.folders.push_back(argv[i]);
    else if (flag == "--log")
      options.log = argv[i];
    else if (flag == "--at")
      options.at = std::strtoull(argv[i], nullptr, 10);
    else if (flag == "--do")
      options.fault = argv[i];
    else
      i = argc;
  }
  static const std::vector<std::string> known{"", "kill-before", "kill-after", "EIO", "ENOSPC", "full", "short", "EAGAIN"};
  bool good = i + 1 < argc && options.folders.empty() == options.threads && (options.at > 0) == !options.fault.empty() &&
              std::find(known.begin(), known.end(), options.fault) != known.end();
  if (!good) {
    std::fputs(kUsage, stderr);
    std::exit(125);
  }
  for (std::string &folder : options.folders) {
    char *real = ::realpath(folder.c_str(), nullptr);
    if (!real) die(folder);
    folder = real;
    std::free(real);
  }
  options.command = argv + i + 1;
  return options;
}

// In the child: stop at file calls, run all others at full speed.
void installFilter(bool threads) {
  std::vector<sock_filter> program{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  std::vector<long> numbers{SYS_clone, SYS_clone3};
  if (!threads) {
    numbers.clear();
    for (const FileCall &call : fileCalls()) numbers.push_back(call.number);
  }
  for (long number : numbers) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number), 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) die("seccomp");
}

class Tracer {
public:
  explicit Tracer(const Options &options) : options(options) {
    if (!options.log.empty() && !(log = std::fopen(options.log.c_str(), "we"))) die(options.log);
  }

  // Returns the wait status of the program.
  int run() {
    start();
    for (;;) {
      int status = 0;
      pid_t thread = waitpid(-1, &status, __WALL);
      if (thread < 0 && errno == EINTR) continue;
      if (thread < 0) die("waitpid");
      if (WIFSTOPPED(status))
        stopped(thread, status);
      else if (thread == program)
        return status;
    }
  }

private:
  void start() {
    int ready[2];
    if (pipe2(ready, O_CLOEXEC) != 0) die("pipe");
    program = fork();
    if (program < 0) die("fork");
    if (program == 0) {
      char byte;
      if (read(ready[0], &byte, 1) != 1) _exit(125);
      installFilter(options.threads);
      execvp(options.command[0], options.command);
      die(options.command[0]);
    }
    long wanted = PTRACE_O_TRACESECCOMP | PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
                  PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC;
    if (ptrace(PTRACE_SEIZE, program, nullptr, wanted) != 0) die("ptrace");
    if (write(ready[1], "x", 1) != 1) die("pipe");
    close(ready[0]), close(ready[1]);
  }

  void stopped(pid_t thread, int status) {
    int signal = WSTOPSIG(status), event = status >> 16;
    if (event == PTRACE_EVENT_SECCOMP)
      entering(thread);
    else if (signal == (SIGTRAP | 0x80))
      leaving(thread);
    else if (event == PTRACE_EVENT_STOP && signal != SIGTRAP) // stopped by SIGSTOP or the like: it stays so until SIGCONT
      ptrace(PTRACE_LISTEN, thread, nullptr, nullptr);
    else if (event)
      ptrace(PTRACE_CONT, thread, nullptr, nullptr);
    else
      ptrace(PTRACE_CONT, thread, nullptr, signal);
  }

  void entering(pid_t thread) {
    __ptrace_syscall_info info{};
    Seen seen{};
    if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info) < 0) return resume(thread); // killed meanwhile
    const FileCall *call = findCall(info.seccomp.nr);
    uint64_t args[6];
    std::copy(std::begin(info.seccomp.args), std::end(info.seccomp.args), args);
    if (options.threads) return startingThread(thread, info.seccomp.nr, args[0]);
    if (!call || !touches(thread, *call, args, options.folders, seen)) return resume(thread);
    std::string traits = {seen.changes ? 'c' : '-', seen.fills ? 'r' : '-', call->count >= 0 ? 'm' : '-'};
    bool now = isNext(call->name, traits, seen.path + "\t" + seen.other);
    bool later = options.fault == "full" && count > options.at && seen.fills;
    if (!now && !later) return resume(thread);
    inject(thread, *call, args);
  }

  void inject(pid_t thread, const FileCall &call, const uint64_t *args) {
    if (options.fault == "kill-before") {
      kill(program, SIGKILL);
    } else if (options.fault == "short") {
      if (call.count >= 0 && args[call.count] > 1) halve(thread, call, args);
      resume(thread);
    } else if (options.fault == "kill-after" || call.number == SYS_close) {
      atExit[thread] = options.fault == "kill-after" ? 0 : error();
      ptrace(PTRACE_SYSCALL, thread, nullptr, nullptr);
    } else {
      refuse(thread, error());
    }
  }

  // Counts and logs a call, and says whether it is the one to fail.
  bool isNext(const std::string &name, const std::string &traits, const std::string &paths) {
    bool now = ++count == options.at;
    std::string line = std::to_string(count) + " " + name + " " + traits + " " + paths + "\n";
    if (now) line += "done " + options.fault + " " + std::to_string(count) + "\n";
    if (log) std::fputs(line.c_str(), log), std::fflush(log);
    return now;
  }

  // clone has its flags in the first argument, clone3 in the first word it points to.
  void startingThread(pid_t thread, uint64_t number, uint64_t argument) {
    errno = 0;
    uint64_t flags = number == SYS_clone ? argument : static_cast<uint64_t>(ptrace(PTRACE_PEEKDATA, thread, argument, nullptr));
    if (!(flags & CLONE_THREAD)) return resume(thread);
    if (!isNext("clone", "---", "\t")) return resume(thread);
    refuse(thread, EAGAIN);
  }

  void refuse(pid_t thread, int reason) {
    user_regs_struct registers{};
    ptrace(PTRACE_GETREGS, thread, nullptr, &registers);
    registers.orig_rax = static_cast<unsigned long long>(-1); // no such call: none is made
    registers.rax = static_cast<unsigned long long>(-reason);
    ptrace(PTRACE_SETREGS, thread, nullptr, &registers);
    resume(thread);
  }

  void halve(pid_t thread, const FileCall &call, const uint64_t *args) {
    user_regs_struct registers{};
    ptrace(PTRACE_GETREGS, thread, nullptr, &registers);
    unsigned long long *arguments[] = {&registers.rdi, &registers.rsi, &registers.rdx, &registers.r10, &registers.r8, &registers.r9};
    *arguments[call.count] = args[call.count] / 2;
    ptrace(PTRACE_SETREGS, thread, nullptr, &registers);
  }

  void leaving(pid_t thread) {
    auto found = atExit.find(thread);
    if (found == atExit.end()) return resume(thread);
    int reason = found->second;
    atExit.erase(found);
    if (!reason) {
      kill(program, SIGKILL);
      return;
    }
    user_regs_struct registers{};
    ptrace(PTRACE_GETREGS, thread, nullptr, &registers);
    registers.rax = static_cast<unsigned long long>(-reason);
    ptrace(PTRACE_SETREGS, thread, nullptr, &registers);
    resume(thread);
  }

  int error() const { return options.fault == "EIO" ? EIO : ENOSPC; }
  static void resume(pid_t thread) { ptrace(PTRACE_CONT, thread, nullptr, nullptr); }

  const Options &options;
  std::FILE *log = nullptr;
  pid_t program = -1;
  uint64_t count = 0;
  std::map<pid_t, int> atExit; // threads inside the call at hand: the error it will return, or 0 to be killed then
};

} // namespace
} // namespace zero::faults

int main(int argc, char **argv) {
  using namespace zero::faults;
  Options options = parse(argc, argv);
  int status = Tracer(options).run();
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  rlimit none{};
  setrlimit(RLIMIT_CORE, &none);
  std::signal(WTERMSIG(status), SIG_DFL);
  raise(WTERMSIG(status));
  return 128 + WTERMSIG(status);
}
