//===- Passes.td - live ranges, offsets and waits, in pipeline order -------------------------------===//
#ifndef ZERO_PASSES_PLACE_TD
#define ZERO_PASSES_PLACE_TD
include "mlir/Pass/PassBase.td"

def MarkLifetimesPass : Pass<"plan-mark-lifetimes", "::zero::planir::ProgramOp"> {
  let summary = "In which steps each transient buffer is live";
  let description = [{
    From the first step that touches it to the last, both inclusive, in the program's linear order; buffers nobody touches are removed.

    A step of another lane than `compute` runs while later steps of the order do. What it touches stays live until the first step of
    another lane that needs its result, or until the next step of its own lane, whichever comes first: otherwise compute steps
    would be given bytes that are still being sent, and would have to wait for them.

    ```mlir
    %x = plan.buffer activation "x" bytes 64
    %s = plan.buffer staging "s" bytes 512
    plan.fill compute -> %x[0, 64] : 0                                               // step 0
    plan.collective reduce %x[0, 4] -> %x[0, 4], %s[0, 8] : all_reduce 1 of f32 by 1      // step 1
    plan.fill compute -> %y[0, 64] : 0                                               // step 2
    plan.fill compute -> %x[0, 64] : 2                                               // step 3 needs the result
    // becomes
    %x = plan.buffer activation "x" bytes 64 live 0 to 3
    %s = plan.buffer staging "s" bytes 512 live 1 to 3
    ```
  }];
}

def AssignOffsetsPass : Pass<"plan-assign-offsets", "::mlir::ModuleOp"> {
  let summary = "At which byte of its arena each buffer lies";
  let description = [{
    Persistent buffers lie one after another in the arena "state", in the module's order. The transient buffers of each program share the
    arena "work": a portfolio of greedy solvers (passes/place/offsets.h) places them and the lowest result is kept. The program records its
    `height` and `live`, the largest sum of live bytes, below which no height can be. All offsets are multiples of
    the arena's alignment: 64, or 4096 where a disk transfers it. Each tier has arenas of its own ("state on host", "work on disk").

    What updates work on that run beside the next step's forward (plan-overlap-updates) shares no bytes with that: where these updates wait
    for the norm, only if the arena grows by no more than 2 %, or `device-bytes` has room for it. What is written to disk after all updates
    (plan-defer-writes) is taken to be written while products make `write-work` multiply-adds for each byte, from what forward waits for last
    on.

    What a copy between tiers or a collective begins or ends is placed as if it were live for up to 16 steps more, as far as fewer bytes are
    live than at the fullest step (passes/place/slack.h), so that compute is not given bytes that are still on their way: by the same
    rule, only if the arena has room for it. Then each such buffer goes, below the arena's height or what `device-bytes` allows, to the bytes
    that have rested longest beside it (passes/place/reuse.h), over the end of the step as well, so that fetches need not wait for whoever
    had them before.

    ```mlir
    plan.program step @step {
      %w0 = plan.buffer gathered "w0" bytes 200 live 0 to 1
      %x = plan.buffer activation "x" bytes 100 live 1 to 3
      %w1 = plan.buffer gathered "w1" bytes 200 live 2 to 3
    // becomes
    plan.program step @step height 384 live 300 {
      %w0 = plan.buffer gathered "w0" bytes 200 at 0 live 0 to 1
      %x = plan.buffer activation "x" bytes 100 at 256 live 1 to 3
      %w1 = plan.buffer gathered "w1" bytes 200 at 0 live 2 to 3
    ```
  }];
  let options = [Option<"deviceBytes", "device-bytes", "int64_t", "0", "What the device's arenas may take together, for lanes to run apart">,
                 Option<"writeWork", "write-work", "int64_t", "0", "Multiply-adds while a byte is written to disk; 0: not known">];
  let statistics = [Statistic<"perMille", "excess-per-mille", "Height above the largest sum of live bytes, of the worst program">];
}

def InsertWaitsPass : Pass<"plan-insert-waits", "::mlir::ModuleOp"> {
  let summary = "What each step waits for";
  let description = [{
    Needs: lanes and offsets. For every pair of steps on different lanes that touch a common byte, at least one of them writing, the later
    one in the linear order must start after the earlier one is complete. Waits that follow from lane order or from other waits are left
    out. An address that depends on the rank counts with its bytes on all ranks.

    The same across the boundary of programs, for each pair of them that a run submits one right after the other: a `plan.entry` says what
    the steps of the later one wait for in the earlier one. That the host writes the inputs and reads the results on lane compute counts as
    two more steps of it.

    ```mlir
    plan.collective gather %p[0, 100] -> %w0[0, 200] : all_gather 25 of f32
    plan.copy compute %w0[0, 100] -> %x[0, 100]
    plan.collective gather %p[0, 100] -> %w1[0, 200] : all_gather 25 of f32   // w1 has the bytes of w0
    // becomes
    plan.collective gather %p[0, 100] -> %w0[0, 200] : all_gather 25 of f32
    plan.copy compute waits(gather 1) %w0[0, 100] -> %x[0, 100]
    plan.collective gather waits(compute 1) %p[0, 100] -> %w1[0, 200] : all_gather 25 of f32
    // and for a run of @step after @step, if a second step of compute reads %w1
    plan.entry after @step (0: compute 2)
    ```
  }];
  let statistics = [Statistic<"waits", "waits", "Waits inserted">,
                    Statistic<"entryWaits", "entry-waits", "Waits for ticks of the program before">];
}

def VerifyPass : Pass<"plan-verify", "::mlir::ModuleOp"> {
  let summary = "Check offsets and order without trusting the passes that made them";
  let description = [{
    References lie inside their buffers and buffers inside their arenas; no two live buffers share a byte, and each is live in
    every step that touches it; every conflicting pair of accesses is ordered by lanes and waits; no wait points forward, so none can
    deadlock.
  }];
}
#endif
