//===- fibers.cpp - a block of GPU threads on one thread of the processor ---------------------------------===//
#include "fibers.h"
#include "warp_operations.h"
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

// Saves the registers that a call keeps on the present stack, whose top goes to *save, and goes on where `load` was left.
extern "C" void zero_test_switch_stack(void **save, void *load);
asm(R"(
.text
.globl zero_test_switch_stack
.type zero_test_switch_stack, @function
zero_test_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size zero_test_switch_stack, .-zero_test_switch_stack
)");

namespace zero::test {
namespace {

constexpr unsigned kWarp = 32, kWarpgroup = 128;
constexpr size_t kStackBytes = 64 << 10;

enum class Waits { Nothing, Barrier, Any, WarpBarrier, Shuffle, Together, Ended };
using WarpOperation = void (*)(void *const *registers);

struct Copy {
  void *to;
  const void *from;
  uint32_t bytes, count; // of which so many are copied
};

struct Fiber {
  void *top = nullptr; // of its stack, while it does not run
  Waits waits = Waits::Nothing;
  uint32_t given = 0, bits = 0, taken = 0;
  WarpOperation operation = nullptr; // Together
  void *registers = nullptr;
  unsigned among = kWarp;   // threads that do it together
  std::vector<Copy> copies; // begun
  bool fenced = true;       // products of four warps see what was copied
};

class Block {
public:
  explicit Block(unsigned threads) : fibers(threads), stacks(new std::byte[threads * kStackBytes]), order(threads) {}

  size_t threads() const { return fibers.size(); }
  void arrange() { std::iota(order.begin(), order.end(), 0u); }

  void run(uint64_t number, const std::function<void()> &body, std::mt19937_64 *random) {
    block = uint32_t(number), thread = &body;
    if (random) std::shuffle(order.begin(), order.end(), *random);
    for (unsigned t = 0; t < fibers.size(); ++t) begin(t);
    do {
      for (unsigned t : order)
        if (fibers[t].waits == Waits::Nothing) {
          current = t;
          zero_test_switch_stack(&scheduler, fibers[t].top);
        }
    } while (release());
  }

  uint32_t wait(Waits what, uint32_t given = 0, uint32_t bits = 0) {
    Fiber &mine = fibers[current];
    mine.waits = what, mine.given = given, mine.bits = bits;
    zero_test_switch_stack(&mine.top, scheduler);
    return mine.taken;
  }

  void together(WarpOperation operation, void *registers, unsigned among = kWarp) {
    fibers[current].operation = operation, fibers[current].registers = registers, fibers[current].among = among;
    wait(Waits::Together);
  }

  /// To shared memory, which nobody sees filled before the thread waits.
  void beginCopy(const Copy &copy) { fibers[current].copies.push_back(copy); }
  void finishCopies() {
    if (!fibers[current].copies.empty()) fibers[current].fenced = false;
    for (const Copy &copy : fibers[current].copies) {
      std::memset(copy.to, 0, copy.bytes);
      std::memcpy(copy.to, copy.from, copy.count);
    }
    fibers[current].copies.clear();
  }
  void fence() { fibers[current].fenced = true; }

  uint32_t block = 0;
  unsigned current = 0;
  static thread_local Block *running;

private:
  std::vector<Fiber> fibers;
  std::unique_ptr<std::byte[]> stacks;
  std::vector<unsigned> order;
  void *scheduler = nullptr;
  const std::function<void()> *thread = nullptr;

  static void enter() {
    (*running->thread)();
    running->wait(Waits::Ended);
    std::abort(); // nobody goes on here
  }

  void begin(unsigned t) {
    auto *end = reinterpret_cast<void **>(stacks.get() + (t + 1) * kStackBytes);
    *--end = nullptr; // where a called function's stack begins, a return address stands above a multiple of 16
    *--end = reinterpret_cast<void *>(&enter);
    end -= 6; // registers
    std::fill_n(end, 6, nullptr);
    fibers[t] = Fiber{};
    fibers[t].top = end;
  }

  bool all(Waits what, size_t from, size_t to) const {
    return std::all_of(fibers.begin() + long(from), fibers.begin() + long(to), [&](const Fiber &f) { return f.waits == what; });
  }

  /// Whether so many threads from one on wait for one operation of all of them, which is done then.
  bool operate(size_t from, unsigned among) {
    void *registers[kWarpgroup];
    if (from + among > fibers.size()) return false;
    for (size_t t = 0; t < among; ++t) {
      const Fiber &f = fibers[from + t];
      if (f.waits != Waits::Together || f.operation != fibers[from].operation || f.among != among) return false;
      if (among > kWarp && !f.fenced) throw std::runtime_error("a product of four warps follows copies to shared memory without a fence");
      registers[t] = f.registers;
    }
    fibers[from].operation(registers);
    return true;
  }

  /// Lets those go on that all others have come to; false when all have ended.
  bool release() {
    size_t n = fibers.size();
    if (all(Waits::Ended, 0, n)) return false;
    if (all(Waits::Barrier, 0, n) || all(Waits::Any, 0, n)) {
      uint32_t any = 0;
      for (const Fiber &f : fibers) any |= f.given;
      for (Fiber &f : fibers) f.taken = any != 0, f.waits = Waits::Nothing;
      return true;
    }
    bool some = false;
    for (size_t from = 0; from < n; from += kWarp) {
      bool exchange = all(Waits::Shuffle, from, from + kWarp), four = from % kWarpgroup == 0 && operate(from, kWarpgroup);
      if (!exchange && !four && !all(Waits::WarpBarrier, from, from + kWarp) && !operate(from, kWarp)) continue;
      for (size_t t = from; t < from + (four ? kWarpgroup : kWarp); ++t) {
        if (exchange) fibers[t].taken = fibers[from + ((t - from) ^ fibers[t].bits)].given;
        fibers[t].waits = Waits::Nothing;
      }
      some = true;
    }
    if (!some)
      throw std::runtime_error("block " + std::to_string(block) +
                               ": its threads wait for each other without end, some at one place, some at another or ended");
    return true;
  }
};

thread_local Block *Block::running = nullptr;

/// To nearest even.
uint32_t rounded(float value) {
  auto bits = std::bit_cast<uint32_t>(value);
  return std::isnan(value) ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

} // namespace

const GpuHooks kGpuHooks = {
    [] { return uint32_t(Block::running->current); },
    [] { return Block::running->block; },
    [] { Block::running->wait(Waits::Barrier); },
    [](uint32_t condition) { return Block::running->wait(Waits::Any, condition); },
    [] { Block::running->wait(Waits::WarpBarrier); },
    [](uint32_t value, uint32_t bits) { return Block::running->wait(Waits::Shuffle, value, bits); },
    [](void *registers) { Block::running->together(multiplyMatrices, registers); },
    [](void *registers) { Block::running->together(loadMatrices, registers); },
    [](void *registers) { Block::running->together(loadTransposed, registers); },
    [](float high, float low) { return rounded(high) << 16 | rounded(low); },
    [](float exponent) { return std::exp2(exponent); },
    [](void *to, const void *from, uint32_t count) {
      Block::running->beginCopy({to, from, 16, count});
    },
    [](void *to, const void *from, uint32_t count) {
      Block::running->beginCopy({to, from, 4, count});
    },
    [] { Block::running->finishCopies(); },
    [](float number) { return 1 / number; },
    [](void *registers) { Block::running->together(timesTransposed, registers, kWarpgroup); },
    [](void *registers) { Block::running->together(plusTimesTransposed, registers, kWarpgroup); },
    [](void *registers) { Block::running->together(plusTimes, registers, kWarpgroup); },
    [] { Block::running->fence(); },
};

void runGrid(GpuGrid grid, uint64_t order, const std::function<void()> &beforeBlock, const std::function<void()> &thread) {
  thread_local std::unique_ptr<Block> kept; // the system clears pages of stacks that are touched first
  if (!kept || kept->threads() != grid.threads) kept = std::make_unique<Block>(grid.threads);
  Block &block = *kept;
  block.arrange();
  std::mt19937_64 random(order);
  Block::running = &block;
  for (uint64_t i = 0; i < grid.blocks; ++i) {
    beforeBlock();
    block.run(order % 2 ? grid.blocks - 1 - i : i, thread, order ? &random : nullptr);
  }
  Block::running = nullptr;
}

} // namespace zero::test
