#include "runtime/device/cuda/issue.h"

namespace zero::runtime::cuda {
namespace {

template <class... Cases> struct Overloaded : Cases... { using Cases::operator()...; };
template <class... Cases> Overloaded(Cases...) -> Overloaded<Cases...>;

void runDiskCall(void *call) { static_cast<const DiskCall *>(call)->run(); }

void launch(const LaunchCall &call, StreamHandle stream) {
  const Driver &driver = Driver::get();
  const plan::Grid &grid = call.kernel->grid;
  driver.require(driver.launchKernel(call.kernel->function, call.blocks, 1, 1, grid.threads(), 1, 1, grid.shared_bytes(), stream,
                                     call.params, nullptr),
                 "cannot launch its kernel");
}

void fill(const FillCall &call, StreamHandle stream) {
  const Driver &driver = Driver::get();
  if (auto byte = static_cast<unsigned char>(call.pattern); call.bytes > 0 && call.pattern == byte * 0x01010101u) // wherever it begins
    return driver.require(driver.fill8Async(call.dst, byte, call.bytes, stream), "cannot fill memory");
  uint64_t words = call.bytes / sizeof(call.pattern), rest = call.bytes % sizeof(call.pattern);
  if (words > 0) driver.require(driver.fill32Async(call.dst, call.pattern, words, stream), "cannot fill memory");
  for (uint64_t i = 0; i < rest; ++i) // little-endian
    driver.require(driver.fill8Async(call.dst + 4 * words + i, static_cast<unsigned char>(call.pattern >> (8 * i)), 1, stream),
                   "cannot fill memory");
}

} // namespace

void Issuer::put(const Call &call, int lane, StreamHandle stream) const {
  const Driver &driver = Driver::get();
  std::visit(Overloaded{
                 [&](const LaunchCall &launched) { launch(launched, stream); },
                 [&](const ProductRun &product) { products->run(product.product, lane, stream); },
                 [&](const CopyCall &copy) {
                   if (copy.bytes > 0) driver.require(driver.copyAsync(copy.dst, copy.src, copy.bytes, stream), "cannot copy");
                 },
                 [&](const FillCall &filled) { fill(filled, stream); },
                 [&](const DiskCall &transfer) {
                   driver.require(driver.launchHostFunction(stream, runDiskCall, const_cast<DiskCall *>(&transfer)),
                                  "cannot reach the disk");
                 },
                 [&](const HostCall &work) { hostLane->put(work, stream); },
                 [&](const SumCall &sum) { orderedSum->run(sum, stream); },
                 [](const Nothing &) {},
                 [&](const auto &collective) { collectives->run(collective, stream); },
             },
             call);
}

} // namespace zero::runtime::cuda
