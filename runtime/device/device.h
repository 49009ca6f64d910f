// What the engine asks of a device, and nothing more. One Device serves one rank. Calls of one lane are made in order
// by one thread; calls of different lanes may overlap. `arenas` and everything a call needs are allocated before the
// first step: no call below `prepare` allocates memory.
#pragma once
#include "runtime/device/state.h"
#include "runtime/plan/plan.pb.h"
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace zero::runtime {

// A byte of an arena, by the number its device gave it. Only that device knows where it lies.
struct Address {
  uint32_t arena = 0;
  uint64_t offset = 0;
};

// A product whose addresses are known: C[b] (+)= op(A[b]) · op(B[b]), see plan.MatMul.
struct MatMulCall {
  const float *a, *b;
  float *c;
  int64_t m, n, k, batch;
  bool transA, transB;
  int64_t lda, ldb, ldc;
  int64_t strideA, strideB, strideC;
  bool accumulate;
};

// Attention with known addresses, see plan.Attention. mask is null if there is none; its strides are in elements and 0
// along broadcast dimensions.
struct AttentionCall {
  const float *q, *k, *v, *mask;
  float *out, *lse;
  int64_t batch, heads, kvHeads, qLen, kvLen, dim;
  float scale;
  bool causal;
  int64_t maskStride[4];
};

struct AttentionGradCall {
  AttentionCall forward; // out and lse are read
  const float *dout;
  float *dq, *dk, *dv;
};

// A kernel of the plan's shared object: iterations [begin, end) of the launch.
using KernelFunction = void (*)(void *const *args, int64_t begin, int64_t end);

struct LaunchCall {
  KernelFunction function;
  void *const *args;
  int64_t extent, grain; // extent: iterations
  int64_t begin = 0;     // the first one
};

struct KernelSymbol {
  std::string symbol;
  KernelFunction function = nullptr; // filled by loadKernels
  uint64_t extent = 0;               // what the plan says of it, and the object must say too (plan.Kernel)
  std::vector<uint64_t> argBytes;
  uint64_t row = 0;
};

// The largest attention of all programs, so that scratch is allocated once.
struct AttentionLimits {
  int64_t dim = 0, kvLen = 0, qLen = 0;
};

// How sentences call a kind of target.
inline const char *targetName(plan::Target::Kind kind) {
  return kind == plan::Target::CPU ? "cpu" : kind == plan::Target::CUDA ? "cuda" : "simulation";
}

class Device {
public:
  virtual ~Device() = default;

  // Before the first step --------------------------------------------------------------------------------------------
  // Room for an arena: zero-filled, 4096-aligned, alive as long as the device. Returns the number by which it is addressed.
  virtual uint32_t allocateArena(const std::string &name, uint64_t bytes) = 0;
  // Loads the plan's shared object and resolves the symbols: from here on the plan's code is run. Throws a sentence for a kernel
  // that is not there, or reaches further or less far than the plan says.
  virtual void loadKernels(std::span<const std::byte> object, std::span<KernelSymbol> symbols) = 0;
  // Throws a sentence if kernels compiled for this target cannot run here: another kind of device, or a feature that the
  // machine lacks.
  virtual void requireTarget(const plan::Target &target) = 0;
  virtual void prepare(const AttentionLimits &limits) = 0;

  // For State: what lies from an address on.
  virtual void read(Address from, uint64_t bytes, const TakePiece &take) const = 0;
  virtual void write(Address to, uint64_t bytes, const FillPiece &fill) = 0;

  // Where the steps below find it.
  virtual void *pointer(Address address) const = 0;

  // Steps; each returns when its result may be read ------------------------------------------------------------------
  virtual void launch(const LaunchCall &call) = 0;
  virtual void matmul(const MatMulCall &call) = 0;
  virtual void attention(const AttentionCall &call) = 0;
  virtual void attentionGrad(const AttentionGradCall &call) = 0;
  virtual void copy(void *dst, const void *src, uint64_t bytes) = 0; // ranges may be the same, not overlap otherwise
  virtual void fill(void *dst, uint32_t pattern, uint64_t bytes) = 0;

  virtual int threads() const = 0;
};

} // namespace zero::runtime
