#include "test/gpu/check/kernel_case.h"
#include "runtime/base/error.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

namespace zero::test {
namespace {

using runtime::Element;

/// What attention, which processors have no form of, may be off by, as a multiple of what other sums may: between its products it rounds
/// weights to the type of its operands, and made-up row sums make them any size, so that a few of them may be most of a sum that is small.
constexpr double kRoundedWeights = 8;
constexpr uint64_t kSampled = 4096; // elements of a result

constexpr char kGuarded = 0x5a, kGarbage = 0x77;
constexpr unsigned kIntegersBelow = 40;

// Types that kernels have.
constexpr Element kTypes[] = {Element::F64, Element::F32, Element::F16, Element::BF16, Element::I64,
                              Element::I32, Element::I16, Element::I8,  Element::U8,   Element::BOOL};

Element typeNamed(const std::string &name) {
  for (Element type : kTypes)
    if (name == runtime::nameOf(type)) return type;
  throw Error("a kernel has arguments of type '" + name + "', which this program does not know");
}

template <typename T> T load(const char *at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}
template <typename T> void store(char *at, T value) { std::memcpy(at, &value, sizeof(T)); }

double floatAt(Element type, const char *data, uint64_t index) {
  switch (type) {
  case Element::F64:
    return load<double>(data + 8 * index);
  case Element::F32:
    return double(load<float>(data + 4 * index));
  case Element::F16:
    return double(runtime::halfToFloat(load<uint16_t>(data + 2 * index)));
  case Element::BF16:
    return double(runtime::bfloatToFloat(load<uint16_t>(data + 2 * index)));
  default:
    return double(runtime::integerAt(type, reinterpret_cast<const std::byte *>(data), index));
  }
}

void setRandom(Element type, char *data, uint64_t index, std::mt19937 &random, std::normal_distribution<float> &normal) {
  char *at = data + runtime::sizeOf(type) * index;
  switch (type) {
  case Element::F64:
    return store(at, double(normal(random)));
  case Element::F32:
    return store(at, normal(random));
  case Element::F16:
    return store(at, runtime::floatToHalf(normal(random)));
  case Element::BF16:
    return store(at, runtime::floatToBfloat(normal(random)));
  default: { // little-endian
    uint64_t value = random() % (type == Element::BOOL ? 2 : kIntegersBelow);
    std::memcpy(at, &value, runtime::sizeOf(type));
  }
  }
}

/// Of a result where sums run in another order: rounding of f32 sums, and of the type it is stored in.
double toleranceOf(Element type) { return type == Element::F16 ? 2e-3 : type == Element::BF16 ? 1.6e-2 : 2e-5; }

std::string differenceOf(const KernelArgument &argument, const char *expected, const char *actual, double tolerance) {
  double largest = 0;
  for (uint64_t i = 0; i < argument.elements; ++i)
    if (double e = floatAt(argument.type, expected, i); std::isfinite(e)) largest = std::max(largest, std::abs(e));
  uint64_t wrong = 0, first = 0;
  for (uint64_t i = 0; i < argument.elements; ++i) {
    double e = floatAt(argument.type, expected, i), a = floatAt(argument.type, actual, i);
    if (std::isnan(e) ? std::isnan(a) : e == a || std::abs(e - a) <= tolerance * (0.05 * largest + std::abs(e)) + 1e-30) continue;
    if (wrong++ == 0) first = i;
  }
  if (wrong == 0) return "";
  return fmt::format("{} of {} elements are wrong; element {} is {}, expected {}", wrong, argument.elements, first,
                     floatAt(argument.type, actual, first), floatAt(argument.type, expected, first));
}

} // namespace

std::string KernelCase::print(const std::vector<KernelCase> &cases) {
  nlohmann::json list = nlohmann::json::array();
  for (const KernelCase &kernel : cases) {
    nlohmann::json arguments = nlohmann::json::array();
    for (const KernelArgument &argument : kernel.arguments) arguments.push_back({runtime::nameOf(argument.type), argument.elements});
    list.push_back({{"symbol", kernel.symbol},
                    {"extent", kernel.extent},
                    {"processor_extent", kernel.processorExtent},
                    {"arguments", arguments},
                    {"outputs_from", kernel.outputsFrom},
                    {"inexact", kernel.inexact},
                    {"reference", kernel.reference}});
  }
  return list.dump() + "\n";
}

std::vector<KernelCase> KernelCase::read(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  try {
    if (!in) throw Error("it cannot be opened");
    std::vector<KernelCase> cases;
    for (const nlohmann::json &entry : nlohmann::json::parse(in)) {
      KernelCase kernel{entry.at("symbol"),           entry.at("extent"),   {}, entry.at("outputs_from"), entry.at("inexact"),
                        entry.at("processor_extent"), entry.at("reference")};
      for (const nlohmann::json &argument : entry.at("arguments")) kernel.arguments.push_back({typeNamed(argument.at(0)), argument.at(1)});
      cases.push_back(std::move(kernel));
    }
    return cases;
  } catch (const std::exception &error) {
    throw Error("'" + path + "' does not describe kernels: " + error.what());
  }
}

KernelMemory::KernelMemory(const KernelCase &kernel) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal;
  for (size_t i = 0; i < kernel.arguments.size(); ++i) {
    const KernelArgument &argument = kernel.arguments[i];
    uint64_t bytes = argument.elements * runtime::sizeOf(argument.type);
    memory.emplace_back(bytes + 2 * kGuard, kGuarded);
    char *at = memory.back().data() + kGuard;
    if (i >= kernel.outputsFrom)
      std::memset(at, kGarbage, bytes);
    else
      for (uint64_t e = 0; e < argument.elements; ++e) setRandom(argument.type, at, e, random, normal);
  }
}

std::vector<void *> KernelMemory::pointers() {
  std::vector<void *> list;
  for (std::vector<char> &each : memory) list.push_back(each.data() + kGuard);
  return list;
}

bool KernelMemory::guardsHold(size_t argument) const {
  const std::vector<char> &bytes = memory[argument];
  auto holds = [](char byte) { return byte == kGuarded; };
  return std::all_of(bytes.begin(), bytes.begin() + kGuard, holds) && std::all_of(bytes.end() - kGuard, bytes.end(), holds);
}

/// Empty, or what was written that is no result.
static std::string trespass(const KernelCase &kernel, const KernelMemory &before, const KernelMemory &actual) {
  for (size_t i = 0; i < kernel.arguments.size(); ++i) {
    const KernelArgument &argument = kernel.arguments[i];
    if (!actual.guardsHold(i)) return "it writes beside argument " + std::to_string(i);
    if (i < kernel.outputsFrom && std::memcmp(before.data(i), actual.data(i), argument.elements * runtime::sizeOf(argument.type)) != 0)
      return "it writes its operand " + std::to_string(i);
  }
  return "";
}

static std::string wrongResult(const KernelCase &kernel, size_t number, const KernelArgument &argument, const char *expected,
                               const char *actual) {
  double times = kernel.reference == Reference::Processor ? 1 : kRoundedWeights;
  std::string wrong = differenceOf(argument, expected, actual, kernel.inexact ? times * toleranceOf(argument.type) : 0);
  return wrong.empty() ? "" : "result " + std::to_string(number - kernel.outputsFrom) + ": " + wrong;
}

std::string difference(const KernelCase &kernel, const KernelMemory &expected, const KernelMemory &actual) {
  std::string wrong = trespass(kernel, expected, actual);
  for (size_t i = kernel.outputsFrom; wrong.empty() && i < kernel.arguments.size(); ++i)
    wrong = wrongResult(kernel, i, kernel.arguments[i], expected.data(i), actual.data(i));
  return wrong;
}

std::vector<char> sampleOf(const KernelCase &kernel, const KernelMemory &memory) {
  std::vector<char> sample;
  for (size_t i = kernel.outputsFrom; i < kernel.arguments.size(); ++i) {
    uint64_t elements = kernel.arguments[i].elements, width = runtime::sizeOf(kernel.arguments[i].type);
    for (uint64_t s = 0; s < std::min(elements, kSampled); ++s) {
      const char *at = memory.data(i) + (elements <= kSampled ? s : s * 2654435761u % elements) * width;
      sample.insert(sample.end(), at, at + width);
    }
  }
  return sample;
}

std::string difference(const KernelCase &kernel, const std::vector<char> &sample, const KernelMemory &actual) {
  std::string wrong = trespass(kernel, KernelMemory(kernel), actual);
  if (sample.empty() || !wrong.empty()) return wrong;
  std::vector<char> found = sampleOf(kernel, actual);
  size_t at = 0;
  for (size_t i = kernel.outputsFrom; wrong.empty() && i < kernel.arguments.size(); ++i) {
    KernelArgument part{kernel.arguments[i].type, std::min(kernel.arguments[i].elements, kSampled)};
    wrong = wrongResult(kernel, i, part, sample.data() + at, found.data() + at);
    at += part.elements * runtime::sizeOf(part.type);
  }
  return wrong;
}

} // namespace zero::test
