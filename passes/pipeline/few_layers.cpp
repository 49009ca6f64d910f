//===- few_layers.cpp - a model with a few of its layers ------------------------------------------------===//
#include "passes/pipeline/few_layers.h"
#include "compiler/nn/Nn.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <algorithm>
#include <map>
#include <unordered_map>

using namespace mlir;

namespace zero::pipeline {
namespace {

constexpr size_t kKept = 3;    // layers: the first, one between others, the last
constexpr size_t kFewest = 8;  // that are worth it
constexpr size_t kPeriods = 4; // that are looked at
constexpr int kRuns = 4;       // such as an encoder and a decoder

/// Of each operation, in order: the same for two that differ in what they read only.
std::vector<uint32_t> wordsOf(ArrayRef<Operation *> operations) {
  std::map<std::vector<const void *>, uint32_t> known;
  std::vector<uint32_t> words;
  for (Operation *op : operations) {
    std::vector<const void *> text{op->getName().getAsOpaquePointer()};
    if (!isa<nn::GetOp>(op)) text.push_back(op->getAttrDictionary().getAsOpaquePointer());
    for (Type type : op->getOperandTypes()) text.push_back(type.getAsOpaquePointer());
    text.push_back(nullptr);
    for (Type type : op->getResultTypes()) text.push_back(type.getAsOpaquePointer());
    words.push_back(known.try_emplace(std::move(text), uint32_t(known.size())).first->second);
  }
  return words;
}

bool shorten(func::FuncOp function) {
  SmallVector<Operation *> all;
  for (Operation &op : function.getBody().front().without_terminator()) all.push_back(&op);
  Repetition layers = longestRepetition(wordsOf(all));
  if (layers.times < kFewest) return false;
  size_t from = layers.begin + (kKept - 1) * layers.period, to = layers.begin + (layers.times - 1) * layers.period;
  for (size_t i = from; i < to; ++i) {
    size_t place = (i - layers.begin) % layers.period;
    all[i]->replaceAllUsesWith(all[from - layers.period + place]);
  }
  for (size_t i = to; i-- > from;) all[i]->erase();
  return true;
}

} // namespace

Repetition longestRepetition(std::span<const uint32_t> words) {
  std::unordered_map<uint32_t, size_t> last;
  std::map<size_t, size_t> covered; // by the distance of equal words: words between such
  for (size_t i = 0; i < words.size(); ++i) {
    auto [before, isFirst] = last.try_emplace(words[i], i);
    if (isFirst) continue;
    covered[i - before->second] += i - before->second;
    before->second = i;
  }
  std::vector<std::pair<size_t, size_t>> periods;
  for (auto [period, sum] : covered) periods.push_back({sum, period});
  std::stable_sort(periods.begin(), periods.end(), [](auto a, auto b) { return a.first > b.first; });
  if (periods.size() > kPeriods) periods.resize(kPeriods);
  Repetition best;
  size_t longest = 0;
  for (auto [sum, period] : periods)
    for (size_t i = period, equal = 0; i <= words.size(); ++i) {
      if (i < words.size() && words[i] == words[i - period]) {
        ++equal;
        continue;
      }
      size_t length = equal >= period ? equal + period : 0;
      if (length > longest) longest = length, best = {i - length, period, length / period};
      equal = 0;
    }
  return best;
}

bool keepFewLayers(ModuleOp imported) {
  bool shorter = false;
  for (auto function : imported.getOps<func::FuncOp>())
    for (int run = 0; !function.isExternal() && run < kRuns && shorten(function); ++run) shorter = true;
  if (!shorter) return false;
  DenseSet<StringAttr> read;
  imported.walk([&](nn::GetOp get) { read.insert(get.getParameterAttr().getAttr()); });
  for (auto parameter : llvm::make_early_inc_range(imported.getOps<nn::ParameterOp>()))
    if (!read.contains(parameter.getSymNameAttr())) parameter.erase();
  return true;
}

} // namespace zero::pipeline
