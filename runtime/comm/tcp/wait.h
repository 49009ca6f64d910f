// A long wait at the start of a run: when to speak about it, and when to give it up.
#pragma once
#include "runtime/comm/tcp/rendezvous.h"
#include "runtime/process/streams.h"
#include <algorithm>
#include <fmt/format.h>

namespace zero::runtime {

class Wait {
public:
  explicit Wait(const TcpLimits &limits)
      : begin(Clock::now()), end(begin + limits.giveUp), nextSentence(begin + limits.speak), step(limits.speak) {}

  bool over() const { return Clock::now() >= end; }
  Deadline next() const { return std::min(end, nextSentence); }
  std::string duration() const { return fmt::format("{:.0f} s", std::chrono::duration<double>(Clock::now() - begin).count()); }

  // Says the sentence if it is time for one.
  template <typename Sentence> void speak(Sentence &&sentence) {
    if (Clock::now() < nextSentence || over()) return;
    complain(fmt::format("zerorun: {}", sentence()));
    step *= 2;
    nextSentence += step;
  }

private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin, end, nextSentence;
  std::chrono::milliseconds step;
};

} // namespace zero::runtime
