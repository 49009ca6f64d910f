//===- attention.h - attention as kernels of its own ------------------------------------------------===//
// softmax(scale q·kᵀ + mask [causal]) · v without the matrix of scores: a kernel makes a tile of it at a time. The gradient is two such
// kernels, one for what is summed over queries and one for what is summed over keys, so that each sum has one owner and one order; what
// both need of a row, the sum of dout · out, is a kernel of rows like others. A processor has steps of its own for all of this.
#pragma once
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <array>
#include <optional>
#include <vector>

namespace zero::nn {
class AttentionOp;
}

namespace zero::codegen {

struct Program;

struct Attention {
  enum Result : uint8_t {
    Output,  // (q, k, v, mask?) to (out, lse)
    Keys,    // (q, k, v, mask?, lse, delta, dout) to (dk, dv)
    Queries, // the same to (dq)
  } result = Output;
  int64_t batch = 0, heads = 0, keyHeads = 0, queries = 0, keys = 0, dim = 0;
  double scale = 1;
  bool bshd = false;                          // heads of a position side by side
  bool causal = false;                        // query i sees keys up to i + keys - queries
  std::optional<std::array<int64_t, 4>> mask; // its dimensions: 1, or those of the scores
  bool bf16 = false;                          // q, k, v and their like in memory: products are those of a GPU's matrix units
  uint64_t multiplyAdds = 0;
  std::vector<unsigned> operands; // of each the kernel's argument that is it

  /// Query heads that share a key head.
  int64_t group() const { return heads / keyHeads; }
};

/// Whether there are kernels for it: any lengths, heads and masks, f32, bf16 and f16, as long as rows are whole vectors and not too long
/// for a tile to stay near the threads. The rule of which attention nn-expand-attention leaves and nn-attention-kernels takes.
bool hasKernels(nn::AttentionOp op);

/// The program of a body that is one of these operations; none of another. Fails with an error where nothing is made for its sizes.
mlir::FailureOr<std::optional<Program>> attentionProgram(mlir::func::FuncOp kernel);

} // namespace zero::codegen
