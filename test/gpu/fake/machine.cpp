#include "test/gpu/fake/machine.h"
#include "test/gpu/fake/memory.h"
#include <bit>
#include <cstring>
#include <map>
#include <regex>
#include <sstream>
#include <stdexcept>

namespace zero::fake {

struct Machine::Thread {
  std::vector<uint64_t> registers;
  const std::vector<uint64_t> &parameters;
  uint64_t thread, block, threads;
  size_t next = 0; // instruction
};

namespace {

[[noreturn]] void refuse(const std::string &why) { throw std::runtime_error("the fake device's machine " + why); }

std::byte *reach(uint64_t address, size_t bytes) {
  std::byte *at = Memory::get().reach(address, bytes);
  if (!at || address % bytes) refuse("was sent to " + std::to_string(address));
  return at;
}

size_t bytesOf(const std::string &type) { return std::stoul(type.substr(type.find_first_of("0123456789"))) / 8; }

uint64_t cut(uint64_t value, size_t bytes) { return bytes == 8 ? value : value & ((uint64_t(1) << 8 * bytes) - 1); }

float asFloat(uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }

} // namespace

struct Machine::Parser {
  Machine &machine;
  std::map<std::string, size_t> numbers{}; // of registers
  std::map<std::string, size_t> labels{};  // the instruction after
  using Source = std::function<uint64_t(const Thread &)>;

  size_t target(const std::string &name) {
    if (name.empty() || name[0] != '%') refuse("expected a register, not '" + name + "'");
    return numbers.try_emplace(name, numbers.size()).first->second;
  }
  Source source(const std::string &name) {
    if (name == "%tid.x") return [](const Thread &t) { return t.thread; };
    if (name == "%ctaid.x") return [](const Thread &t) { return t.block; };
    if (name == "%ntid.x") return [](const Thread &t) { return t.threads; };
    if (name[0] == '%') return [r = target(name)](const Thread &t) { return t.registers[r]; };
    uint64_t value = name.starts_with("0f") ? std::stoull(name.substr(2), nullptr, 16) : std::stoull(name);
    return [value](const Thread &) { return value; };
  }

  // "setp.eq.u32 %p, %a, %b" by its words.
  Instruction instruction(const std::vector<std::string> &words) {
    const std::string &op = words[0];
    std::string kind = op.substr(0, op.find('.')), type = op.substr(op.rfind('.') + 1);
    auto has = [&](const char *part) { return (op + ".").find(std::string(".") + part + ".") != std::string::npos; };
    if (kind == "ret") return [](Thread &t) { t.next = SIZE_MAX - 1; };
    size_t bytes = bytesOf(type);
    if (kind == "st" && has("global"))
      return [at = source(words[1]), value = source(words[2]), bytes](Thread &t) {
        uint64_t given = value(t);
        std::memcpy(reach(at(t), bytes), &given, bytes);
      };
    size_t to = target(words[1]);
    if (kind == "ld" && has("param")) {
      for (size_t i = 0; i < machine.parameters.size(); ++i)
        if (machine.parameters[i] == std::pair(words[2], bytes)) return [to, i](Thread &t) { t.registers[to] = t.parameters[i]; };
      refuse("finds no parameter " + words[2] + " of " + type);
    }
    Source a = source(words[2]);
    if (kind == "ld" && has("global"))
      return [=](Thread &t) { t.registers[to] = 0, std::memcpy(&t.registers[to], reach(a(t), bytes), bytes); };
    if (kind == "mov" || kind == "cvt") return [=](Thread &t) { t.registers[to] = cut(a(t), kind == "cvt" ? 4 : bytes); };
    Source b = source(words.at(3));
    if (kind == "selp") return [=, is = source(words.at(4))](Thread &t) { t.registers[to] = is(t) ? a(t) : b(t); };
    if (kind == "mad" && has("wide"))
      return [=, c = source(words.at(4))](Thread &t) { t.registers[to] = cut(a(t), bytes) * cut(b(t), bytes) + c(t); };
    if (kind == "setp")
      return [=, equal = has("eq"), less = has("lt")](Thread &t) {
        uint64_t x = cut(a(t), bytes), y = cut(b(t), bytes);
        t.registers[to] = equal ? x == y : less ? x < y : x >= y;
      };
    if (kind == "add" && has("rn")) return [=](Thread &t) { t.registers[to] = std::bit_cast<uint32_t>(asFloat(a(t)) + asFloat(b(t))); };
    if (kind == "add") return [=](Thread &t) { t.registers[to] = cut(a(t) + b(t), bytes); };
    if (kind == "mul" && has("lo")) return [=](Thread &t) { t.registers[to] = cut(a(t) * b(t), bytes); };
    if (kind == "shl") return [=](Thread &t) { t.registers[to] = cut(a(t) << b(t), bytes); };
    refuse("does not know " + op);
  }
};

Machine::Machine(const std::string &text, const std::string &symbol) {
  std::smatch found;
  std::regex entry("\\.entry\\s+" + symbol + "\\s*\\(([^)]*)\\)\\s*\\{([^}]*)\\}"), parameter("\\.param\\s+\\.([a-z0-9]+)\\s+(\\w+)");
  if (!std::regex_search(text, found, entry)) refuse("finds no kernel " + symbol);
  std::string head = found[1], body = found[2];
  for (std::sregex_iterator it(head.begin(), head.end(), parameter), end; it != end; ++it)
    parameters.emplace_back((*it)[2], bytesOf((*it)[1]));
  Parser parser{*this};
  struct Jump {
    size_t at;
    std::string guard, label;
  };
  std::vector<Jump> jumps;
  std::istringstream lines(std::regex_replace(body, std::regex(":"), ":;"));
  for (std::string line; std::getline(lines, line, ';');) {
    std::istringstream in(std::regex_replace(line, std::regex("[,\\[\\]]"), " "));
    std::vector<std::string> words;
    for (std::string word; in >> word;) words.push_back(word);
    if (words.empty() || words[0] == ".reg") continue;
    if (words[0].ends_with(":")) {
      parser.labels[words[0].substr(0, words[0].size() - 1)] = code.size();
    } else if (words[0][0] == '@' || words[0] == "bra") {
      jumps.push_back({code.size(), words[0] == "bra" ? "" : words[0].substr(1), words.back()});
      code.emplace_back();
    } else {
      code.push_back(parser.instruction(words));
    }
  }
  for (const Jump &jump : jumps) {
    auto label = parser.labels.find(jump.label);
    if (label == parser.labels.end()) refuse("finds no label " + jump.label);
    Parser::Source is = jump.guard.empty() ? [](const Thread &) { return uint64_t(1); } : parser.source(jump.guard);
    code[jump.at] = [is, to = label->second](Thread &t) {
      if (is(t)) t.next = to;
    };
  }
  registers = parser.numbers.size();
}

std::vector<size_t> Machine::parameterBytes() const {
  std::vector<size_t> bytes;
  for (const auto &[name, size] : parameters) bytes.push_back(size);
  return bytes;
}

void Machine::run(const std::vector<uint64_t> &given, test::GpuGrid grid) const {
  for (uint64_t block = 0; block < grid.blocks; ++block)
    for (uint64_t thread = 0; thread < grid.threads; ++thread) {
      Thread state{std::vector<uint64_t>(registers, 0xa5a5a5a5a5a5a5a5), given, thread, block, grid.threads, 0};
      while (state.next < code.size()) code[state.next++](state);
    }
}

} // namespace zero::fake
