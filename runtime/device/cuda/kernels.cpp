#include "runtime/device/cuda/kernels.h"
#include "runtime/device/kernel_bounds.h"
#include "runtime/plan/error.h"
#include <array>
#include <cstring>

namespace zero::runtime::cuda {
namespace {

constexpr size_t kLogBytes = 4096;
constexpr uint32_t kSharedAtOnce = 48 << 10; // bytes of shared memory for which a kernel need not ask

// The first line of what the driver's compiler says.
std::string firstLine(const char *log) {
  std::string text(log);
  return text.substr(0, text.find('\n'));
}

} // namespace

OwnedModule compilePtx(const std::string &text, const std::string &what) {
  const Driver &driver = Driver::get();
  std::array<char, kLogBytes> log{};
  std::array<int, 2> options{kErrorLog, kErrorLogBytes};
  std::array<void *, 2> values{log.data(), reinterpret_cast<void *>(log.size())};
  ModuleHandle made{};
  Status status = driver.moduleLoad(&made, text.c_str(), options.size(), options.data(), values.data());
  driver.require(status, "cannot load " + what + (log[0] ? " (" + firstLine(log.data()) + ")" : ""));
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
