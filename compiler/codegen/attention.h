//===- attention.h - attention as kernels of its own ------------------------------------------------===//
// softmax(scale q·kᵀ + mask [causal]) · v without the matrix of scores: a kernel makes a tile of it at a time. Another makes the gradient,
// some blocks what is summed over queries and the others what is summed over keys, so that each sum has one owner and one order; what both
// need of a row, the sum of dout · out, is a kernel of rows like others. A processor has steps of its own for all of this.
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
    Output,   // (q, k, v, mask?) to (out, lse)
    Gradient, // (q, k, v, mask?, lse, delta, dout) to (dq, dk, dv), or to the gradient of what is packed
  } result = Output;
  int64_t batch = 0, heads = 0, keyHeads = 0, queries = 0, keys = 0, dim = 0;
  double scale = 1;
  bool bshd = false;                  // heads of a position side by side
  bool packed = false;                // q, k and v are one tensor: in each position the heads of q, then those of k, then those of v
  std::optional<int64_t> first, last; // query i sees keys from i + first and up to i + last
  std::optional<std::array<int64_t, 4>> mask; // its dimensions: 1, or those of the scores
  bool bf16 = false;                          // q, k, v and their like in memory: products are those of a GPU's matrix units
  bool warpgroups = false;                    // a product may be one of four warps together (the kernel's attribute kWarpgroupsAttr)
  uint64_t multiplyAdds = 0;
  std::vector<unsigned> operands; // of each the kernel's argument that is it

  /// Query heads that share a key head.
  int64_t group() const { return heads / keyHeads; }

  /// Where a tensor has the rows of its heads: how many heads of a sample, how many rows of each, elements from one to the next, and the
  /// first element.
  struct Rows {
    int64_t heads, length, sample, head, row, first = 0;
  };
  Rows queryRows() const { return packed ? packedRows(0, heads) : resultRows(); }
  Rows keyRows() const { return packed ? packedRows(heads, keyHeads) : rows(keyHeads, keys, dim); }
  Rows valueRows() const { return packed ? packedRows(heads + keyHeads, keyHeads) : keyRows(); }
  Rows resultRows() const { return rows(heads, queries, dim); }
  Rows sumRows() const { return rows(heads, queries, 1); } // of lse and delta

private:
  Rows rows(int64_t heads, int64_t length, int64_t columns) const {
    if (bshd) return {heads, length, length * heads * columns, columns, heads * columns};
    return {heads, length, heads * length * columns, length * columns, columns};
  }
  Rows packedRows(int64_t before, int64_t some) const {
    int64_t position = (heads + 2 * keyHeads) * dim;
    return {some, queries, queries * position, dim, position, before * dim};
  }
};

/// Of a kernel for GPUs whose matrix units read both operands from shared memory, for four warps at once (wgmma, sm_90a).
inline constexpr llvm::StringLiteral kWarpgroupsAttr = "nn.warpgroups";

/// Whether there are kernels for it: any lengths, heads and masks, f32, bf16 and f16, without a cap or a bias that is learnt, as long as
/// rows are whole vectors and not too long for a tile to stay near the threads. The rule of which attention nn-expand-attention leaves and
/// nn-attention-kernels takes.
bool hasKernels(nn::AttentionOp op);

/// The program of a body that is one of these operations; none of another. Fails with an error where nothing is made for its sizes.
mlir::FailureOr<std::optional<Program>> attentionProgram(mlir::func::FuncOp kernel);

} // namespace zero::codegen
