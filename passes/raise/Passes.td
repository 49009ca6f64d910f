//===- Passes.td - from what exporters write to what they mean, in pipeline order -----------------===//
#ifndef ZERO_PASSES_RAISE_TD
#define ZERO_PASSES_RAISE_TD
include "mlir/Pass/PassBase.td"

def FoldConstantsPass : Pass<"nn-fold-constants", "::mlir::func::FuncOp"> {
  let summary = "Compute what depends on constants alone with the reference interpreter";
  let description = [{
    Masks, position tables and shape arithmetic of an export become `nn.constant`. A broadcast stays a broadcast of the
    constant below it (unless all its elements are equal), so that a bias row is not written out for every token. What has more
    than `limit` elements is left alone.

    ```mlir
    %i = nn.iota 1 : tensor<4x4xi64>   %j = nn.iota 0 : tensor<4x4xi64>
    %m = nn.compare le %i, %j : tensor<4x4xi64> -> tensor<4x4xi1>
    // becomes
    %m = nn.constant dense<[[true, false, false, false], …]> : tensor<4x4xi1>
    ```
  }];
  let dependentDialects = ["::zero::nn::NnDialect"];
  let options = [Option<"limit", "limit", "int64_t", "4194304", "Largest tensor computed at compile time, in elements">];
  let statistics = [Statistic<"folded", "folded", "Operations computed at compile time">];
}

def TidyImportPass : Pass<"nn-tidy-import", "::mlir::func::FuncOp"> {
  let summary = "Simplify what exporters write in detours";
  let description = [{
    All of `nn-simplify`, and what only imported graphs need: a transposition after a reshape that regroups leading dimensions moves before
    it, to meet another one; a matrix product takes it as a flag through such a reshape; a lookup of consecutive rows is a slice;
    conversions from booleans and narrow integers skip the type between; conjunctions with true vanish.

    ```mlir
    %r = nn.reshape %k : tensor<2x4x8x16xf32> -> tensor<8x8x16xf32>
    %t = nn.transpose %r perm [0, 2, 1] : tensor<8x8x16xf32>
    %s = nn.matmul %q, %t : (tensor<8x8x16xf32>, tensor<8x16x8xf32>) -> tensor<8x8x8xf32>
    // becomes
    %s = nn.matmul %q, %r {transpose_rhs = true} : (tensor<8x8x16xf32>, tensor<8x8x16xf32>) -> tensor<8x8x8xf32>
    ```
  }];
  let dependentDialects = ["::zero::nn::NnDialect"];
}

def ChannelsLastPass : Pass<"nn-channels-last", "::mlir::func::FuncOp"> {
  let summary = "Keep images as convolutions make them, with the channels of a place side by side";
  let description = [{
    A convolution is a product, whose rows are places and whose columns are channels (NHWC); ONNX has channels first (NCHW). The transposition
    that brings them there sinks below what works on each element or on the spatial dimensions alone (arithmetic, norms and activations, padding, slices,
    sums, repetitions), until it meets its inverse, which the next convolution begins with, or something that does need it. Of four dimensions
    or more: matrices are transposed for other reasons.

    ```mlir
    %i = nn.transpose %y perm [0, 3, 1, 2] : tensor<2x8x8x16xf32> -> tensor<2x16x8x8xf32>
    %s = nn.broadcast %scale dims [1] : tensor<16xf32> -> tensor<2x16x8x8xf32>
    %n = nn.mul %i, %s : tensor<2x16x8x8xf32>
    // becomes
    %s = nn.broadcast %scale dims [3] : tensor<16xf32> -> tensor<2x8x8x16xf32>
    %m = nn.mul %y, %s : tensor<2x8x8x16xf32>
    %n = nn.transpose %m perm [0, 3, 1, 2] : tensor<2x8x8x16xf32> -> tensor<2x16x8x8xf32>
    ```
  }];
  let dependentDialects = ["::zero::nn::NnDialect"];
}

def RaiseGeluPass : Pass<"nn-raise-gelu", "::mlir::func::FuncOp"> {
  let summary = "Find GELU written out with erf or tanh";
  let description = [{
    c · x · (a + a · erf(x / √2)) and c · x · (a + a · tanh(√(2/π) · (x + 0.044715 x³))) with c · a = 1/2 become `nn.gelu`. The arguments are
    compared as polynomials in x, so the order of factors, x³ as a power or as products, and a division for a multiplication make no
    difference; constants must agree to the precision of the element type.
  }];
  let dependentDialects = ["::zero::nn::NnDialect"];
}

def RaiseSiluPass : Pass<"nn-raise-silu", "::mlir::func::FuncOp"> {
  let summary = "Find x * sigmoid(x)";
  let description = [{ `x * sigmoid(x)` and `x / (1 + exp(-x))` become `nn.silu`. }];
  let dependentDialects = ["::zero::nn::NnDialect"];
}

def RaiseNormPass : Pass<"nn-raise-norm", "::mlir::func::FuncOp"> {
  let summary = "Find layer normalisation and RMS normalisation written out as means and square roots";
  let description = [{
    x / sqrt(mean(x²) + eps), with a square root and a division, a reciprocal or `nn.rsqrt`, followed by a product with one
    number per column, is `nn.rms_norm`; where x is itself y - mean(y) it is `nn.layer_norm` of y, which also takes a following
    addition of one number per column as its bias. Without a scale, ones are used. A conversion between the normalised
    value and the scale is kept after the operation.
  }];
  let dependentDialects = ["::zero::nn::NnDialect"];
  let statistics = [Statistic<"layerNorms", "layer-norms", "Layer normalisations found">,
                    Statistic<"rmsNorms", "rms-norms", "RMS normalisations found">];
}

def RaiseAttentionPass : Pass<"nn-raise-attention", "::mlir::func::FuncOp"> {
  let summary = "Find scaled dot-product attention written out as products and softmax";
  let description = [{
    softmax(scale · q·kᵀ + mask) · v becomes `nn.attention`. The scale may stand before or after the product, split over q and k, as a
    division or not at all; masks may be added or selected; a replacement of NaN by zero after the softmax is dropped,
    because `nn.attention` gives zeros for a row that sees nothing. Finite masks stay finite, so that a row whose every entry is masked
    by the smallest number still gives the mean of v.

    What is added and depends on trainable parameters, but not on the samples, is the `bias`; masks that are added to it are taken out of the sum.

    Not raised: what is learnt and depends on samples, too, added to scores (DeBERTa's), a softmax that is also used elsewhere, heads of v of
    another size than those of k.

    On every `nn.attention`, found here or read from the model: a constant mask that is exactly the causal triangle becomes
    `causal`, one of a sliding window `band`; one of zeros vanishes; equal slices along a dimension become one slice; keys and values that
    repeat heads become fewer key heads. So it is where a mask joins such a constant with the padding that the data says (as a conjunction of
    conditions, the negation of a disjunction, a sum, or a choice): the padding alone stays a mask, of one row of a sample, and a query that
    sees nothing, as one in the padding before a sample, takes the mean of the keys up to itself, not of all.
  }];
  let dependentDialects = ["::zero::nn::NnDialect"];
  let statistics = [Statistic<"found", "found", "Attentions found">];
}

def RaiseGroupedPass : Pass<"nn-raise-grouped", "::mlir::func::FuncOp"> {
  let summary = "Find products of rows each with a matrix of its own, looked up in a table: mixtures of experts";
  let description = [{
    Exporters have no operator for what the experts of a model compute, and write a matrix for each token: the weights of its expert, gathered, and a batch of products of
    one row. Such a batch becomes an `nn.grouped_matmul`, for which rows of one expert are put side by side (`nn.group_rows`, once for all products of the same indices): as
    many multiplications as there are rows, and no copy of a matrix for each of them.

    Blocks of slots are so high that an expert fills `blocks` of them on average, `height` at most.

    Needs: indices within the table, as exporters clamp them.

    ```mlir
    %w = nn.gather %experts, %expert : tensor<4x64x32xf32>, tensor<128xi64> -> tensor<128x64x32xf32>
    %y = nn.matmul %w, %x : (tensor<128x64x32xf32>, tensor<128x32x1xf32>) -> tensor<128x64x1xf32>
    // becomes, but for reshapes
    %slot, %row, %group_of = nn.group_rows %expert {groups = 4, height = 32} : …
    %y = nn.grouped_matmul %x, %experts by %slot, %row, %group_of {transpose = true} : …
    ```
  }];
  let dependentDialects = ["::zero::nn::NnDialect"];
  let options = [Option<"height", "height", "int64_t", "128", "Most rows of a block">,
                 Option<"blocks", "blocks", "int64_t", "2", "Blocks that the rows of a group of average size fill">];
  let statistics = [Statistic<"found", "found", "Products found">];
}

def RaiseExpertsPass : Pass<"nn-raise-experts", "::mlir::func::FuncOp"> {
  let summary = "Find experts that are computed one after another, each for the tokens that have chosen it";
  let description = [{
    People write experts as a loop: rows whose number is e are computed with the weights of expert e and added, or put, where they came from. The reader has all
    rows computed by each of them (compiler/onnx/masked_rows.h), and a mask leaves out those of others. What differs between experts is only what they are
    made with, so all of them are computed at once, each row by its own: products become `nn.grouped_matmul` with the matrices one after another, vectors
    are looked up by the row's number, columns of a table picked by it. As many multiplications as there are rows, where it was as many for each expert.

    A sum of masked values, or a chain of choices between them, is looked at; experts may be anything that is computed row by row, as long as all of them are computed in
    the same way. What a row's number is compared with must be successive numbers; several numbers of a row (its choices) are so many rows.

    ```mlir
    %0 = nn.matmul %x, %w0 : …  // masks: nn.compare eq %chosen, 0 and 1
    %1 = nn.matmul %x, %w1 : …
    %y0 = nn.select %mask0, %0, %zeros : …
    %y1 = nn.select %mask1, %1, %zeros : …
    %y = nn.add %y0, %y1 : …
    // becomes, but for rows that have chosen neither
    %slot, %row, %group_of = nn.group_rows %chosen {groups = 2, height = 32} : …
    %y = nn.grouped_matmul %x, %w0, %w1 by %slot, %row, %group_of : …
    ```
  }];
  let dependentDialects = ["::zero::nn::NnDialect"];
  let options = [Option<"height", "height", "int64_t", "128", "Most rows of a block">,
                 Option<"blocks", "blocks", "int64_t", "2", "Blocks that the rows of a group of average size fill">];
  let statistics = [Statistic<"found", "found", "Sets of experts found">];
}

def ExpandAttentionPass : Pass<"nn-expand-attention", "::mlir::func::FuncOp"> {
  let summary = "Write attention as products and softmax, for a target that has no other";
  let description = [{
    Every `nn.attention`, or with `kernels` every one that no kernel does (compiler/codegen/attention.h), in one form, whatever form it was found in: query heads that share a key head are rows of one product; the scale, the
    mask and the causal triangle, as a comparison of positions, stand between the product and the softmax. Zeros of rows that see nothing
    are written where there can be such rows: with a mask, or more queries than keys.

    What is left to kernels has the heads of a position side by side afterwards (`bshd`), between transpositions that undo those of the model: projections leave
    and read rows of that order, so that these vanish, or become the index of a kernel that does something else. Where q, k and v are, in this order, all
    of one value, by whatever slices, reshapes and transpositions they are taken out of it, attention reads that (`packed_kv_heads`), and its gradient is one value, too.

    Needs: no use of the second result, which backward alone has. Leaves no other `nn.attention`. After constants were folded, so that the triangle
    stays a comparison.

    ```mlir
    %q0 = nn.slice %x starts [0, 0, 0] sizes [2, 16, 128] steps [1, 1, 1] : …    // and %k0, %v0 the rest
    %q1 = nn.reshape %q0 : tensor<2x16x128xf32> -> tensor<2x16x4x32xf32>
    %q = nn.transpose %q1 perm [0, 2, 1, 3] : …
    %y, %lse = nn.attention %q, %k, %v {causal = true, scale = 0.125 : f32} : …
    // becomes
    %p = nn.reshape %x : tensor<2x16x384xf32> -> tensor<2x16x12x32xf32>
    %z, %lse = nn.attention %p, %p, %p {bshd = true, causal = true, packed_kv_heads = 4 : i64, scale = 0.125 : f32} : …
    %y = nn.transpose %z perm [0, 2, 1, 3] : …
    ```
  }];
  let dependentDialects = ["::zero::nn::NnDialect"];
  let options = [Option<"kernels", "kernels", "bool", "false", "Leave the attention that kernels do">];
}

#endif
