// The table that `zerorun --tune` writes beside a plan: which of cuBLASLt's algorithms each product takes, as it was measured on a kind of
// GPU. Plain data with a text form.
//
// {"format": 1, "tables": [{"device": "NVIDIA H200", "cublaslt": 130100, "products": {KEY: {"algorithm": 128 hexadecimal digits,
//  "microseconds": 41.2, "heuristic": 44.9, "tried": [41.2, 44.9, …]}, …}}, …], "sha256": "…"}
//
// A key says all that an algorithm depends on and nothing of where a product comes from, so that a table serves every plan that has the
// same products: those of other stages and placements, to which it is copied. The last line is the SHA-256 of all bytes before it.
#pragma once
#include "runtime/device/cuda/blas_lt.h"
#include "runtime/device/program.h"
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace zero::runtime::cuda {

// Bytes that places in the plan's arenas are multiples of at least, and the most that an algorithm is asked for: what is aligned by chance
// must not decide, for another stage or placement has other chances.
inline constexpr uint64_t kMostAlignment = 64;

// The largest power of two that divides the address and, of a batch, the distance of its matrices in bytes; kMostAlignment at most.
uint32_t alignmentOf(Pointer at, int64_t batch, int64_t strideBytes);

// "BF16 1024 x 3072 x 768 to BF16 and bias, ld 768 3072 3072, aligned 64 64 64 and 64": of A, B, C, bias, aux.
std::string keyOf(const MatMulOf<Pointer> &product);

struct MeasuredProduct {
  Algorithm algorithm{};
  double microseconds = 0, heuristic = 0; // of the algorithm, and of the one that the heuristic ranks first
  std::vector<double> tried;              // microseconds of all that could be taken, in the heuristic's order
};

struct MeasuredDevice {
  std::string device;   // as the driver calls it
  uint64_t library = 0; // cublasLtGetVersion()
  std::map<std::string, MeasuredProduct> products;
};

using ProductTable = std::vector<MeasuredDevice>;

// Null if nothing was measured there.
const MeasuredDevice *findDevice(const ProductTable &table, const std::string &device, uint64_t library);

std::string textOf(const ProductTable &table);
// Throws a sentence for what no zerorun has written. `name` stands for the file in it.
ProductTable parseTable(std::string_view text, const std::string &name);

} // namespace zero::runtime::cuda
