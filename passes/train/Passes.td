//===- Passes.td - from the forward graph to the training step, in pipeline order ------------------===//
#ifndef ZERO_PASSES_TRAIN_TD
#define ZERO_PASSES_TRAIN_TD
include "mlir/Pass/PassBase.td"

def AddLossPass : Pass<"nn-add-loss", "::mlir::ModuleOp"> {
  let summary = "Make @train and @eval, which return the loss, from @forward";
  let description = [{
    Needs: `@forward` with `nn.name` on arguments and results. Leaves: `@train` and `@eval` with equal signatures, every argument
    with an `nn.role`, one result: the loss as `tensor<f32>`, of several losses each times its weight as `tensor<Nxf32>`; the module's
    `nn.losses`. `@forward` is gone. In `@eval` dropout does nothing.

    The loss is a weighted sum of losses, given as `[WEIGHT*]KIND[:OUTPUT]`:

    - `cross_entropy:OUTPUT` of a result of rank 2 or more, and `labels` (i64, its shape without the last dimension, the classes). Labels equal
      to `ignore-index` do not count; `label-smoothing` of the weight of a label is spread over all classes.
    - `mse:OUTPUT` of a float result, and `labels` (f32, its shape).
    - `output:OUTPUT` is the result, which has one element.

    Without OUTPUT it is the result called "logits", or the only one that fits. Where several losses have labels they are called
    `labels.OUTPUT`. The argument `loss_scale` has one number for each loss and makes it a mean over the global batch, whatever part of it one
    rank sees in one micro-step: the runtime puts weight / (labels that count), / (elements) or / (ranks * micro-steps) there.

    Dimension 0 of labels is the batch. Arguments that begin with it (batch.h) get the role "data", the others are "shared" by all samples, and
    dropout learns how many samples it covers: none, where what it drops depends on none.

    ```mlir
    func.func @forward(%ids: tensor<2x8xi64> {nn.name = "ids"}) -> (tensor<2x8x50xf32> {nn.name = "logits"})
    // becomes (and the same as @eval)
    func.func @train(%ids: tensor<2x8xi64> {nn.name = "ids", nn.role = "data"},
                     %labels: tensor<2x8xi64> {nn.limit = 50 : i64, nn.name = "labels", nn.role = "labels"},
                     %scale: tensor<1xf32> {nn.name = "loss_scale", nn.role = "loss_scale"}) -> (tensor<f32> {nn.name = "loss"}) {
      …
      %rows = nn.reshape %logits : tensor<2x8x50xf32> -> tensor<16x50xf32>
      %flat = nn.reshape %labels : tensor<2x8xi64> -> tensor<16xi64>
      %loss, %lse = nn.cross_entropy %rows, %flat, %scale {ignore_index = -100 : i64} : …
      return %loss : tensor<f32>
    }
    ```
  }];
  let dependentDialects = ["::zero::nn::NnDialect", "::mlir::func::FuncDialect"];
  let options = [
    ListOption<"losses", "loss", "std::string", "Of the sum: [WEIGHT*]cross_entropy|mse|output[:OUTPUT]; none: cross_entropy">,
    Option<"ignoreIndex", "ignore-index", "int64_t", "-100", "Label that does not count (cross_entropy)">,
    Option<"labelSmoothing", "label-smoothing", "double", "0.0", "Part of a label that is spread over all classes (cross_entropy)">];
}

def SimplifyPass : Pass<"nn-simplify", "::mlir::func::FuncOp"> {
  let summary = "Remove dead, duplicate and superfluous work";
  let description = [{
    Identities of arithmetic and of movement (compiler/nn/patterns.h), operations whose results nobody reads, operations computed
    twice. Two operations are not made one when the first belongs to forward and the second to backward and computing again costs no
    more than a pass over memory: keeping the result over that distance would cost more (whether it pays is decided by recomputation
    and fusion, which see memory).

    ```mlir
    %t = nn.transpose %w perm [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>
    %y = nn.matmul %x, %t : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
    // becomes
    %y = nn.matmul %x, %w {transpose_rhs = true} : (tensor<2x8xf32>, tensor<4x8xf32>) -> tensor<2x4xf32>
    ```
  }];
  let dependentDialects = ["::zero::nn::NnDialect"];
  let statistics = [Statistic<"duplicates", "duplicates", "Operations computed twice">];
}

def PadClassesPass : Pass<"nn-pad-classes", "::mlir::ModuleOp"> {
  let summary = "Give a vocabulary the number of classes that matrix units want";
  let description = [{
    The matrix units of GPUs read rows in pieces of 16 bytes. Where a row of logits is no whole number of them, a library falls back to other code: with
    the 50257 classes of GPT-2 in bf16 the three products of the vocabulary take 13.3, 9.0 and 8.4 ms on an H100 (cuBLASLt 13.1, 16384 tokens of
    width 768), and with 50264 they take 1.9, 1.6 and 1.6; the distance between rows alone does not help.

    So the weights of a product whose result is a cross-entropy's logits are padded by classes of zeros up to a `multiple`, their logits are -inf to the
    loss, and the gradient of theirs is zero. Nothing is done where labels are smoothed over all classes, somebody else reads the logits, or the classes
    are fewer than eight times the multiple.

    ```mlir
    %y = nn.matmul %x, %w {transpose_rhs = true} : (tensor<4x8xf32>, tensor<67x8xf32>) -> tensor<4x67xf32>
    %loss, %lse = nn.cross_entropy %y, %labels, %scale …
    // becomes
    %p = nn.pad %w with 0.0 low [0, 0] high [5, 0] … -> tensor<72x8xf32>
    %y = nn.matmul %x, %p {transpose_rhs = true} : (tensor<4x8xf32>, tensor<72x8xf32>) -> tensor<4x72xf32>
    %s = nn.select (class < 67), %y, -inf
    %loss, %lse = nn.cross_entropy %s, %labels, %scale …
    ```
  }];
  let dependentDialects = ["::zero::nn::NnDialect"];
  let options = [Option<"multiple", "multiple", "int64_t", "8", "Classes that matrix units take at a time">];
  let statistics = [Statistic<"padded", "padded", "Products that got more classes">];
}

def TileTokensPass : Pass<"nn-tile-tokens", "::mlir::ModuleOp"> {
  let summary = "Do what is computed for each token by itself, and is wide, for one tile of tokens after another";
  let description = [{
    Needs: `@train` and `@eval` of `nn-add-loss`. With `tokens` = N > 0, regions of the graph whose operations can be split by rows
    (`SplittableOpInterface`; rows are the tokens of the batch, leading dimensions or one) are done for N rows at a time, the last tile being what is left. So what is
    wide inside exists for one tile: the results of an MLP's first product, and logits.

    A region begins with products whose results are wider than what they read, and takes in whatever makes or reads something as wide, up to where rows
    are narrow again: activation, gate, second product; or the cross-entropy, which sums over rows. A norm whose result nothing else reads belongs to
    it. Regions are found on plain data (row_regions.h). One from which nothing narrower comes out (a product whose results attention reads) is left.

    What enters is read where it lies (`nn.rows`), and what leaves is written where it belongs (`nn.join_rows`). The products within are marked `recompute`: backward keeps
    what enters and does each tile again. Those that lead to nothing but a loss are not: `nn-sink-losses` puts both of a tile side by side. Gradients of weights are summed over tiles from the first to the last, each product onto the sum so far
    (see `nn-differentiate`); so the last tile stands first in forward. Dropout draws the numbers that it draws for all tokens at once.

    ```mlir
    %u = nn.matmul %x, %w1 : (tensor<64x8xf32>, tensor<8x32xf32>) -> tensor<64x32xf32>    // tokens = 32
    %g = nn.tanh %u : tensor<64x32xf32>
    %y = nn.matmul %g, %w2 : (tensor<64x32xf32>, tensor<32x8xf32>) -> tensor<64x8xf32>
    // becomes
    %x1 = nn.rows %x from 32 : tensor<64x8xf32> -> tensor<32x8xf32>
    %u1 = nn.matmul %x1, %w1 {recompute} : (tensor<32x8xf32>, tensor<8x32xf32>) -> tensor<32x32xf32>
    %g1 = nn.tanh %u1 : tensor<32x32xf32>
    %y1 = nn.matmul %g1, %w2 : (tensor<32x32xf32>, tensor<32x8xf32>) -> tensor<32x8xf32>
    %x0 = nn.rows %x from 0 : …
    …
    %y = nn.join_rows %y0, %y1 : (tensor<32x8xf32>, tensor<32x8xf32>) -> tensor<64x8xf32>
    ```
  }];
  let dependentDialects = ["::zero::nn::NnDialect"];
  let options = [Option<"tokens", "tokens", "int64_t", "0", "Tokens of a tile; 0: all of them">];
  let statistics = [Statistic<"regions", "regions", "Regions that are done tile by tile">, Statistic<"tiles", "tiles", "Tiles made">];
}

def TilePass : Pass<"nn-tile", "::mlir::ModuleOp"> {
  let summary = "Cut parameters that are larger than the others into tiles, and what reads them tile by tile";
  let description = [{
    Needs: `@train` and `@eval` of `nn-add-loss`. With `parts` = N > 1, each parameter of more elements than 1/N of the largest becomes the fewest tiles
    of at most so many (rounded up to 16 rows or columns), parameters of their own that are gathered, used, released, reduced and updated one after another.

    - The rows of a table (`nn.gather`): each tile contributes those it holds, and zeros for the others, to a running sum.
    - The weights of a product: results side by side where the rows of the parameter are its results (stored transposed), else partial sums, each of the
      part of the other operand that it wants.
    - The weights of a product whose results are nothing but the logits of a cross-entropy, after a bias, a scale or a cap (`logits.h`). Its
      classes are met tile by tile, and logits never exist whole: log softmax of a class is that of the class inside its tile plus that of the tile among all. So the loss is that of each
      tile on the rows whose label lies in it, plus the cross-entropy over the tiles' logs of sums of exponentials. Of smoothed labels
      each tile adds the sum of a row's logits. Backward computes each tile's logits again (`recompute`) or, with `keep-logits`, forward keeps them. Where somebody else reads them, logits are made whole.

    - The matrices of experts (`nn.grouped_matmul`): some experts are a tile, whose rows are multiplied onto those of the tiles before. Where each expert's
      matrix is a parameter of its own, all of them are cut alike, and multiplied tile by tile as the weights of a product are.

    Tiles are rows of a parameter, so that each is one range of its file and of a checkpoint; of the weights that make logits they are classes, which are columns
    where these are not stored transposed. A parameter that something else reads stays whole, and a note says so.

    ```mlir
    nn.parameter @w : tensor<50x8xf32> {trainable = true}           // parts = 2
    %y = nn.matmul %x, %w {transpose_rhs = true} : (tensor<4x8xf32>, tensor<50x8xf32>) -> tensor<4x50xf32>
    // becomes
    nn.parameter @"w#0" : tensor<32x8xf32> {begin = array<i64: 0, 0>, tile_of = "w", trainable = true, whole = array<i64: 50, 8>}
    nn.parameter @"w#1" : tensor<18x8xf32> {begin = array<i64: 32, 0>, …}
    %0 = nn.matmul %x, %w0 {transpose_rhs = true} : (tensor<4x8xf32>, tensor<32x8xf32>) -> tensor<4x32xf32>
    %1 = nn.matmul %x, %w1 {transpose_rhs = true} : (tensor<4x8xf32>, tensor<18x8xf32>) -> tensor<4x18xf32>
    %y = nn.concat %0, %1 dim 1 : (tensor<4x32xf32>, tensor<4x18xf32>) -> tensor<4x50xf32>
    ```
  }];
  let dependentDialects = ["::zero::nn::NnDialect"];
  let options = [Option<"parts", "parts", "int64_t", "1", "No tile is larger than this part of the largest parameter; 1: nothing is cut">,
                 Option<"keepLogits", "keep-logits", "bool", "false", "Logits wait for backward in place of being made again">];
  let statistics = [Statistic<"tiles", "tiles", "Tiles made">, Statistic<"losses", "losses", "Cross-entropies whose logits are never whole">];
}

def DifferentiatePass : Pass<"nn-differentiate", "::mlir::ModuleOp"> {
  let summary = "Append to @train the gradient of its result for every trainable parameter";
  let description = [{
    Needs: `@train` with one result, the loss. Leaves: one `nn.gradient` per trainable parameter, as early as its last contribution
    is known, so that a bucket can be reduced while backward goes on. Gradients of several uses are summed in the order
    in which backward meets them, products onto what there is (`nn.matmul … onto`); those of slices that overlap nowhere are joined instead (`nn.concat`,
    of rows `nn.join_rows`), along one dimension after another and with zeros where no slice was, and
    many products of few rows, as weights get from the steps of an unrolled loop, are one of all their rows. Reads of parameters are first moved
    down to their first use. A trainable parameter that the loss does not depend on becomes `trainable = false`, with a
    warning: an optimizer would skip it as PyTorch's do when a gradient is None.

    The rules belong to the operations (`DifferentiableOpInterface`); an operation without one between a trainable parameter
    and the loss is an error at its location.

    ```mlir
    %w = nn.get @w : tensor<8x4xf32>
    %y = nn.matmul %x, %w : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
    %loss = nn.reduce sum %y dims [0, 1] : tensor<2x4xf32> -> tensor<f32>
    // is followed by
    %one = nn.constant dense<1.0> : tensor<f32>
    %dy = nn.broadcast %one dims [] : tensor<f32> -> tensor<2x4xf32>
    %dw = nn.matmul %x, %dy {transpose_lhs = true} : (tensor<2x8xf32>, tensor<2x4xf32>) -> tensor<8x4xf32>
    nn.gradient @w, %dw : tensor<8x4xf32>
    ```
  }];
  let dependentDialects = ["::zero::nn::NnDialect"];
  let statistics = [Statistic<"gradients", "gradients", "Parameters with a gradient">,
                    Statistic<"emitted", "emitted", "Operations of backward">];
}

def SinkLossesPass : Pass<"nn-sink-losses", "::mlir::ModuleOp"> {
  let summary = "Compute each term of a loss right before its backward";
  let description = [{
    Needs: `@train` of `nn-differentiate`, with the terms of its loss (sums over rows, `SplittableOpInterface`) as operations of their own. Backward of a term knows its gradient before
    the term itself, so the terms of tiles of tokens need not be known all before the first tile's backward: what is made for a term alone (its logits) is moved down to where backward
    first reads of it, and exists for one tile at a time without being made again. What adds terms up follows the last of them.

    ```mlir
    %l1 = nn.matmul %x1, %w : …      %loss1, %lse1 = nn.cross_entropy %l1, …
    %l0 = nn.matmul %x0, %w : …      %loss0, %lse0 = nn.cross_entropy %l0, …
    %loss = nn.add %loss0, %loss1
    (gradients of %l0, of %l1)
    // becomes
    %l0 = nn.matmul %x0, %w : …      %loss0, %lse0 = nn.cross_entropy %l0, …
    (gradients of %l0)
    %l1 = nn.matmul %x1, %w : …      %loss1, %lse1 = nn.cross_entropy %l1, …
    %loss = nn.add %loss0, %loss1
    (gradients of %l1)
    ```
  }];
  let dependentDialects = ["::zero::nn::NnDialect"];
  let statistics = [Statistic<"moved", "moved", "Terms that are computed later">];
}

def GeluInProductsPass : Pass<"nn-gelu-in-products", "::mlir::func::FuncOp"> {
  let summary = "Have products take GELU of what they make, and of its gradient";
  let description = [{
    Needs: composites, for a target whose library can do it (cuBLASLt's GELU_AUX_BIAS and DGELU) and half precision: how exactly a library takes tanh it
    does not say. Where a product is read by nothing but the sum with a bias, of which nn.gelu is taken in its tanh form, the three become an nn.matmul_epilogue, which writes that
    sum as well: a pass over memory is spared. So is one where the gradient of such a GELU's result is a product: that one is multiplied by the slope. All before kernels are
    formed, so that what is left of GELU's neighbours finds other kernels.

    Not taken are products onto something, of batches, made again in backward, or of rows that are not multiples of 8 elements.

    ```mlir
    %p = nn.matmul %x, %w : (tensor<16x8xf32>, tensor<8x32xf32>) -> tensor<16x32xf32>
    %r = nn.broadcast %b dims [1] : tensor<32xf32> -> tensor<16x32xf32>
    %u = nn.add %p, %r : tensor<16x32xf32>
    %y = nn.gelu tanh %u : tensor<16x32xf32>
    // becomes
    %y, %u = nn.matmul_epilogue gelu %x, %w, %b : (tensor<16x8xf32>, tensor<8x32xf32>, tensor<32xf32>) -> (tensor<16x32xf32>, tensor<16x32xf32>)
    ```
  }];
  let dependentDialects = ["::zero::nn::NnDialect"];
  let statistics = [Statistic<"taken", "taken", "Products that do more">];
}

def LogitsInProductsPass : Pass<"nn-logits-in-products", "::mlir::func::FuncOp"> {
  let summary = "Have products add the bias of the logits that a loss reads";
  let description = [{
    Needs: composites, for a target whose library can do it (cuBLASLt's BIAS) and half precision. A loss and its gradient go over each row of logits twice, and each time they would read the bias of all
    classes, as many bytes as the row has, and add it. Where the product is read by nothing but that sum, both become an nn.matmul_epilogue. A bias that is read once costs nothing where it is added
    (nn-bias-in-products).

    ```mlir
    %p = nn.matmul %x, %w : (tensor<16x8xf32>, tensor<8x32xf32>) -> tensor<16x32xf32>
    %r = nn.broadcast %b dims [1] : tensor<32xf32> -> tensor<16x32xf32>
    %u = nn.add %p, %r : tensor<16x32xf32>
    %loss, %lse = nn.cross_entropy %u, %labels, %scale {ignore_index = -1} : ...
    // becomes
    %u = nn.matmul_epilogue bias %x, %w, %b : (tensor<16x8xf32>, tensor<8x32xf32>, tensor<32xf32>) -> tensor<16x32xf32>
    %loss, %lse = nn.cross_entropy %u, %labels, %scale {ignore_index = -1} : ...
    ```
  }];
  let dependentDialects = ["::zero::nn::NnDialect"];
  let statistics = [Statistic<"taken", "taken", "Products that add the bias of their logits">];
}

def DecomposePass : Pass<"nn-decompose", "::mlir::ModuleOp"> {
  let summary = "Rewrite composites into primitives, from which kernels are generated";
  let description = [{
    Leaves none of nn.softmax, layer_norm, rms_norm, gelu and its gradient, silu, cross_entropy, dropout. The forms are those that stay accurate:
    softmax and cross-entropy subtract the row's maximum, layer norm takes the variance from centred values. Reductions are over rows, so
    that a row kernel can hold a composite and its neighbours; cross-entropy finds the label's logit by comparing with the index, so that its forward
    and its gradient fit one kernel and an ignored label is never an index.

    ```mlir
    %y = nn.softmax %x : tensor<4x8xf32>
    // becomes
    %max = nn.reduce max %x dims [1] : tensor<4x8xf32> -> tensor<4xf32>
    %0 = nn.broadcast %max dims [0] : tensor<4xf32> -> tensor<4x8xf32>
    %1 = nn.sub %x, %0 : tensor<4x8xf32>
    %2 = nn.exp %1 : tensor<4x8xf32>
    %sum = nn.reduce sum %2 dims [1] : tensor<4x8xf32> -> tensor<4xf32>
    %3 = nn.div %ones, %sum : tensor<4xf32>
    %4 = nn.broadcast %3 dims [0] : tensor<4xf32> -> tensor<4x8xf32>
    %y = nn.mul %2, %4 : tensor<4x8xf32>
    ```
  }];
  let dependentDialects = ["::zero::nn::NnDialect"];
  let statistics = [Statistic<"rewritten", "rewritten", "Composites rewritten">];
}

def ExpandSinksPass : Pass<"nn-expand-sinks", "::mlir::ModuleOp"> {
  let summary = "Sinks of attentions as arithmetic of what the attentions without them give";
  let description = [{
    Needs: a differentiated module. A sink is a key whose value is zero: it makes the sum of exponentials of a row larger, and the result smaller by as much. So neither a library
    nor a kernel has to know of it; the gradients of q, k and v are those of an attention that has these results.

    ```mlir
    %y, %lse = nn.attention %q, %k, %v sink %sink
    // becomes
    %y0, %lse0 = nn.attention %q, %k, %v
    %lse = log(exp(%lse0) + exp(%sink))
    %y = %y0 * exp(%lse0 - %lse)
    ```
  }];
  let dependentDialects = ["::zero::nn::NnDialect"];
  let statistics = [Statistic<"expanded", "expanded", "Attentions that had sinks">];
}

def RecomputePass : Pass<"nn-recompute", "::mlir::func::FuncOp"> {
  let summary = "Compute cheap values of forward again in backward instead of keeping them";
  let description = [{
    Needs: `@train` in primitives. A tensor that backward reads is not kept where elementwise operations, repetitions and transposes make it
    from parameters, data, tensors that are kept anyway (at most two of its size) and row statistics: a norm's result from its input, an activation's
    from the sum before it, a merged head layout from the attention's result, a dropout's mask from the seed. Reductions are never done
    again, of products those marked `recompute`, whatever the mode; what a product with `keep_lhs` reads is kept, and so are indices, integers no
    more than an input has: what a table's lookup and its gradient share. The operations are the same, so the bits are; what is spent is a pass over memory that backward's kernels mostly make anyway. With
    `mode=none` everything else that backward reads is kept.

    ```mlir
    %g = nn.tanh %u : tensor<64x64xf32>                        // %u is kept for something else
    %loss = …
    %dw = nn.matmul %g, %dy {transpose_lhs = true} : …
    // becomes, after the loss,
    %again = nn.tanh %u : tensor<64x64xf32>
    %dw = nn.matmul %again, %dy {transpose_lhs = true} : …
    ```
  }];
  let dependentDialects = ["::zero::nn::NnDialect"];
  let options = [
    Option<"mode", "mode", "std::string", "\"auto\"", "auto or none">,
    Option<"minBytes", "min-bytes", "uint64_t", "16384", "Smaller tensors are kept">];
  let statistics = [Statistic<"values", "values", "Tensors computed again">, Statistic<"savedBytes", "saved-bytes", "Bytes not kept for backward">];
}

def LossLastPass : Pass<"nn-loss-last", "::mlir::ModuleOp"> {
  let summary = "Compute what only the reported loss needs after backward";
  let description = [{
    Acts where the logits that `nn-tile` keeps take more bytes than the gradient of their weights. The kernel that makes the gradient of a tile's
    logits makes the tile's part of the loss, too, so it runs before these parts are summed. With that sum between forward and backward the
    kernels of all tiles run there; with the sum after backward each runs right before the products that read its gradient. Until then the
    tile's logits are not touched, long enough to wait elsewhere (`plan-offload-activations`). This pass runs last in its phase: to the others
    forward ends with the loss.

    ```mlir
    %loss = nn.reduce %terms …
    (backward, which does not read %loss)
    return %loss
    // becomes
    (backward)
    %loss = nn.reduce %terms …
    return %loss
    ```
  }];
  let dependentDialects = ["::zero::nn::NnDialect"];
  let statistics = [Statistic<"moved", "moved", "Operations that are computed last">];
}

def VerifyTrainPass : Pass<"nn-verify-train", "::mlir::ModuleOp"> {
  let summary = "Check what the shard phase relies on";
  let description = [{
    `@train` and `@eval` exist and take arguments of equal names, roles and types, in equal order; each returns one number; every
    operation is a primitive or a library call of `nn`; every trainable parameter has exactly one `nn.gradient` in `@train`, and `@eval` has none.
  }];
}

#endif
