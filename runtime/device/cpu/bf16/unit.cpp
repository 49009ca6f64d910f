#include "runtime/device/cpu/bf16/unit.h"
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace zero::runtime::bf16 {
namespace {

// The form in which LDTILECFG reads it: Intel's manual, volume 2A.
struct alignas(64) Configuration {
  uint8_t palette = 1, startRow = 0, reserved[14] = {};
  uint16_t rowBytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
constexpr Configuration kWhole;

bool hasVectors() {
  __builtin_cpu_init(); // which asks the system, too, whether it keeps such registers
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bf16");
}

bool hasMatrices() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kBf16 = 1U << 22, kTile = 1U << 24; // of leaf 7, edx
  constexpr long kRequest = 0x1023, kTileData = 18;      // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA; Linux 5.16
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & kBf16) && (d & kTile) && syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
}

// GCC compiles no constructor for a target of its own.
ZERO_AMX void configure() { _tile_loadconfig(&kWhole); }
ZERO_AMX void release() { _tile_release(); }

} // namespace

bool has(Unit unit) {
  static const bool vectors = hasVectors(), matrices = vectors && hasMatrices();
  return unit == Unit::Matrices ? matrices : vectors;
}

bool hasSlowVectors() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kFp16 = 1U << 23; // of leaf 7, edx: AVX-512 FP16, which came with AMX
  return has(Unit::Vectors) && __builtin_cpu_is("intel") && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & kFp16);
}

Held::Held(Unit unit) : unit(unit) {
  if (unit == Unit::Matrices) configure();
}
Held::~Held() {
  if (unit == Unit::Matrices) release();
}

} // namespace zero::runtime::bf16
