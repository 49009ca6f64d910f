#include "runtime/device/cpu/amx/unit.h"
#include <cpuid.h>
#include <cstdint>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace zero::runtime::amx {
namespace {

// The form in which LDTILECFG reads it: Intel's manual, volume 2A.
struct alignas(64) Configuration {
  uint8_t palette = 1, startRow = 0, reserved[14] = {};
  uint16_t rowBytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
constexpr Configuration kWhole;

bool processorHasIt() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kBf16 = 1U << 22, kTile = 1U << 24;                                                    // of leaf 7, edx
  constexpr unsigned kAvx512F = 1U << 16, kAvx512Dq = 1U << 17, kAvx512Bw = 1U << 30, kAvx512Vl = 1U << 31; // of leaf 7, ebx
  constexpr unsigned kAvx512Bf16 = 1U << 5;                                                                 // of leaf 7, 1, eax
  constexpr unsigned kVectors = kAvx512F | kAvx512Dq | kAvx512Bw | kAvx512Vl;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & kBf16) && (d & kTile) && (b & kVectors) == kVectors &&
         __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & kAvx512Bf16);
}

bool systemAllowsIt() {
  constexpr long kRequest = 0x1023, kTileData = 18; // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA; Linux 5.16
  return syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
}

// GCC compiles no constructor for a target of its own.
ZERO_AMX void configure() { _tile_loadconfig(&kWhole); }
ZERO_AMX void release() { _tile_release(); }

} // namespace

bool available() {
  static const bool is = processorHasIt() && systemAllowsIt();
  return is;
}

Unit::Unit() { configure(); }
Unit::~Unit() { release(); }

} // namespace zero::runtime::amx
