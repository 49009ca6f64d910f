//===- text.cpp - the text form of a judge's problem --------------------------------------------------===//
#include "runtime/base/error.h"
#include "runtime/judge/problem.h"
#include "runtime/plan/lanes.h"
#include "runtime/plan/plan.pb.h"
#include <charconv>
#include <sstream>

namespace zero::judge {
namespace {

class Parser {
public:
  explicit Parser(const std::string &text) : in(text) {}

  std::vector<Problem> run() {
    std::string line;
    while (std::getline(in, line)) {
      ++number;
      words = std::istringstream(line.substr(0, line.find('#')));
      if (std::string verb; words >> verb) statement(verb);
    }
    if (ranks.empty()) throw Error("judge problem: it holds no statement, so there is nothing to judge");
    for (Problem &problem : ranks) addHost(problem);
    return std::move(ranks);
  }

private:
  [[noreturn]] void fail(std::string what) {
    for (char &c : what) // the file may be anything
      if (c < ' ' || c > '~') c = '?';
    throw Error("judge problem, line " + std::to_string(number) + ": " + what.substr(0, 200));
  }

  std::string word(const char *what) {
    std::string w;
    if (!(words >> w)) fail(std::string("expected ") + what);
    return w;
  }
  uint64_t toNumber(const std::string &w) {
    uint64_t n = 0;
    auto [end, error] = std::from_chars(w.data(), w.data() + w.size(), n);
    if (error != std::errc() || end != w.data() + w.size()) fail("'" + w + "' is no number");
    return n;
  }
  uint64_t readNumber(const char *what) { return toNumber(word(what)); }
  uint32_t readStep(const char *what) {
    uint64_t step = readNumber(what);
    if (step > UINT32_MAX) fail(std::to_string(step) + " is no number of a step");
    return uint32_t(step);
  }

  template <typename T> uint32_t find(const std::vector<T> &list, const std::string &name) {
    for (size_t i = 0; i < list.size(); ++i)
      if (list[i].name == name) return uint32_t(i);
    fail("nothing is called '" + name + "'");
  }
  uint32_t lane(const std::string &name) {
    for (uint32_t i = 0; i < plan::Lane_ARRAYSIZE; ++i)
      if (name == plan::laneName(i)) return i;
    fail("'" + name + "' is no lane");
  }

  Problem &problem() {
    if (ranks.empty()) ranks.emplace_back();
    return ranks.back();
  }

  void statement(const std::string &verb) {
    if (verb == "rank" || verb == "program") {
      Problem next;
      next.name = word("a name");
      next.another = verb == "program";
      if (next.another && !ranks.empty()) {
        next.arenas = ranks.back().arenas;
        next.buffers = ranks.back().buffers;
        for (Buffer &b : next.buffers)
          if (!b.persistent) b.bytes = 0; // out of reach
      }
      ranks.push_back(std::move(next));
    } else if (verb == "arena") {
      std::string name = word("a name");
      uint64_t bytes = readNumber("bytes"), alignment = 1;
      if (std::string w; words >> w) alignment = toNumber(w);
      if (alignment == 0) fail("an arena cannot be aligned to 0");
      problem().arenas.push_back({name, bytes, alignment});
    } else if (verb == "buffer") {
      Buffer b;
      b.name = word("a name");
      b.arena = find(problem().arenas, word("an arena"));
      b.offset = readNumber("an offset");
      b.bytes = readNumber("bytes");
      std::string how = word("'life' or 'persistent'");
      if (how != "life" && how != "persistent") fail("a buffer has a life or is persistent, not '" + how + "'");
      b.persistent = how == "persistent";
      if (!b.persistent) {
        b.first = readStep("a first step");
        b.last = readStep("a last step");
      }
      problem().buffers.push_back(b);
    } else if (verb == "step") {
      problem().steps.push_back(step());
    } else if (verb == "result") {
      std::string name = word("a name");
      Access a = access(word("bytes of a buffer"), false);
      problem().results.push_back({name, a.buffer, a.begin, a.end});
    } else if (verb == "input") {
      for (std::string w; words >> w;) problem().inputs.push_back(access(w, true));
    } else if (verb == "reads") {
      for (std::string w; words >> w;) problem().resultWaits.push_back(wait(w));
    } else if (verb == "entry") {
      Entry &entry = problem().entries.emplace_back();
      entry.after = word("a program");
      for (std::string w; words >> w;) entry.inputWaits.push_back(wait(w));
    } else {
      fail("'" + verb + "' is no statement (rank, program, arena, buffer, step, input, result, reads, entry)");
    }
  }

  Step step() {
    Step s;
    s.name = word("a name");
    s.lane = lane(word("a lane"));
    std::string mode, w;
    while (words >> w) {
      if (w == "waits" || w == "after" || w == "reads" || w == "writes") {
        mode = w;
      } else if (w == "collective") {
        std::getline(words >> std::ws, s.collective);
      } else if (mode == "waits") {
        s.waits.push_back(wait(w));
      } else if (mode == "after") {
        if (problem().entries.empty()) fail("a wait for another program stands before the entry that names it");
        problem().entries.back().waits.push_back({uint32_t(problem().steps.size()), wait(w)});
      } else if (!mode.empty()) {
        s.accesses.push_back(access(w, mode == "writes"));
      } else {
        fail("'" + w + "' stands before waits, reads or writes");
      }
    }
    return s;
  }

  Wait wait(const std::string &w) {
    size_t colon = w.find(':');
    if (colon == std::string::npos) fail("a wait is LANE:TICK, not '" + w + "'");
    return {lane(w.substr(0, colon)), toNumber(w.substr(colon + 1))};
  }

  Access access(const std::string &w, bool writes) {
    size_t open = w.find('['), colon = w.find(':');
    uint32_t buffer = find(problem().buffers, w.substr(0, open));
    if (open == std::string::npos) return {buffer, 0, problem().buffers[buffer].bytes, writes};
    if (colon == std::string::npos || w.back() != ']') fail("an access is BUFFER[BEGIN:END], not '" + w + "'");
    return {buffer, toNumber(w.substr(open + 1, colon - open - 1)), toNumber(w.substr(colon + 1, w.size() - colon - 2)), writes};
  }

  std::istringstream in, words;
  int number = 0;
  std::vector<Problem> ranks;
};

} // namespace

std::vector<Problem> parse(const std::string &text) { return Parser(text).run(); }

} // namespace zero::judge
