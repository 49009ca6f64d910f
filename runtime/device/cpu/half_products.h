// Products of bf16 or f16 matrices: of bf16 by the product library where the processor multiplies that (AMX, AVX-512 BF16), others by f32
// products of widened blocks. Both sum in f32 and round once.
#pragma once
#include "runtime/device/program.h"
#include <memory>
#include <span>
#include <string>

namespace zero::runtime {

class HalfProducts {
public:
  // `widened`: without the processor's own products, whether it has them or not.
  explicit HalfProducts(bool widened = !multipliesBf16());
  ~HalfProducts();

  // Whether this processor does.
  static bool multipliesBf16();

  // Once, before the first product: all shapes that will be run (their batch does not matter) and are all of one type, on so many threads.
  void prepare(std::span<const MatMulShape> shapes, int threads);

  // C (+)= op(A) · op(B), a single one of a shape that was prepared, on the calling thread, which has the number `thread`.
  void run(const MatMulShape &shape, const void *a, const void *b, void *c, int thread) const;

  // Bytes each thread packs operands and sums results in, whatever the products; 0 before any was prepared.
  size_t room() const;

  // How they are done where that is slow, as a sentence; empty where it is not, or nothing was prepared.
  const std::string &note() const { return slow; }

private:
  struct Native;
  struct Widened;
  bool widened;
  std::string slow;
  std::unique_ptr<Native> native;
  std::unique_ptr<Widened> blocks;
};

} // namespace zero::runtime
