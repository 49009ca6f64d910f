#include "test/gpu/fake/faults.h"
#include <atomic>
#include <cstdlib>

namespace zero::fake {
namespace {

struct Order {
  Order() {
    const char *text = std::getenv("ZERO_FAKE_FAIL");
    if (!text) return;
    std::string all = text;
    size_t first = all.find(':'), second = all.find(':', first + 1);
    function = all.substr(0, first);
    if (first != std::string::npos) call = std::strtoull(all.c_str() + first + 1, nullptr, 10);
    later = second != std::string::npos;
  }
  std::string function;
  uint64_t call = 1; // 0: every one
  bool later = false;
};

} // namespace

Fault faultOf(const char *function) {
  static const Order order;
  static std::atomic<uint64_t> calls{0};
  if (order.function != function) return Fault::None;
  uint64_t number = calls.fetch_add(1) + 1;
  if (order.call != 0 && number != order.call) return Fault::None;
  return order.later ? Fault::Later : Fault::Now;
}

uint64_t setting(const char *name, uint64_t otherwise) {
  const char *value = std::getenv(name);
  return value ? std::strtoull(value, nullptr, 10) : otherwise;
}

} // namespace zero::fake
