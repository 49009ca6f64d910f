#include "runtime/process/last_words.h"
#include "runtime/files/lock_file.h"
#include "runtime/process/addresses.h"
#include "runtime/process/streams.h"
#include <exception>
#include <execinfo.h>
#include <new>
#include <string>
#include <unistd.h>

namespace zero::runtime {
namespace {

[[noreturn]] void end() {
  static constexpr char without[] = "zerorun: this process cannot get the memory it needs\n";
  try {
    if (std::exception_ptr reason = std::current_exception()) std::rethrow_exception(reason);
    complain("zerorun: this process ends in the middle of something: this is an error in zerorun");
  } catch (const std::exception &error) {
    try {
      complain("zerorun: " + sentenceOf(error));
    } catch (const std::exception &) { // there is no memory for the sentence either
      [[maybe_unused]] ssize_t ignored = ::write(STDERR_FILENO, without, sizeof without - 1);
    }
  } catch (...) {
    complain("zerorun: this process ends in the middle of something: this is an error in zerorun");
  }
  removeLockFiles();
  ::_exit(1);
}

} // namespace

void endInASentence() {
  std::set_terminate(end);
  void *here = nullptr; // the C library finds out now how an exception passes through it: later there may be no memory for that
  ::backtrace(&here, 1);
}

} // namespace zero::runtime
