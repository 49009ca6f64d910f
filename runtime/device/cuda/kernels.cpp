#include "runtime/device/cuda/kernels.h"
#include "runtime/base/error.h"
#include "runtime/device/cuda/cubin_cache.h"
#include "runtime/device/kernel_bounds.h"
#include <array>
#include <cstring>
#include <fmt/format.h>

namespace zero::runtime::cuda {
namespace {

constexpr size_t kLogBytes = 4096;
constexpr uint32_t kSharedAtOnce = 48 << 10; // bytes of shared memory for which a kernel need not ask

// The first line of what the driver's compiler says.
std::string firstLine(const char *log) {
  std::string text(log);
  return text.substr(0, text.find('\n'));
}

// All that the driver's code for it depends on.
std::string keyOf(const std::string &text) {
  const Driver &driver = Driver::get();
  int version = 0, major = 0, minor = 0;
  Ordinal ordinal = 0;
  std::array<char, 128> name{};
  const char *what = "cannot ask the GPU what it is";
  driver.require(driver.driverGetVersion(&version), what);
  driver.require(driver.contextGetDevice(&ordinal), what);
  driver.require(driver.deviceGetName(name.data(), name.size() - 1, ordinal), what);
  driver.require(driver.deviceGetAttribute(&major, kCapabilityMajor, ordinal), what);
  driver.require(driver.deviceGetAttribute(&minor, kCapabilityMinor, ordinal), what);
  return fmt::format("driver {}\n{}\nsm_{}{}\n", version, name.data(), major, minor) + text;
}

std::vector<std::byte> compiled(const std::string &text, const std::string &what) {
  const Driver &driver = Driver::get();
  std::array<char, kLogBytes> log{};
  std::array<int, 2> options{kErrorLog, kErrorLogBytes};
  std::array<void *, 2> values{log.data(), reinterpret_cast<void *>(log.size())};
  auto require = [&](Status status) { driver.require(status, "cannot load " + what + (log[0] ? " (" + firstLine(log.data()) + ")" : "")); };
  LinkHandle link{};
  require(driver.linkCreate(options.size(), options.data(), values.data(), &link));
  OwnedLink owned(link, driver.linkDestroy);
  require(driver.linkAddData(link, kPtx, const_cast<char *>(text.c_str()), text.size() + 1, "kernels", 0, nullptr, nullptr));
  void *code = nullptr; // the link's own
  size_t bytes = 0;
  require(driver.linkComplete(link, &code, &bytes));
  return {static_cast<std::byte *>(code), static_cast<std::byte *>(code) + bytes};
}

} // namespace

OwnedModule compilePtx(const std::string &text, const std::string &what) {
  const Driver &driver = Driver::get();
  CubinCache cache(CubinCache::usualFolder());
  std::string key = keyOf(text);
  ModuleHandle made{};
  if (auto kept = cache.find(key))
    if (driver.moduleLoad(&made, kept->data(), 0, nullptr, nullptr) == kSuccess) return {made, driver.moduleUnload};
  std::vector<std::byte> code = compiled(text, what);
  driver.require(driver.moduleLoad(&made, code.data(), 0, nullptr, nullptr), "cannot load " + what);
  cache.keep(key, code);
  return {made, driver.moduleUnload};
}

KernelModule::KernelModule(std::span<const std::byte> ptx, std::span<const KernelSymbol> symbols)
    : module(compilePtx(std::string(reinterpret_cast<const char *>(ptx.data()), ptx.size()), "the plan's kernels")) {
  for (const KernelSymbol &symbol : symbols) list.push_back(load(symbol));
}

Kernel KernelModule::load(const KernelSymbol &symbol) const {
  const Driver &driver = Driver::get();
  std::string what = "kernel '" + symbol.symbol + "' ";
  Kernel kernel{{}, symbol.grid, symbol.extent};
  driver.require(driver.moduleGetFunction(&kernel.function, module.get(), symbol.symbol.c_str()),
                 what + "is not in the plan's kernel segment; compile the plan again");
  if (std::string wrong = boundsRefusal(boundsOf(symbol.symbol), symbol); !wrong.empty())
    throw Error(what + wrong + "; compile the plan again");
  if (symbol.grid.shared_bytes() > kSharedAtOnce)
    driver.require(driver.functionSetAttribute(kernel.function, kMaxDynamicShared, static_cast<int>(symbol.grid.shared_bytes())),
                   what + "wants " + std::to_string(symbol.grid.shared_bytes()) + " bytes of shared memory");
  return kernel;
}

std::vector<uint64_t> KernelModule::boundsOf(const std::string &symbol) const {
  const Driver &driver = Driver::get();
  Pointer at = 0;
  size_t bytes = 0;
  if (driver.moduleGetGlobal(&at, &bytes, module.get(), (symbol + "_bounds").c_str()) != kSuccess || bytes == 0) return {};
  std::vector<uint64_t> words(bytes / sizeof(uint64_t));
  PinnedMemory copy = allocatePinned(bytes, "the bounds of kernels");
  OwnedStream stream = makeStream();
  std::string what = "cannot read the bounds of kernel '" + symbol + "'";
  driver.require(driver.copyAsync(pointerTo(copy.get()), at, bytes, stream.get()), what);
  driver.require(driver.streamSynchronize(stream.get()), what);
  std::memcpy(words.data(), copy.get(), words.size() * sizeof(uint64_t));
  return words;
}

} // namespace zero::runtime::cuda
