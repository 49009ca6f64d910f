// Products of bf16 or f16 matrices. All ways sum in f32 and round once.
#pragma once
#include "runtime/base/error.h"
#include "runtime/device/cpu/bf16/unit.h"
#include "runtime/device/program.h"
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace zero::runtime {

class HalfProducts {
public:
  enum Way {
    Matrices, // of bf16, on the processor's matrix unit (AMX)
    Library,  // of bf16, by the product library, where the processor has instructions for them (AVX-512 BF16) that are fast
    Widened,  // f32 products of widened blocks
  };
  // Those that this processor has for bf16, the best first: the one that is used. The others are there for the tests. f16 is always
  // widened.
  static std::span<const Way> ways();

  explicit HalfProducts(Way way = ways().front());
  ~HalfProducts();
  // The unit on which attention multiplies bf16; none where products are widened.
  std::optional<bf16::Unit> unit() const;

  // Once, before the first product: all shapes that will be run (their batch does not matter) and are all of one type, on so many threads.
  void prepare(std::span<const MatMulShape> shapes, int threads);

  // C (+)= op(A) · op(B), a single one of a shape that was prepared, on the calling thread, which has the number `thread`.
  void run(const MatMulShape &shape, const void *a, const void *b, void *c, int thread) const;

  // Bytes each thread packs operands and sums results in, whatever the products; 0 before any was prepared.
  size_t room() const;

  // How they are done where that is slow, as a sentence; empty where it is not, or nothing was prepared.
  const std::string &note() const { return slow; }

  // One way of making them, after what is said above.
  class Backend {
  public:
    virtual ~Backend() = default;
    virtual void run(const MatMulShape &shape, const void *a, const void *b, void *c, int thread) = 0;
    virtual size_t room() const = 0;
  };

private:
  Way ofBf16;
  std::string slow;
  std::unique_ptr<Backend> backend;
};

// Of shapes, on so many threads.
std::unique_ptr<HalfProducts::Backend> matrixProducts(std::span<const MatMulShape> shapes, int threads);
std::unique_ptr<HalfProducts::Backend> libraryProducts(std::span<const MatMulShape> shapes, int threads);
std::unique_ptr<HalfProducts::Backend> widenedProducts(int threads);
bool libraryMultipliesBf16();                // by instructions of this processor
Error unannounced(const MatMulShape &shape); // what run() says of a shape that was not prepared

} // namespace zero::runtime
