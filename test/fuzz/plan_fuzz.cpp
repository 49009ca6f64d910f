// Whatever bytes a plan file has, loading it ends in a plan that is safe to inspect and judge, or in zero::Error.
//
// The first byte chooses: odd, the rest is the plan message alone; else a whole file, as it is or (2, 6, …) with its checksums made right,
// which a fuzzer does not find by itself. The message says how far its kernels reach and no code is there to say otherwise, so what is
// looked for here is that every launch is held against that.
#include "runtime/base/error.h"
#include "runtime/inspect/inspect.h"
#include "runtime/judge/judge.h"
#include "runtime/plan/container.h"
#include "runtime/plan/state.h"
#include "runtime/plan/validate.h"
#include "test/fuzz/message_mutator.h"
#include "test/unit/reseal.h"
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <google/protobuf/stubs/logging.h>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

namespace {

// What the device would be asked to do stays inside the arenas: bounds are looked at once more, in plain arithmetic.
void requireInside(const zero::plan::Plan &plan, int program, const zero::plan::Step &step, const zero::plan::Launch &launch) {
  const zero::plan::Kernel &kernel = plan.kernels(int(launch.kernel()));
  int inputs = zero::plan::kernelReads(step);
  if (launch.extent() != kernel.extent() || inputs + zero::plan::kernelWrites(step) != kernel.arg_bytes_size()) abort();
  for (int i = 0; i < kernel.arg_bytes_size(); ++i) {
    const zero::plan::Ref &ref = i < inputs ? step.reads(i) : step.writes(i - inputs);
    const zero::plan::Buffer &buffer = plan.buffers(int(ref.buffer()));
    auto arena = int(buffer.arena());
    uint64_t height = buffer.program() < 0 ? plan.arenas(arena).bytes() : plan.programs(program).arena_bytes(arena);
    auto end = __uint128_t(buffer.offset()) + ref.offset() + kernel.arg_bytes(i);
    for (int axis = 0; axis < ref.strides_size(); ++axis) end += __uint128_t(ref.strides(axis)) * (plan.axes(axis).size() - 1);
    if (end > height) abort();
  }
}

void use(const zero::plan::Plan &plan) {
  for (int p = 0; p < plan.programs_size(); ++p)
    for (const zero::plan::Step &step : plan.programs(p).steps())
      if (const zero::plan::Launch *launch = zero::plan::launchOf(step)) requireInside(plan, p, step, *launch);
  zero::inspect::toJson(plan, true);
  zero::inspect::firstPage(plan);
  zero::inspect::peakText(plan);
  zero::inspect::kernelTable(plan);
  zero::inspect::scheduleText(plan, true);
  zero::judge::checkPlan(plan);
}

} // namespace

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
  if (size < 2 || !(data[0] & 1)) return LLVMFuzzerMutate(data, size, most);
  return 1 + zero::fuzz::mutateMessage(data + 1, size - 1, most - 1, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const auto silenced = google::protobuf::SetLogHandler(nullptr);
  (void)silenced;
  if (size == 0) return 0;
  bool message = data[0] & 1;
  std::span<const std::byte> bytes{reinterpret_cast<const std::byte *>(data + 1), size - 1};
  try {
    if (!message) {
      std::string file(reinterpret_cast<const char *>(bytes.data()), bytes.size());
      if (data[0] & 2) file = zero::test::resealed(std::move(file));
      use(zero::plan::parse(std::as_bytes(std::span(file)), "fuzz").plan);
      return 0;
    }
    zero::plan::Plan plan;
    if (!plan.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return 0;
    constexpr uint64_t kConstants = 1 << 20; // had there been a file
    zero::plan::validate(plan, kConstants);
    use(plan);
  } catch (const zero::Error &) {
  }
  return 0;
}
