//===- kernel_check.h - generated kernels against the reference interpreter ------------------------===//
// Values, independence of how the extent is cut, results in place, nothing written beside the results.
#pragma once
#include "kernel_run.h"
#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <set>

namespace zero::test {

/// The text with other words for these, one name after another.
inline std::string replaced(std::string text, const std::vector<std::pair<std::string, std::string>> &names) {
  for (auto &[from, to] : names)
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) text.replace(at, from.size(), to);
  return text;
}

/// Guard bytes around a tensor's own, so that writing outside shows.
struct Guarded {
  std::vector<char> bytes;
  size_t size;
  static constexpr size_t kMargin = 128;
  explicit Guarded(const nn::Tensor &t) : bytes(t.bytes.size() + 2 * kMargin, char(0x5a)), size(t.bytes.size()) {
    std::memcpy(data(), t.bytes.data(), size);
  }
  char *data() { return bytes.data() + kMargin; }
  bool intact() const {
    for (size_t i = 0; i < kMargin; ++i)
      if (bytes[i] != 0x5a || bytes[kMargin + size + i] != 0x5a) return false;
    return true;
  }
};

inline nn::Tensor randomTensor(mlir::RankedTensorType type, std::mt19937 &random, int64_t limit) {
  nn::Tensor t(type);
  std::normal_distribution<double> normal;
  for (int64_t i = 0; i < t.size(); ++i) {
    if (mlir::isa<mlir::FloatType>(type.getElementType()))
      t.set(i, normal(random));
    else if (type.getElementType().isInteger(1))
      t.set(i, random() % 2);
    else
      t.set(i, double(random() % uint64_t(limit)));
  }
  return t;
}

inline std::string difference(const nn::Tensor &expected, const char *bytes, double tolerance) {
  nn::Tensor actual(expected.type);
  std::memcpy(actual.bytes.data(), bytes, actual.bytes.size());
  double norm = 0;
  for (int64_t i = 0; i < expected.size(); ++i)
    if (std::isfinite(expected.at(i))) norm = std::max(norm, std::abs(expected.at(i)));
  for (int64_t i = 0; i < expected.size(); ++i) {
    double e = expected.at(i), a = actual.at(i);
    if (std::isnan(e) ? std::isnan(a) : e == a) continue;
    if (!(std::abs(e - a) <= tolerance * (0.05 * norm + std::abs(e)) + 1e-30))
      return "element " + std::to_string(i) + " is " + std::to_string(a) + ", expected " + std::to_string(e);
  }
  return "";
}

struct CheckOptions {
  int64_t limit = 4; // integers lie below
  double tolerance = 2e-5;
  std::string target = "native";
  llvm::ArrayRef<nn::Tensor> inputs = {};            // none: random ones
  std::vector<std::vector<char>> *results = nullptr; // what the kernel makes of them, if anybody asks
};

/// A whole launch: 0 as it comes, others in ways that must make no difference.
using Launch = std::function<void(void *const *args, int way)>;

/// Empty, or what is wrong with what `launch` does.
inline std::string checkLaunches(mlir::func::FuncOp kernel, const codegen::KernelInfo &info, const Launch &launch,
                                 const CheckOptions &options) {
  std::mt19937 random(7);
  llvm::SmallVector<nn::Tensor> inputs(options.inputs);
  if (inputs.empty())
    for (mlir::Type t : kernel.getArgumentTypes())
      inputs.push_back(randomTensor(mlir::cast<mlir::RankedTensorType>(t), random, options.limit));
  auto expected = nn::evaluateFunction(kernel, inputs);
  if (failed(expected)) return "the interpreter does not take it";
  if (info.args != inputs.size() + expected->size()) return "wrong number of arguments";
  auto run = [&](std::vector<Guarded> &memory, llvm::ArrayRef<std::pair<unsigned, unsigned>> shared, int way) {
    for (const nn::Tensor &t : inputs) memory.emplace_back(t);
    for (const nn::Tensor &t : *expected) {
      nn::Tensor garbage(t.type);
      std::fill(garbage.bytes.begin(), garbage.bytes.end(), char(0x77));
      memory.emplace_back(garbage);
    }
    std::vector<void *> args;
    for (Guarded &g : memory) args.push_back(g.data());
    for (auto [result, operand] : shared) args[inputs.size() + result] = args[operand];
    launch(args.data(), way);
    return args;
  };
  std::vector<std::vector<char>> whole;
  for (int way = 0; way < 3; ++way) {
    std::vector<Guarded> memory;
    run(memory, {}, way);
    for (Guarded &g : memory)
      if (!g.intact()) return "it writes beside argument " + std::to_string(&g - memory.data());
    for (size_t i = 0; i < expected->size(); ++i) {
      char *bytes = memory[inputs.size() + i].data();
      size_t size = (*expected)[i].bytes.size();
      if (way == 0) {
        std::string wrong = difference((*expected)[i], bytes, options.tolerance);
        if (!wrong.empty()) return "result " + std::to_string(i) + ": " + wrong;
        whole.emplace_back(bytes, bytes + size);
      } else if (std::memcmp(bytes, whole[i].data(), size)) {
        return "result " + std::to_string(i) + " depends on how the work is cut";
      }
    }
  }
  // In place: as many pairs as fit together from each starting point on.
  for (size_t start = 0; start < info.inplace.size(); ++start) {
    std::vector<std::pair<unsigned, unsigned>> shared;
    std::set<unsigned> results, operands;
    for (size_t i = 0; i < info.inplace.size(); ++i) {
      auto [result, operand] = info.inplace[(start + i) % info.inplace.size()];
      if (results.insert(result).second) {
        if (operands.insert(operand).second)
          shared.push_back({result, operand});
        else
          results.erase(result);
      }
    }
    std::vector<Guarded> memory;
    auto args = run(memory, shared, 1);
    for (size_t i = 0; i < expected->size(); ++i)
      if (std::memcmp(args[inputs.size() + i], whole[i].data(), whole[i].size()))
        return "result " + std::to_string(i) + " differs in place";
  }
  if (options.results) *options.results = std::move(whole);
  return "";
}

/// Empty, or what is wrong with the kernel's code in `library`.
inline std::string checkKernel(mlir::func::FuncOp kernel, const Library &library, const CheckOptions &options) {
  auto info = codegen::describe(kernel);
  if (failed(info)) return "it has no description";
  auto function = library[info->symbol];
  if (!function) return "it is not in the library";
  std::mt19937 random(7);
  auto extent = int64_t(info->extent);
  // One piece; pieces of a few iterations; large pieces; in any order.
  auto launch = [&](void *const *args, int way) {
    std::vector<std::pair<int64_t, int64_t>> pieces;
    for (int64_t at = 0; at < extent;) {
      int64_t next = way == 0 ? extent : std::min<int64_t>(extent, at + 1 + random() % (way == 1 ? 3 : extent + 1));
      pieces.push_back({at, next});
      at = next;
    }
    std::shuffle(pieces.begin(), pieces.end(), random);
    for (auto [from, to] : pieces) function(args, from, to);
  };
  return checkLaunches(kernel, *info, launch, options);
}

} // namespace zero::test
