// Products of bf16 matrices, by the product library where the processor multiplies bf16 (AMX, AVX-512 BF16), else by f32 products of
// widened blocks. Both sum in f32 and round once.
#pragma once
#include "runtime/device/program.h"
#include <memory>
#include <span>
#include <string>

namespace zero::runtime {

class Bf16Products {
public:
  // `widened`: without the processor's own products, whether it has them or not.
  explicit Bf16Products(bool widened = !multipliesBf16());
  ~Bf16Products();

  // Whether this processor does.
  static bool multipliesBf16();

  // Once, before the first product: all shapes that will be run (their batch does not matter), on so many threads.
  void prepare(std::span<const MatMulShape> shapes, int threads);

  // C (+)= op(A) · op(B), a single one of a shape that was prepared, on the calling thread, which has the number `thread`.
  void run(const MatMulShape &shape, const void *a, const void *b, void *c, int thread) const;

  // Bytes each thread packs operands and sums results in, whatever the products; 0 before any was prepared.
  size_t room() const;

  // How they are done where that is slow, as a sentence; empty where it is not, or nothing was prepared.
  std::string note() const;

private:
  struct Native;
  struct Widened;
  std::unique_ptr<Native> native;
  std::unique_ptr<Widened> blocks;
};

} // namespace zero::runtime
