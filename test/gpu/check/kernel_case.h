//===- kernel_case.h - a kernel with numbers made up for it -----------------------------------------------===//
// What a kernel takes and gives, as plain data: made by the compiler (reference.h), used without it. Two forms of one kernel are run on the
// same numbers and what they leave is compared: results but for rounding, operands and the bytes around each argument to the bit.
#pragma once
#include "runtime/data/element.h"
#include <string>
#include <vector>

namespace zero::test {

struct KernelArgument {
  runtime::Element type = runtime::Element::F32;
  uint64_t elements = 0;
};

/// Where right results come from: its form for processors; elements of them that were computed beforehand; or nowhere.
enum class Reference { Processor, Sample, None };

struct KernelCase {
  std::string symbol;
  uint64_t extent = 0;                   // iterations of a launch
  std::vector<KernelArgument> arguments; // inputs, then outputs
  uint64_t outputsFrom = 0;
  bool inexact = false;         // sums, in another order for each form, or functions that a GPU approximates: without any, bits are equal
  uint64_t processorExtent = 0; // iterations of its form for processors
  Reference reference = Reference::Processor;

  /// As JSON, all kernels of a plan in its order.
  static std::string print(const std::vector<KernelCase> &cases);
  static std::vector<KernelCase> read(const std::string &path); // throws a sentence
};

/// The arguments of a launch in one piece of memory each, with guards before and after.
class KernelMemory {
public:
  static constexpr uint64_t kGuard = 256;

  /// Random inputs, which depend on the case alone (integers below 40, so that they are indices into any table), and results full of
  /// garbage.
  explicit KernelMemory(const KernelCase &kernel);

  std::vector<char> &whole(size_t argument) { return memory[argument]; } // with its guards
  const char *data(size_t argument) const { return memory[argument].data() + kGuard; }
  std::vector<void *> pointers();
  bool guardsHold(size_t argument) const;

private:
  std::vector<std::vector<char>> memory;
};

/// Empty, or what `actual` has that `expected` does not explain.
std::string difference(const KernelCase &kernel, const KernelMemory &expected, const KernelMemory &actual);

/// Elements of the results, one after the other: all of small ones, of others so many, spread over them.
std::vector<char> sampleOf(const KernelCase &kernel, const KernelMemory &memory);
/// As `difference`, by such a sample; an empty one says nothing of results.
std::string difference(const KernelCase &kernel, const std::vector<char> &sample, const KernelMemory &actual);

} // namespace zero::test
