//===- target.cpp - levels of x86-64 -------------------------------------------------------------===//
#include "compiler/codegen/codegen.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/TargetParser/Host.h"

namespace zero::codegen {
namespace {

using Feature = std::pair<const char *, const char *>; // LLVM's name, /proc/cpuinfo's name

struct Level {
  const char *name;
  unsigned lanes; // elements of f32 in a vector
  std::vector<Feature> adds;
};

// The levels of the x86-64 psABI, the highest first, with what each adds to the one after it that generated code may contain.
const Level kLevels[] = {
    {"x86-64-v4",
     16,
     {{"avx512f", "avx512f"}, {"avx512bw", "avx512bw"}, {"avx512cd", "avx512cd"}, {"avx512dq", "avx512dq"}, {"avx512vl", "avx512vl"}}},
    {"x86-64-v3",
     8,
     {{"avx", "avx"},
      {"avx2", "avx2"},
      {"bmi", "bmi1"},
      {"bmi2", "bmi2"},
      {"f16c", "f16c"},
      {"fma", "fma"},
      {"lzcnt", "abm"},
      {"movbe", "movbe"}}},
};

std::vector<Feature> featuresOf(const Level &level) {
  std::vector<Feature> features;
  for (const Level *one = &level; one != std::end(kLevels); ++one) features.insert(features.end(), one->adds.begin(), one->adds.end());
  return features;
}

} // namespace

llvm::FailureOr<CpuTarget> CpuTarget::fromName(llvm::StringRef name, std::string &error) {
  auto host = name == "native" ? llvm::sys::getHostCPUFeatures() : llvm::StringMap<bool>();
  for (const Level &level : kLevels) {
    std::vector<Feature> features = featuresOf(level);
    bool fits = name == "native" ? llvm::all_of(features, [&](auto &f) { return host.lookup(f.first); }) : name == level.name;
    if (!fits) continue;
    CpuTarget target;
    target.name = level.name;
    target.lanes = level.lanes;
    for (auto &[llvmName, procName] : features) target.features.push_back(procName);
    return target;
  }
  if (name == "native")
    error =
        "this machine's processor has no AVX2, which generated kernels need at least; name another machine's level with --cpu x86-64-v3";
  else
    error = "unknown processor '" + name.str() + "': expected native, x86-64-v3 or x86-64-v4";
  return llvm::failure();
}

} // namespace zero::codegen
