//===- Passes.td - who owns what, and how it moves, in pipeline order -----------------------------===//
#ifndef ZERO_PASSES_SHARD_TD
#define ZERO_PASSES_SHARD_TD
include "mlir/Pass/PassBase.td"

def PartitionPass : Pass<"zero-partition", "::mlir::ModuleOp"> {
  let summary = "Lay the parameters out in buckets that split evenly over the ranks";
  let description = [{
    Needs: `@train` reading its parameters by `nn.get`. Leaves: a `zero.bucket` per group of parameters, with the tensors that a rank keeps of it at this stage, and the module
    attributes `zero.world`, `zero.stage`, `zero.accumulate`, `zero.optimizer`, `zero.vertical` where micro-steps are to be interleaved in one
    program (then no bucket keeps a gradient), and `zero.scales_loss` where trained parameters are read in f16.

    Parameters are taken in the order of their first use, trainable and frozen ones apart, and a bucket is closed when the next
    parameter would lift it over `bucket-elements` (0: a sixteenth of the model, at least 64 Ki and at most 8 Mi elements, and no more
    than the largest tile where there are tiles; on one rank at most 1 Mi or 1/2048 of the model). A larger parameter is a bucket of its own, and so is a tile. A larger
    one whose rows are looked up (a table of the vocabulary) and every tile are alone, in the last buckets, since they are read apart from their neighbours. So
    that nothing travels for little more than its latency, little parameters (together at most 1/64 of that, on one rank of what it would be
    on several), such as a norm between two large matrices, join a neighbour though it is full. Inside, each parameter starts at a multiple of 16 elements (64 bytes); the
    shard is rounded up so that padding stays below 0.1 % of it (never less than 16 elements).

    ```mlir
    nn.parameter @w : tensor<64x32xf32> {trainable = true}      // 2048 elements
    nn.parameter @b : tensor<32xf32> {trainable = true}         // 32 more, over 2 ranks: 1040 each
    // becomes, beside them
    zero.bucket @bucket0 {elements = 2080 : i64, shard = 1040 : i64, parameters = [@w, @b], offsets = array<i64: 0, 2048>, trainable = true,
                          tensors = [#zero.tensor<master f32 shard on device>, #zero.tensor<first_moment f32 shard on device>, …]}  // stage 3
    ```
  }];
  let dependentDialects = ["::zero::state::ZeroDialect"];
  let options = [
    Option<"world", "world", "int64_t", "1", "Ranks the model state is split over">,
    Option<"stage", "stage", "int64_t", "0", "ZeRO stage: 0 nothing, 1 optimizer state, 2 gradients, 3 parameters are sharded">,
    Option<"accumulate", "accumulate", "int64_t", "1", "Micro-steps per optimizer step">,
    Option<"vertical", "vertical", "bool", "false", "Interleave the micro-steps in one program">,
    Option<"optimizer", "optimizer", "std::string", "\"adamw\"", "adamw or sgd">,
    Option<"bucketElements", "bucket-elements", "int64_t", "0", "Largest bucket in elements; 0 chooses by the model's size">,
    Option<"manyThreads", "many-threads", "bool", "false", "On one rank too a bucket is worth the launches that sum and update it">];
  let statistics = [Statistic<"buckets", "buckets", "Buckets made">, Statistic<"padding", "padding", "Elements no parameter owns">];
}

def AssignTiersPass : Pass<"zero-assign-tiers", "::mlir::ModuleOp"> {
  let summary = "Choose the tier in which each tensor of each bucket rests";
  let description = [{
    Needs: `@train` and buckets of `zero-partition`, whose tensors are all on the device. Leaves: the same buckets with a tier for each tensor, and
    without the compute copy where the master is whole on the device: it is rounded around its uses (`zero-insert-movement`), so that copies
    exist only while they are read, wherever `offload-params` would have them rest.

    What `offload-params` and `offload-optimizer` name is done as it is said. Tensors that are left to `auto` fill `device-bytes` of one
    rank's device memory first, then `host-bytes` of its host memory; the rest is on disk. Those go first that would be copied most often
    in a step: parameters (brought for each of their uses in a micro-step, of which those of a layer in forward or in backward are one,
    and written once), then what the optimizer keeps (read and written once). Among equals those go first whose gradient is complete last:
    nothing of backward is left behind which their copies could hide. That may leave a disk more to do than there is time for while the first
    gradients are made, and nothing after them: with `spread` those parts of what the optimizer keeps that leave are spread evenly over backward. A master that is whole on the device has no compute copy, so it counts for
    both: where that spares more for each byte than the copy alone it comes first. With `fetch-masters` there is none either where master and copy would
    rest in the same tier and less is copied without it: the master is fetched for each use and rounded there, and the update finds it on the device. How all of this may leave, and what is then copied for
    each byte, is the module's `zero.removals`: pairs of bytes and traffic.

    With `host-updates`, for a device that has a memory of its own, a bucket is `updated_on_host` where all moments or momenta that it keeps rest there
    and its master does or can: a master of f32 on the device that programs read becomes a compute copy, and a master on the host is kept beside it.
    Of `host-bytes` such a bucket takes that master and its gradient, too. With `disk-updates` so is a bucket of which some of that rests on disk; a master of
    f32 that programs read on the device stays there, and comes to the host for the update, unless all moments rest on the host. Without, what keeps something on disk
    is updated on the device.

    Room that work needs beside them is not known here: who asks for a number of bytes has tried it out (`passes/pipeline/search.h`).

    ```mlir
    // 1000 elements each, device-bytes=10000, offload-params=auto, offload-optimizer=auto
    zero.bucket @b0 {…, tensors = [#zero.tensor<master f32 whole on device>, #zero.tensor<momentum f32 whole on device>]}
    zero.bucket @b1 {…, tensors = [#zero.tensor<master f32 whole on device>, #zero.tensor<momentum f32 whole on device>]}
    // becomes
    zero.bucket @b0 {…, tensors = [#zero.tensor<master f32 whole on device>, #zero.tensor<momentum f32 whole on disk>]}
    zero.bucket @b1 {…, tensors = [#zero.tensor<master f32 whole on device>, #zero.tensor<momentum f32 whole on disk>]}
    ```
  }];
  let dependentDialects = ["::zero::state::ZeroDialect"];
  let options = [
    Option<"offloadParams", "offload-params", "std::string", "\"none\"", "Tier where parameters rest: none (the device), host, disk or auto">,
    Option<"offloadOptimizer", "offload-optimizer", "std::string", "\"none\"",
           "The same of what the optimizer keeps, and of gradients between micro-steps">,
    Option<"deviceBytes", "device-bytes", "int64_t", "-1", "Bytes of state left to auto that rest on the device; -1: all">,
    Option<"hostBytes", "host-bytes", "int64_t", "0", "Bytes of it that rest on the host, beyond those">,
    Option<"keepCompute", "keep-compute", "bool", "false", "A compute copy is kept even where its master is whole on the device">,
    Option<"fetchMasters", "fetch-masters", "bool", "false", "A master that rests elsewhere needs no compute copy: it is fetched for each use">,
    Option<"spread", "spread", "bool", "false", "The optimizer's state that leaves is spread over backward">,
    Option<"hostUpdates", "host-updates", "bool", "false", "What rests on the host is updated by its processors">,
    Option<"diskUpdates", "disk-updates", "bool", "false", "And what rests on disk">];
  let statistics = [Statistic<"moved", "moved", "Tensors that rest in another tier">,
                    Statistic<"onHosts", "on-host", "Buckets that the host updates">,
                    Statistic<"rounded", "rounded", "Buckets that keep no compute copy">];
}

def ProgramsPass : Pass<"zero-programs", "::mlir::ModuleOp"> {
  let summary = "Turn the training step into one program per kind of micro-step";
  let description = [{
    Needs: `@train` and `@eval`, module attributes of `zero-partition`. Leaves: functions with `zero.role`: with one micro-step per
    step, or `zero.vertical`, `@step` and `@step_clip`; with several `@first`, `@middle` (from three on), `@last` and `@last_clip`; and `@eval`. The
    clipping variants wait for the global gradient norm before they update; which one runs is chosen at run time by `--clip`.
    With `clip` never or always there is only the one or the other. Where the loss is scaled (`zero.scales_loss`) every update waits for
    the norm and there is no such variant. `@train` is gone.
  }];
  let dependentDialects = ["::zero::state::ZeroDialect"];
  let options = [Option<"clip", "clip", "std::string", "\"any\"", "Whether runs clip the gradient norm: any, never or always">];
}

def InterleavePass : Pass<"zero-interleave", "::mlir::ModuleOp"> {
  let summary = "Hold all micro-steps in one program, bucket by bucket (vertical order)";
  let description = [{
    Needs: programs of `zero-programs` of a module with `zero.vertical`. Leaves: `@step` and `@step_clip` with the operations of all
    micro-steps. The program is cut into pieces that read at most `buckets` buckets, and each piece is done for all micro-steps, in their
    order, before the next: what is gathered for it is gathered once, and `zero-merge-gathers` finds as few gathers as in one micro-step. What depends on
    no micro-step's samples is computed once. Every micro-step has data, labels and a seed of its own (`zero.micro_step`), and its
    own gradients (the i-th `nn.gradient` of a parameter is micro-step i's) and losses.

    Tensors that cross from piece to piece live once for every micro-step: that is the price.

    ```mlir
    func.func @step(%x) {                       // 2 micro-steps
      %w = nn.get @w; %v = nn.get @v            // each in a bucket of its own
      %h = nn.matmul %x, %w
      %y = nn.matmul %h, %v
      return %y
    // becomes
    func.func @step(%x, %x1 {zero.micro_step = 1}) {
      %w = nn.get @w; %v = nn.get @v
      %h = nn.matmul %x, %w
      %h1 = nn.matmul %x1, %w
      %y = nn.matmul %h, %v
      %y1 = nn.matmul %h1, %v
      return %y, %y1
    ```
  }];
  let dependentDialects = ["::zero::state::ZeroDialect"];
  let options = [Option<"buckets", "buckets", "int64_t", "kMergeDistance + 1", "Buckets that a piece may read">];
  let statistics = [Statistic<"pieces", "pieces", "Pieces that programs were cut into">];
}

def InsertMovementPass : Pass<"zero-insert-movement", "::mlir::ModuleOp"> {
  let summary = "Gather parameters around each use, reduce and consume gradients where they are complete";
  let description = [{
    Needs: programs of `zero-programs`. Leaves: no `nn.get` and no `nn.gradient`. The obviously correct form: at stage 3 every
    use of a bucket has its own gather and release (`zero-merge-gathers` improves on it), and so it has where the bucket keeps its
    parameters as another type than that of the `nn.get`, which the gather's kernel rounds them to; a bucket's gradients are packed,
    reduce-scattered, accumulated and used by the optimizer as soon as the last of them is known and the bucket's
    parameters have been read for the last time. With `--stage 0` the reduced gradient is gathered again and every rank updates
    everything; the sums are the same for every stage, so all stages give the same bits.

    In a program that is the whole step and does not wait for the norm some updates may come last, after the results: `plan-overlap-updates`
    lets them run beside the next step's forward, where a disk has less to do than in backward. Until then their gradients wait, which take
    half of what would have to be fetched before. They are spread evenly over what forward reads, as many as `late-bytes` of gradients
    has room for, of buckets whose state comes from another tier; the squares of their gradients are summed apart.

    In such a program, on one rank, a table that the output projection shares is updated as soon as the projection's gradient is complete, but for the rows
    that were looked up: `zero.update` sets these apart, `zero.update_rows` updates them once the lookup's gradient is there, and `zero.write_rows` puts
    them where they rest. So it is where the table's parameters rest on the device and something of its state does not.

    ```mlir
    %w = nn.get @w : tensor<64x32xf32>                     // stage 3
    %y = nn.matmul %x, %w : …
    // becomes
    %b = zero.gather @bucket0 : tensor<2080xf32>
    %w = zero.view %b at 0 : tensor<2080xf32> -> tensor<64x32xf32>
    %y = nn.matmul %x, %w : …
    zero.release %b : tensor<2080xf32>
    ```
  }];
  let dependentDialects = ["::zero::state::ZeroDialect"];
  let options = [Option<"lateBytes", "late-bytes", "int64_t", "0", "Bytes of gradients whose updates come last">];
}

def MergeGathersPass : Pass<"zero-merge-gathers", "::mlir::ModuleOp"> {
  let summary = "Keep a gathered bucket between neighbouring uses";
  let description = [{
    A release followed by a gather of the same bucket is dropped when at most `distance` other buckets are used in between, so a layer
    travels once in forward and once in backward: the 3Ψ of ZeRO stage 3.
  }];
  let options = [Option<"distance", "distance", "int64_t", "kMergeDistance", "Other buckets that may be used between two uses of a kept one">];
  let statistics = [Statistic<"merged", "merged", "Gathers saved">];
}

def VerifyShardPass : Pass<"zero-verify-shard", "::mlir::ModuleOp"> {
  let summary = "Check what the schedule phase relies on";
  let description = [{
    Every parameter lies in one bucket, beside the others and inside it. No `nn.get` or `nn.gradient` is left; every gathered bucket is
    released exactly once, after its last use; every trainable bucket is updated exactly once in each updating program and never before it
    is read for the last time.
  }];
}
#endif
