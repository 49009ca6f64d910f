#include "runtime/device/cpu/launch.h"
#include <algorithm>
#include <cstring>

namespace zero::runtime {
namespace {

// So that a thread whose processor is taken away for a while does not hold up the others.
constexpr int64_t kPiecesPerThread = 4;

} // namespace

void launch(ThreadPool &pool, const LaunchCall &call) {
  int64_t grain = std::max<int64_t>(call.grain, 1);
  int64_t pieces = std::clamp<int64_t>(call.extent / grain, 1, pool.threads() * kPiecesPerThread);
  int64_t size = call.extent / pieces, more = call.extent % pieces; // the first ones have one more
  pool.run(pieces, [&](int64_t piece, int) {
    int64_t begin = piece * size + std::min(piece, more), end = begin + size + (piece < more ? 1 : 0);
    if (begin < end) call.function(call.args, call.begin + begin, call.begin + end);
  });
}

void fill(const FillCall &call) {
  auto *bytes = static_cast<char *>(call.dst);
  std::fill_n(reinterpret_cast<uint32_t *>(bytes), call.bytes / 4, call.pattern);
  std::memcpy(bytes + call.bytes / 4 * 4, &call.pattern, call.bytes % 4);
}

} // namespace zero::runtime
