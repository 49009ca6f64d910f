//===- Passes.td - primitives to kernels, in pipeline order ------------------------------------------===//
#ifndef ZERO_PASSES_FUSE_TD
#define ZERO_PASSES_FUSE_TD
include "mlir/Pass/PassBase.td"

def ExpandPutAlongPass : Pass<"nn-expand-put-along", "::mlir::ModuleOp"> {
  let summary = "Sums of the elements that were taken out of rows, as the target makes them fastest";
  let description = [{
    Needs: functions of primitives and calls of the library. A processor adds one update after another to the flat tensor. With `compare`, for a target whose threads are many and
    must not add to the same place, each column compares its number with all indices of its row: of a table that single elements are the rows of, each
    block of a GPU would look at all updates there are.

    ```mlir
    %d = nn.put_along %dy, %index : tensor<8x4xf32>, tensor<8x4xi64> -> tensor<8x16xf32>
    // becomes
    %flat = nn.add %index, %begin_of_row : tensor<8x4xi64>
    %d = nn.scatter_add %flat, %dy : tensor<8x4xi64>, tensor<8x4xf32> -> tensor<128xf32>
    // or, with `compare`
    %falls = nn.compare eq %index_of_each_column, %column : tensor<8x4x16xi64> -> tensor<8x4x16xi1>
    %mine = nn.select %falls, %dy_of_each_column, %zeros : tensor<8x4x16xi1>, tensor<8x4x16xf32>
    %d = nn.reduce sum %mine dims [1] : tensor<8x4x16xf32> -> tensor<8x16xf32>
    ```
  }];
  let dependentDialects = ["::zero::nn::NnDialect"];
  let options = [Option<"compare", "compare", "bool", "false", "Columns compare their numbers with indices">];
  let statistics = [Statistic<"expanded", "expanded", "Sums of elements that were taken">];
}

def ExpandBlocksPass : Pass<"nn-expand-blocks", "::mlir::ModuleOp"> {
  let summary = "Products of blocks with the matrices of their groups as batches of products, for a target that has no other";
  let description = [{
    Needs: functions of primitives and calls of the library. The matrix of each block is gathered into a batch, and gradients of matrices are made for each block before those of a
    group are added up: as much memory as there are blocks, which nn-raise-grouped has made few for such a target.

    ```mlir
    %y = nn.block_matmul %x, %experts by %group_of : …
    %d = nn.block_matmul_sum %x, %dy by %group_of : …
    // becomes, with %group the groups as indices
    %each = nn.gather %experts, %group : …
    %y = nn.matmul %x, %each : …
    %parts = nn.matmul %x, %dy {transpose_lhs = true} : …
    %d = nn.scatter_add %group, %parts : …  // few and large matrices in pieces, each a row of its own
    ```
  }];
  let dependentDialects = ["::zero::nn::NnDialect"];
  let statistics = [Statistic<"expanded", "expanded", "Products of blocks">];
}

def TableRowsPass : Pass<"nn-table-rows", "::mlir::ModuleOp"> {
  let summary = "Look up rows of a table, and add up those of its gradient, by launches of their own";
  let description = [{
    Needs: functions without composites (nn-decompose). Where the rows that all ranks look up in a table, a parameter of 64 Ki elements or more, are at most half of it,
    moving rows is less than moving the table. Its lookups become launches marked with `nn.looks_up`, and its gradient, as far as that sums rows, launches marked with
    `nn.adds_rows` (compiler/nn/library/table_rows.h), which zero-insert-movement turns into exchanges of rows. That depends on nothing but the model and the
    number of ranks: all stages add in the same order. Tiles of tables stay as they are.

    On one rank nothing is exchanged, and lookups stay as they are. What they add to a gradient becomes such a launch, of tiles too, with the table's own
    indices and all updates as nn-tile has them before it masks them: `zero-insert-movement` may update these rows apart.

    ```mlir
    %x = nn.gather %table, %tokens : …
    %rows = nn.scatter_add %tokens, %dx : …
    %sum = nn.add %projection, %rows : …
    nn.gradient @table, %sum : …
    // becomes
    %x = nn.launch @gather_0(%table, %tokens) {nn.looks_up} : …
    %sum = nn.launch @scatter_add_0(%projection, %tokens, %dx) {nn.adds_rows} : …
    nn.gradient @table, %sum : …
    ```
  }];
  let dependentDialects = ["::zero::nn::NnDialect", "::mlir::func::FuncDialect"];
  let options = [Option<"world", "world", "int64_t", "1", "Ranks the model state is split over">];
  let statistics = [Statistic<"launches", "launches", "Calls of kernels">];
}

def FewRowsPass : Pass<"nn-few-rows", "::mlir::ModuleOp"> {
  let summary = "Sum what falls into a table of few rows column by column";
  let description = [{
    Needs: functions of primitives, for a target whose threads are many. The gradient of a table adds each update to the row of its index, and a GPU's block owns rows: of
    the two rows of BERT's token types it made two blocks go over 16384 updates one after another, 2.8 ms on an H200, a tenth of a micro-step.

    Of a table of `rows` rows or fewer each row is a sum over all updates, with zeros in place of those that fall into others: columns as those of a bias, which
    nn-split-columns sums in parts, all of them in one pass over the updates. Fewer than `least` elements are left as they are.

    ```mlir
    %dt = nn.scatter_add %types, %dx : tensor<4096xi64>, tensor<4096x64xf32> -> tensor<2x64xf32>
    // becomes, for row 0 and for row 1
    %is = nn.compare eq %types, %zero : tensor<4096xi64> -> tensor<4096xi1>
    %falls = nn.broadcast %is dims [0] : tensor<4096xi1> -> tensor<4096x64xi1>
    %mine = nn.select %falls, %dx, %zeros : tensor<4096x64xi1>, tensor<4096x64xf32>
    %row = nn.reduce sum %mine dims [0] : tensor<4096x64xf32> -> tensor<64xf32>
    ```
  }];
  let dependentDialects = ["::zero::nn::NnDialect"];
  let options = [Option<"rows", "rows", "int64_t", "32", "Most rows of a table">,
                 Option<"least", "least", "int64_t", "262144", "Elements that are worth it">];
  let statistics = [Statistic<"sums", "sums", "Tables that are summed by columns">];
}

def SplitReductionsPass : Pass<"nn-split-reductions", "::mlir::ModuleOp"> {
  let summary = "Few and long sums over dimensions around others in two steps: of rows, and of what these leave";
  let description = [{
    Needs: functions of primitives, for a target whose threads are many. A reduction of the first and the last dimensions, as a batch norm has of its channels, is neither one of rows
    nor one of columns: each result is made by one thread. Of fewer than `most` results with `least` terms or more the last dimensions are reduced first, as rows, and what
    they leave as columns.

    ```mlir
    %sum = nn.reduce sum %x dims [0, 2] : tensor<64x256x3136xf32> -> tensor<256xf32>
    // becomes
    %rows = nn.reduce sum %x dims [2] : tensor<64x256x3136xf32> -> tensor<64x256xf32>
    %sum = nn.reduce sum %rows dims [0] : tensor<64x256xf32> -> tensor<256xf32>
    ```
  }];
  let dependentDialects = ["::zero::nn::NnDialect"];
  let options = [Option<"most", "most", "int64_t", "65536", "Results that keep all threads busy">,
                 Option<"least", "least", "int64_t", "1024", "Terms that are worth a second step">];
  let statistics = [Statistic<"split", "split", "Reductions in two steps">];
}

def RoundExtremaPass : Pass<"nn-round-extrema", "::mlir::ModuleOp"> {
  let summary = "Look for a maximum or minimum among numbers that are rounded as they may be stored";
  let description = [{
    Needs: functions of primitives, before nn-fuse. What equals a maximum takes its gradient, and the place of it is found so. nn-mixed-precision may store the numbers, the
    maximum, both or neither in `stored`, and backward may make the numbers again in f32: then nothing equals the maximum, and the gradient is lost. Both sides of the
    comparison are rounded to `stored` here. Rounding is monotone, so that the rounded maximum is the maximum of the rounded numbers, and what was stored so does not change:
    it is found wherever either comes from. Numbers that `stored` does not tell apart share the gradient, as in PyTorch's tensors of that type.

    ```mlir
    %is = nn.compare eq %x, %repeated : tensor<4x8xf32> -> tensor<4x8xi1>
    // becomes
    %0 = nn.cast %x : tensor<4x8xf32> -> tensor<4x8xbf16>
    %1 = nn.cast %0 : tensor<4x8xbf16> -> tensor<4x8xf32>
    … // and so for %repeated
    %is = nn.compare eq %1, %3 : tensor<4x8xf32> -> tensor<4x8xi1>
    ```
  }];
  let dependentDialects = ["::zero::nn::NnDialect"];
  let options = [Option<"stored", "stored", "std::string", "\"bf16\"", "Type of activations: f32, bf16 or f16">];
  let statistics = [Statistic<"rounded", "rounded", "Comparisons with a maximum or minimum">];
}

def FusePass : Pass<"nn-fuse", "::mlir::ModuleOp"> {
  let summary = "Group primitives into kernels and call them";
  let description = [{
    Needs: functions without composites (nn-decompose). Leaves in every function that is no kernel itself: nn.get, nn.gradient,
    nn.matmul, nn.attention, nn.attention_grad, nn.reshape, nn.rows, nn.join_rows, products that a library finishes (nn.matmul_epilogue) or
    that are made by blocks, nn.constant of several values, nn.launch and the return. The groups are private functions with
    `nn.kernel`; equal groups are one function however many layers they come from. `nn.inplace` lists the pairs [result, operand] that
    may be the same bytes.

    Every value is computed where it is used, unless that would read more of memory than keeping it: a value goes to memory if a
    library call or the function's result wants it, if it is a reduction other kernels read, or if it would have to be made again
    from two or more tensors of its size. Broadcasts, indices, masks, random numbers and constants never do. Kernels over the same
    rows that read the same tensors become one, as far as no library call stands between them.

    Of a tensor that 16 slices of one size cut, as the steps of an unrolled loop over time do, a kernel is given the rows that it reads, where
    they lie (nn.rows), so that these steps have one kernel. Before, such slices are taken of what the tensor is computed from, if they are
    all that is read of it.

    ```mlir
    %b2 = nn.broadcast %b dims [1] : tensor<8xf32> -> tensor<4x8xf32>
    %0 = nn.add %x, %b2 : tensor<4x8xf32>
    %1 = nn.tanh %0 : tensor<4x8xf32>
    %y = nn.matmul %1, %w : …
    // becomes
    %1 = nn.launch @add_tanh_0(%x, %b) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    %y = nn.matmul %1, %w : …
    ```
  }];
  let dependentDialects = ["::zero::nn::NnDialect", "::mlir::func::FuncDialect"];
  let statistics = [Statistic<"launches", "launches", "Calls of kernels">, Statistic<"kernels", "kernels", "Distinct kernels">];
}

def MixedPrecisionPass : Pass<"nn-mixed-precision", "::mlir::ModuleOp"> {
  let summary = "Store parameters and activations in bf16 or f16, gradients as they travel; arithmetic stays f32";
  let description = [{
    Needs: functions as nn-fuse leaves them, in f32. What lies in memory between kernels, products and attention gets the type `stored`: parameters
    (`nn.get` yields the compute copy, the `nn.parameter` stays f32), the results of products and of attention, and those of kernels. f32 stay

    - gradients of parameters (which `nn.gradient` takes as `gradients`), what is added up to one and read by nobody else, and what the function
      returns;
    - statistics: results of reductions and what a kernel makes of them alone (unless a product reads them), the row sums of attention;
    - what a kernel adds up in memory, term by term;
    - masks, single numbers, inputs and constants.

    Kernels compute in f32 as before: they widen what they load and round what they store, to nearest even. So a value is rounded where
    it leaves a kernel and nowhere else, and decided once, before anything is known of ranks and memory: all stages agree to the bit. What a
    product needs in bf16 and is f32, or the reverse, is converted by a kernel of its own, and so is a gradient that no kernel yields.

    ```mlir
    %w = nn.get @w : tensor<8x8xf32>
    %y = nn.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %z, %s = nn.launch @norm_0(%y) : (tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>)
    // becomes
    %w = nn.get @w : tensor<8x8xbf16>
    %y = nn.matmul %x, %w : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16>
    %z, %s = nn.launch @norm_0(%y) : (tensor<4x8xbf16>) -> (tensor<4x8xbf16>, tensor<4xf32>)
    ```
  }];
  let dependentDialects = ["::zero::nn::NnDialect", "::mlir::func::FuncDialect"];
  let options = [Option<"stored", "stored", "std::string", "\"bf16\"", "Type of parameters and activations: f32, bf16 or f16">,
                 Option<"gradients", "gradients", "std::string", "\"f32\"", "Type in which gradients of parameters are handed over: f32 or bf16">];
  let statistics = [Statistic<"narrowed", "narrowed", "Values that are stored in fewer bytes than f32">];
}

def BiasInProductsPass : Pass<"nn-bias-in-products", "::mlir::ModuleOp"> {
  let summary = "Have products add the bias that a kernel would add and do nothing else";
  let description = [{
    Needs: functions as nn-fuse and nn-mixed-precision leave them, for a target whose library can do it (cuBLASLt's BIAS). Where all that reads a product are kernels which add the
    same bias to its rows, both become an nn.matmul_epilogue, and a pass over memory is spared. A bias whose sum goes on inside the kernel, into a residual or a norm, costs nothing there.

    ```mlir
    %p = nn.matmul %x, %w : (tensor<16x8xbf16>, tensor<8x32xbf16>) -> tensor<16x32xbf16>
    %y = nn.launch @add_0(%p, %b) : (tensor<16x32xbf16>, tensor<32xbf16>) -> tensor<16x32xbf16>
    // becomes
    %y = nn.matmul_epilogue bias %x, %w, %b : (tensor<16x8xbf16>, tensor<8x32xbf16>, tensor<32xbf16>) -> tensor<16x32xbf16>
    ```
  }];
  let dependentDialects = ["::zero::nn::NnDialect"];
  let statistics = [Statistic<"spared", "spared", "Products that add their bias">];
}

def SplitColumnsPass : Pass<"nn-split-columns", "::mlir::ModuleOp"> {
  let summary = "Sum few and long columns in parts, which a second kernel adds up";
  let description = [{
    Needs: functions as nn-fuse and nn-mixed-precision leave them, for a target whose threads are many: a GPU's blocks own columns, and nobody adds to another's, since
    the order of a sum must not depend on what runs when. The gradients of biases and of a norm's scale are as many as a layer is wide, of as many
    rows as there are tokens: too few columns to have all of a GPU read memory.

    A kernel that yields nothing but sums of columns becomes two. The first sums every P-th row, so that it has P times as many columns, the second the P
    sums of each. P is the smallest power of two by which there are `columns` columns, divides the rows, and leaves 16 terms to each part at least.
    Tensors of fewer than `least` elements are summed sooner than a second kernel begins.

    Where a kernel that sums each of the same rows (a norm's gradient) reads or writes all that the columns are summed of, it sums them too, for parts of
    8 to 32 rows, and no kernel reads the rows again. It does so if all parts together have four times `columns` columns, for a thread keeps at least four of them,
    and if rows are so short that registers suffice for that. What it sums of a result of its own is not rounded before. The sums of such parts are added up by a
    kernel as those of others are.

    ```mlir
    %db = nn.launch @columns_0(%dy) : (tensor<4096x64xf32>) -> tensor<64xf32>              // columns = 512
    // becomes
    %parts = nn.launch @columns_1(%dy) : (tensor<4096x64xf32>) -> tensor<8x64xf32>
    %db = nn.launch @columns_2(%parts) : (tensor<8x64xf32>) -> tensor<64xf32>
    ```
  }];
  let dependentDialects = ["::zero::nn::NnDialect", "::mlir::func::FuncDialect"];
  let options = [Option<"columns", "columns", "int64_t", "65536", "Columns that keep all threads busy">,
                 Option<"least", "least", "int64_t", "262144", "Elements that are worth a second kernel">];
  let statistics = [Statistic<"launches", "launches", "Sums that are made in parts">];
}

def RematerializePass : Pass<"nn-rematerialize", "::mlir::ModuleOp"> {
  let summary = "Keep no more than a number of bytes for backward, and make the rest again block by block";
  let description = [{
    Needs: `@train` as nn-fuse and nn-mixed-precision leave it. The tensors of forward that backward reads, as far as they are more than `keep-bytes`, are
    made again: products, attention and kernels of a block of layers, right before the block's backward first reads one of them, from what
    is kept. What is kept is chosen by cost for each byte (keep.h): multiply-adds of products and attention, bytes that kernels move.

    Blocks are found in the chain of forward (blocks.cpp): they end where least is under way, once per repetition of what repeats. What
    crosses an end is kept in any case, so that 0 keeps the inputs of blocks and nothing else (and what the last block leaves, which is read first).

    Made again are the kernels themselves, with the same bits: those of a product are the same product, and where a kernel made what is kept
    and what is not in one go, a kernel is made of its part. A value that was rounded when it was stored is no beginning of such a
    part, since the kernel went on with what it was before: with bf16, blocks end at the operands of such a kernel or after it.
    No pass after this one takes equal operations for one.

    ```mlir
    %x2, %n = nn.launch @norm_0(%x1, %p) : …               // an input, and what is made of it
    %h = nn.matmul %n, %w : …
    %loss = …
    %dw = nn.matmul %h, %dy {transpose_lhs = true} : …
    // becomes, after the loss,
    %again = nn.launch @norm_1(%x2) : …                      // the part of @norm_0 that leads from %x2 to %n
    %h2 = nn.matmul %again, %w : …
    %dw = nn.matmul %h2, %dy {transpose_lhs = true} : …
    ```
  }];
  let dependentDialects = ["::zero::nn::NnDialect", "::mlir::func::FuncDialect"];
  let options = [Option<"keepBytes", "keep-bytes", "uint64_t", "0", "Bytes of activations that may be kept for backward">];
  let statistics = [Statistic<"blocks", "blocks", "Blocks of which something is made again">,
                    Statistic<"keptBytes", "kept-bytes", "Bytes kept for backward">];
}

def AttentionKernelsPass : Pass<"nn-attention-kernels", "::mlir::ModuleOp"> {
  let summary = "Attention and its gradient as launches of kernels, for a target that has no step for them";
  let description = [{
    Needs: functions as nn-rematerialize leaves them, with `nn.attention` that kernels do (nn-expand-attention leaves no other). An `nn.attention` becomes a
    launch. Its gradient becomes two: the sums of dout · out, which are rows like others; and what needs them, of which some blocks make dk and dv, summed
    over the queries, and the others dq, summed over the keys. Equal layers share kernels.

    ```mlir
    %dq, %dk, %dv = nn.attention_grad %q, %k, %v, %y, %lse, %dy {causal = true, scale = 0.125 : f32} : …
    // becomes
    %delta = nn.launch @mul_reduce_0(%y, %dy) : …
    %dq, %dk, %dv = nn.launch @attention_grad_by_row_sums_0(%q, %k, %v, %lse, %delta, %dy) : …
    ```
  }];
  let dependentDialects = ["::zero::nn::NnDialect", "::mlir::func::FuncDialect"];
  let options = [Option<"warpgroups", "warpgroups", "bool", "false", "The GPU has products of four warps (sm_90a): kernels say so in nn.warpgroups">];
  let statistics = [Statistic<"launches", "launches", "Calls of kernels">];
}

def EmitKernelsPass : Pass<"nn-emit-kernels", "::mlir::ModuleOp"> {
  let summary = "Replace the kernels of the module by their vector code (for tests and people)";
  let description = [{
    The code that `zeroc` hands to LLVM: loops over flat memrefs, `lanes` f32 per vector. Functions that are no kernels are dropped.
    With `describe` each function carries what the plan will say of it: extent, grain, flops, bytes, summary.
  }];
  let dependentDialects = ["::mlir::func::FuncDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
  let options = [Option<"lanes", "lanes", "unsigned", "16", "f32 per vector: 8 for AVX2, 16 for AVX-512">,
                 Option<"describe", "describe", "bool", "false", "Attach the description of each kernel">];
}

#endif
