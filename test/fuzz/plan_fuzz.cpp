// Whatever bytes a plan file has, loading it ends in a plan that is safe to inspect and judge, or in zero::Error.
//
// The first byte chooses: even, the rest is a whole file; odd, the rest is the plan message alone (as if its checksum were right,
// which a fuzzer does not find by itself).
#include "runtime/inspect/inspect.h"
#include "runtime/judge/judge.h"
#include "runtime/plan/container.h"
#include "runtime/plan/error.h"
#include "runtime/plan/validate.h"
#include "test/fuzz/message_mutator.h"
#include <cstddef>
#include <cstdint>
#include <google/protobuf/stubs/logging.h>
#include <nlohmann/json.hpp>
#include <span>

namespace {

void use(const zero::plan::Plan &plan) {
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
      use(zero::plan::parse(bytes, "fuzz").plan);
      return 0;
    }
    zero::plan::Plan plan;
    if (!plan.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return 0;
    constexpr uint64_t kSegment = 1 << 20; // of kernels and constants, had there been a file
    zero::plan::validate(plan, kSegment, kSegment);
    use(plan);
  } catch (const zero::Error &) {
  }
  return 0;
}
