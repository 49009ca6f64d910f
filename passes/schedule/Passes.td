//===- Passes.td - lanes and order, in pipeline order ----------------------------------------------===//
#ifndef ZERO_PASSES_SCHEDULE_TD
#define ZERO_PASSES_SCHEDULE_TD
include "mlir/Pass/PassBase.td"

def LowerPass : Pass<"plan-lower", "::mlir::ModuleOp"> {
  let summary = "Give tensors bytes: programs of the zero dialect become steps over buffers";
  let description = [{
    Needs: functions with `zero.role` made of `zero.*`, `nn.matmul`, `nn.attention(_grad)`, `nn.launch`, `nn.reshape` and
    `nn.constant`. Leaves: a `plan.program` for each, in the same order, every step on lane `compute`, and a `plan.state` per
    persistent buffer: parameters, optimizer state, accumulators, inputs, constants, results.

    Every operation writes into bytes chosen beforehand: a view is another reference to the same bytes; what is packed is
    computed in its place inside the packed buffer; a kernel overwrites an operand that nobody reads afterwards, where its attribute
    `nn.inplace` or the kernel compiler allows it; a reduce-scatter leaves the shard inside its source if it is consumed before the next one. What cannot be
    written in place is copied by a `plan.copy`; gaps between packed values are filled with zeros.

    A sum over ranks goes in slices, as many elements of each rank at a time as `staging-bytes` have room for, so that this room does
    not grow with the bucket. With `library-sums` those of f32 are left to the device's library, which needs none; it would add bf16 in bf16.
    With `tf32` products of f32 may round what they multiply.

    ```mlir
    %g = zero.pack %gw, %gb at array<i64: 0, 32> : … -> tensor<64xf32>
    %s = zero.reduce_scatter %g : tensor<64xf32> -> tensor<32xf32>
    // becomes
    plan.launch compute … -> %b0.gradient[128, 16] : @k
    plan.fill compute -> %b0.gradient[144, 112] : 0
    plan.collective compute %b0.gradient[0, 256] -> %b0.gradient[0 + rank * 128, 128], %b0.staging[0, 256] : reduce_scatter 32 of f32 by 32
    ```
  }];
  let options = [Option<"stagingBytes", "staging-bytes", "int64_t", "16 << 20", "Room for what ranks send towards a sum">,
                 Option<"librarySums", "library-sums", "bool", "false", "Sums of f32 are made by the device's library, in its own order">,
                 Option<"tf32", "tf32", "bool", "false", "Products of f32 multiply with 10 bits of fraction">];
  let dependentDialects = ["::zero::planir::PlanDialect"];
  let statistics = [Statistic<"copies", "copies", "Values that had to be copied">,
                    Statistic<"inplace", "in-place", "Kernel results that overwrite an operand">];
}

def AssignLanesPass : Pass<"plan-assign-lanes", "::zero::planir::ProgramOp"> {
  let summary = "Parameters travel on lane gather, gradients and scalars on lane reduce, tiers have lanes of their own, the rest computes";
  let description = [{
    A copy from or to another tier, and what writes rows of a table there, goes to the lane of that way: `disk_read`, `disk_write`, `to_device`, `to_host`.
    Updates of buckets that the host updates, and the sums of gradients that came down for them, go to lane `update_host`.
    An all-gather from or into persistent parameters (a gather, a publish) goes to lane `gather`; reduce-scatters, all-reduces and
    all-gathers of gradients to lane `reduce`. Every rank runs the same program, so the order of collectives per lane is the
    same on all of them.

    ```mlir
    plan.collective compute %b0.parameter[0, 256] -> %w[0, 512] : all_gather 64 of f32
    plan.collective compute %g[0, 512] -> %g[0 + rank * 256, 256], %s[0, 512] : reduce_scatter 64 of f32 by 64
    // become
    plan.collective gather %b0.parameter[0, 256] -> %w[0, 512] : all_gather 64 of f32
    plan.collective reduce %g[0, 512] -> %g[0 + rank * 256, 256], %s[0, 512] : reduce_scatter 64 of f32 by 64
    ```
  }];
}

def DeferProductsPass : Pass<"plan-defer-products", "::zero::planir::ProgramOp"> {
  let summary = "Make a product when its result is needed, where its operands take less room until then";
  let description = [{
    A product whose result nothing touches for `distance` steps of lane compute or more moves down to the step that needs it, if what has to
    be kept of its operands for that takes fewer bytes than the result. So it is with a table that both ends of a model read: its gradient is
    begun with the logits and ended with the lookup, the last thing backward does, and logits are smaller than the table where tokens are fewer
    than its rows are wide. What would wait is smaller, whether on the device or elsewhere, and the product is computed while the state of
    the table, whose update comes last, is on its way. Unless the program may `grow`, nothing moves where its fullest step would be fuller: where
    all gradients wait for the norm, the last operands lie beside them.

    ```mlir
    plan.matmul compute %dy[0, 4096], %x[0, 512] -> %g[0, 8192] : 64 x 32 x 16 …
    …                                                       // 32 steps that touch neither %g nor %dy
    plan.launch compute %g[0, 8192], %r[0, 64] -> %g[0, 8192] : @lookup
    // becomes
    …
    plan.matmul compute %dy[0, 4096], %x[0, 512] -> %g[0, 8192] : 64 x 32 x 16 …
    plan.launch compute %g[0, 8192], %r[0, 64] -> %g[0, 8192] : @lookup
    ```
  }];
  let options = [Option<"distance", "distance", "int64_t", "32", "Steps of lane compute that a result waits at least">,
                 Option<"grow", "grow", "bool", "false", "Also where more would be live at the fullest step">];
  let statistics = [Statistic<"deferred", "deferred", "Products that moved">];
}

def ElideGathersPass : Pass<"plan-elide-gathers", "::zero::planir::ProgramOp"> {
  let summary = "Keep a gathered bucket until it is needed again, instead of gathering it twice";
  let description = [{
    Two gathers of one bucket with no write to its shard in between may be one. That is free where no other bucket is gathered in
    between (the last bucket of forward is the first of backward); otherwise it costs the bucket's bytes for the time between,
    and is done, shortest times first, as long as the bytes kept at any moment stay within `resident-bytes`.

    ```mlir
    plan.collective gather %b2.parameter[0, 256] -> %w2[0, 512] : all_gather 64 of f32
    plan.copy compute %w2[0, 64] -> %x[0, 64]      // the end of forward
    plan.collective gather %b2.parameter[0, 256] -> %w3[0, 512] : all_gather 64 of f32
    plan.copy compute %w3[0, 64] -> %x[0, 64]      // the beginning of backward
    // becomes
    plan.collective gather %b2.parameter[0, 256] -> %w2[0, 512] : all_gather 64 of f32
    plan.copy compute %w2[0, 64] -> %x[0, 64]
    plan.copy compute %w2[0, 64] -> %x[0, 64]
    plan.decision "b2" : "kept until it is needed again" because "no other bucket is gathered in between"
    ```
  }];
  let options = [Option<"residentBytes", "resident-bytes", "int64_t", "0", "Bytes of gathered buckets that may be kept beyond their uses">];
  let statistics = [Statistic<"elided", "elided", "Gathers saved">];
}

def UpdateGatheredPass : Pass<"plan-update-gathered", "::zero::planir::ProgramOp"> {
  let summary = "Update parameters where they are gathered, instead of fetching them again";
  let description = [{
    Where parameters rest in another tier and one rank updates all of a bucket, its last gather has brought what the update fetches. If at
    most one other bucket is gathered in between, the update works on the gathered copy, and what it changed is brought back from there. With
    `shards` so does an update of a rank's shard that was fetched to be gathered from all ranks: it spares a fetch of it, and takes its room
    for longer.

    ```mlir
    plan.copy to_device %b0.parameter[0, 256] -> %w[0, 256]
    plan.copy compute %w[0, 64] -> %x[0, 64]
    plan.copy to_device %b0.parameter[0, 256] -> %p[0, 256]
    plan.fill compute -> %p[0, 256] : 1            // stands for the update
    plan.copy to_host %p[0, 256] -> %b0.parameter[0, 256]
    // becomes
    plan.copy to_device %b0.parameter[0, 256] -> %w[0, 256]
    plan.copy compute %w[0, 64] -> %x[0, 64]
    plan.fill compute -> %w[0, 256] : 1
    plan.copy to_host %w[0, 256] -> %b0.parameter[0, 256]
    ```
  }];
  let options = [Option<"shards", "shards", "bool", "false", "Shards that are gathered from all ranks stay for their update, too">];
  let statistics = [Statistic<"reused", "reused", "Fetches saved">];
}

def OffloadActivationsPass : Pass<"plan-offload-activations", "::zero::planir::ProgramOp"> {
  let summary = "What forward leaves for backward waits in another tier";
  let description = [{
    An activation, or a gradient that waits for the global norm, which nothing touches for `distance` steps of lane compute or more is
    copied to a buffer of `tier` after its last touch, and back to bytes of its own before the next one; padding that is filled later is filled
    before that. On disk it is filled up to whole blocks, and stays if that were more than a 16th of it. `plan-hoist-fetches` then lets it
    come back in time. Where steps are long, as those of a wide output projection, fewer than `distance` are enough if their products have
    `work` multiply-adds for each byte that waits. This goes for buffers of at least a 256th of the most bytes that are live in a step, and only if
    90 % of that are live in one of the steps in between. With `most-bytes` the buffers that wait longest are taken, up to that sum, and the
    others stay.

    ```mlir
    plan.fill compute -> %x[0, 4096] : 1
    …                                                       // 32 steps that do not touch it
    plan.copy compute %x[0, 4096] -> %y[0, 4096]
    // becomes
    %x.away = plan.buffer activation "x.away" on host bytes 4096
    %x.back = plan.buffer activation "x.back" bytes 4096
    plan.fill compute -> %x[0, 4096] : 1
    plan.copy to_host %x[0, 4096] -> %x.away[0, 4096]
    …
    plan.copy to_device %x.away[0, 4096] -> %x.back[0, 4096]
    plan.copy compute %x.back[0, 4096] -> %y[0, 4096]
    ```
  }];
  let options = [Option<"tier", "tier", "std::string", "\"host\"", "host or disk">,
                 Option<"distance", "distance", "int64_t", "32", "Steps of lane compute that a buffer waits at least">,
                 Option<"minBytes", "min-bytes", "int64_t", "4096", "Smallest buffer that is worth the way">,
                 Option<"work", "work", "int64_t", "0", "Multiply-adds for each of its bytes during which it waits at least, where these are fewer steps than distance; 0: by steps alone">,
                 Option<"mostBytes", "most-bytes", "int64_t", "-1", "Sum of the buffers that leave; -1: any">];
  let statistics = [Statistic<"offloaded", "offloaded", "Buffers that wait in the other tier">];
}

def HoistGathersPass : Pass<"plan-hoist-gathers", "::zero::planir::ProgramOp"> {
  let summary = "Start gathers before their bucket is needed, as early as memory allows";
  let description = [{
    A gather moves up to the earliest step from which, until its old place, the gathered buckets alive at once stay within the limit:
    `gather-bytes`, or by default the bucket in use and `ahead` others. The order of gathers stays; none moves before
    a step that writes the shard it sends.

    ```mlir
    plan.collective gather %b0.parameter[0, 256] -> %w0[0, 512] : all_gather 64 of f32
    plan.copy compute %w0[0, 64] -> %x[0, 64]
    plan.collective gather %b1.parameter[0, 256] -> %w1[0, 512] : all_gather 64 of f32
    plan.copy compute %w1[0, 64] -> %x[0, 64]
    // becomes: b1 travels while b0 is used
    plan.collective gather %b0.parameter[0, 256] -> %w0[0, 512] : all_gather 64 of f32
    plan.collective gather %b1.parameter[0, 256] -> %w1[0, 512] : all_gather 64 of f32
    plan.copy compute %w0[0, 64] -> %x[0, 64]
    plan.copy compute %w1[0, 64] -> %x[0, 64]
    ```

    Over a slow link forward takes longer to gather than to compute, while backward, which has gradients alone to send, leaves the link idle. Lanes
    run on from one step into the next. So with `early-bytes` some buckets are gathered in front of all others, in the order in which the program
    updates them: what backward reaches first is updated first, and travels for the next step while backward goes on. They are whole in all of
    forward. The first gather stays where it is: forward waits for it.
  }];
  let options = [Option<"ahead", "ahead", "int64_t", "2", "Buckets that may be whole beyond the one in use">,
                 Option<"gatherBytes", "gather-bytes", "int64_t", "0", "Bytes of gathered buckets alive at once; 0: by `ahead`">,
                 Option<"earlyBytes", "early-bytes", "int64_t", "0", "Bytes of buckets that are gathered in front of all others">];
  let statistics = [Statistic<"hoisted", "hoisted", "Gathers that moved">];
}

def SinkUpdatesPass : Pass<"plan-sink-updates", "::zero::planir::ProgramOp"> {
  let summary = "Let a gradient travel while the next one is computed";
  let description = [{
    A step on another lane than `reduce` that consumes what a collective of that lane brought (an update, a sum of squares, an
    accumulation) moves down after the collective of the `delay`-th next bucket (or the last), together with the steps in between that depend on it;
    otherwise lane `compute` would stand still while the gradient travels. Nothing moves past a step it conflicts with.

    ```mlir
    plan.collective reduce %g0[0, 512] -> %g0[0 + rank * 256, 256], %s0[0, 512] : reduce_scatter 64 of f32 by 64
    plan.copy compute %g0[0, 512] -> %p0[0, 512]   // stands for the update of this bucket
    plan.fill compute -> %g1[0, 512] : 0           // and this for the next gradient
    plan.collective reduce %g1[0, 512] -> %g1[0 + rank * 256, 256], %s1[0, 512] : reduce_scatter 64 of f32 by 64
    // becomes
    plan.collective reduce %g0[0, 512] -> %g0[0 + rank * 256, 256], %s0[0, 512] : reduce_scatter 64 of f32 by 64
    plan.fill compute -> %g1[0, 512] : 0
    plan.collective reduce %g1[0, 512] -> %g1[0 + rank * 256, 256], %s1[0, 512] : reduce_scatter 64 of f32 by 64
    plan.copy compute %g0[0, 512] -> %p0[0, 512]
    ```
  }];
  let options = [Option<"delay", "delay", "int64_t", "1", "Buckets whose reduction may be under way at once, beyond the first">];
  let statistics = [Statistic<"sunk", "sunk", "Steps that moved">];
}

def SpreadUpdatesPass : Pass<"plan-spread-updates", "::zero::planir::ProgramOp"> {
  let summary = "Update in slices between the steps that follow";
  let description = [{
    Where a bucket is updated in slices because its state rests in another tier, they move apart: slice i of n goes after the first i/n of
    what lane compute does until the next bucket's update, with the copies that belong to it. One after the other they would go as fast
    as the other tier brings and takes their state, and lane compute would stand still meanwhile. Buckets stay whole, and gradients there,
    for longer: nothing moves where more bytes would be live then than at the program's fullest step, or where a step in between depends on
    an update.

    ```mlir
    plan.copy disk_read %b0.m[0, 4096] -> %m0[0, 4096]
    plan.update compute … -> … : @b0 @k of f32
    plan.copy disk_write %m0[0, 4096] -> %b0.m[0, 4096]
    plan.copy disk_read %b0.m[4096, 4096] -> %m1[0, 4096]
    plan.update compute … -> … : @b0 @k of f32 from 1024
    plan.copy disk_write %m1[0, 4096] -> %b0.m[4096, 4096]
    plan.fill compute -> %x[0, 64] : 0
    plan.fill compute -> %y[0, 64] : 0
    // becomes
    plan.copy disk_read %b0.m[0, 4096] -> %m0[0, 4096]
    plan.update compute … -> … : @b0 @k of f32
    plan.copy disk_write %m0[0, 4096] -> %b0.m[0, 4096]
    plan.fill compute -> %x[0, 64] : 0
    plan.copy disk_read %b0.m[4096, 4096] -> %m1[0, 4096]
    plan.update compute … -> … : @b0 @k of f32 from 1024
    plan.copy disk_write %m1[0, 4096] -> %b0.m[4096, 4096]
    plan.fill compute -> %y[0, 64] : 0
    ```
  }];
  let statistics = [Statistic<"moved", "moved", "Slices that moved">];
}

def HoistFetchesPass : Pass<"plan-hoist-fetches", "::zero::planir::ProgramOp"> {
  let summary = "Fetch what the optimizer keeps in another tier before its update needs it";
  let description = [{
    As plan-hoist-gathers, of everything else that comes from host or disk: what an update or an accumulation needs moves up together, as
    long as that of at most `ahead` others is on the device (of more than one only where that is together no more than 1/`part` of all that is fetched),
    and by `reach` steps of lane compute at most: the first update comes long after the program's beginning, and what it needs shall not lie
    there all the while. What was changed is written back by lanes of their own meanwhile; with one other alone, a fetch would wait for the
    write-back of the one before.

    ```mlir
    plan.copy disk_read %b0.m[0, 4096] -> %m0[0, 4096]
    plan.update compute … -> … : @b0 @k of f32
    plan.copy disk_write %m0[0, 4096] -> %b0.m[0, 4096]
    plan.copy disk_read %b1.m[0, 4096] -> %m1[0, 4096]
    plan.update compute … -> … : @b1 @k of f32
    // becomes: the state of b1 comes while b0 is updated
    plan.copy disk_read %b0.m[0, 4096] -> %m0[0, 4096]
    plan.copy disk_read %b1.m[0, 4096] -> %m1[0, 4096]
    plan.update compute … -> … : @b0 @k of f32
    plan.copy disk_write %m0[0, 4096] -> %b0.m[0, 4096]
    plan.update compute … -> … : @b1 @k of f32
    ```
  }];
  let options = [Option<"ahead", "ahead", "int64_t", "3", "Updates whose state may be on the device beyond the one under way">,
                 Option<"part", "part", "int64_t", "32", "More than one of them may take 1/part of all that is fetched">,
                 Option<"reach", "reach", "int64_t", "16", "Steps of lane compute by which a fetch may be early; 0: any number">];
  let statistics = [Statistic<"hoisted", "hoisted", "Fetches that moved">];
}

def OverlapUpdatesPass : Pass<"plan-overlap-updates", "::zero::planir::ProgramOp"> {
  let summary = "Updates after a program's other steps run beside the next step's forward";
  let description = [{
    With a global norm no update can be made before the end of backward, and without one some may be late (`zero-insert-movement`). Where
    updates need what rests in another tier, lane compute would then wait for all of it to come and go. So those that stand after its last
    other step, with the fills of what they alone write, go on lane `update`, and their copies on lanes
    `update_read` and `update_write`, which leave those of the next step's fetches free: its forward begins while they run, and waits for
    each bucket as it needs it. In the order of their first use in forward, as zero-insert-movement has put them, the first updates are those
    that it needs first. They read a copy of the hyper-parameters, which the host writes again for the next step. What writes rows of a
    table to another tier after all else goes on lane `update_write` in any case.

    ```mlir
    plan.copy disk_read %m[0, 4096] -> %f[0, 4096]
    plan.update compute %p[0, 4096], %g[0, 4096], %f[0, 4096], %hyper[0, 64], %norm[0, 4] -> %p[0, 4096], %f[0, 4096] : @b0 @k of f32
    plan.copy disk_write %f[0, 4096] -> %m[0, 4096]
    // becomes
    plan.copy compute %hyper[0, 64] -> %kept[0, 64]
    plan.copy update_read %m[0, 4096] -> %f[0, 4096]
    plan.update update %p[0, 4096], %g[0, 4096], %f[0, 4096], %kept[0, 64], %norm[0, 4] -> %p[0, 4096], %f[0, 4096] : @b0 @k of f32
    plan.copy update_write %f[0, 4096] -> %m[0, 4096]
    ```
  }];
  let statistics = [Statistic<"moved", "moved", "Updates on a lane of their own">];
}

def DeferWritesPass : Pass<"plan-defer-writes", "::zero::planir::ProgramOp"> {
  let summary = "Some of what updates have changed on disk is written after all of them";
  let description = [{
    Beside the next step's forward (plan-overlap-updates) a disk reads what updates need, for which forward waits, and writes what they have
    changed, for which nobody does. Both at once take nearly twice as long as the reading, and then, in backward, the disk rests. But the
    gradient of what is updated is free, so that there is room to write later. So the last of these copies, of `most-bytes` together at most
    and as many as keep the fullest step as full as it is, go to the end of lane `update`: it comes to them when the last update is made,
    hence when all is read. Until its copy is complete a buffer is live beside the next run, up to what forward waits for last and in the
    beginning of backward, which plan-assign-offsets knows of.

    ```mlir
    plan.copy update_read %m0[0, 4096] -> %f0[0, 4096]
    plan.update update %p0[0, 4096], %g0[0, 4096], %f0[0, 4096], … -> %p0[0, 4096], %f0[0, 4096] : @b0 @k of f32
    plan.copy update_write %f0[0, 4096] -> %m0[0, 4096]
    plan.copy update_read %m1[0, 4096] -> %f1[0, 4096]
    plan.update update %p1[0, 4096], %g1[0, 4096], %f1[0, 4096], … -> %p1[0, 4096], %f1[0, 4096] : @b1 @k of f32
    plan.copy update_write %f1[0, 4096] -> %m1[0, 4096]
    // becomes, with most-bytes=8192
    plan.copy update_read %m0[0, 4096] -> %f0[0, 4096]
    plan.update update %p0[0, 4096], %g0[0, 4096], %f0[0, 4096], … -> %p0[0, 4096], %f0[0, 4096] : @b0 @k of f32
    plan.copy update_read %m1[0, 4096] -> %f1[0, 4096]
    plan.update update %p1[0, 4096], %g1[0, 4096], %f1[0, 4096], … -> %p1[0, 4096], %f1[0, 4096] : @b1 @k of f32
    plan.copy update %f0[0, 4096] -> %m0[0, 4096]
    plan.copy update %f1[0, 4096] -> %m1[0, 4096]
    ```
  }];
  let options = [Option<"mostBytes", "most-bytes", "int64_t", "0", "Bytes of them">];
  let statistics = [Statistic<"moved", "moved", "Copies after all updates">];
}

#endif
