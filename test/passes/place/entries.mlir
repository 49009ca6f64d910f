// Which programs follow each other with lanes running on, and what waits for what there; that what is printed is read again.
// RUN: zero-opt --zero-place-pipeline %s | FileCheck %s
// RUN: zero-opt --zero-place-pipeline %s | zero-opt | FileCheck %s
// RUN: zero-opt --zero-place-pipeline %s | zero-opt --plan-insert-waits | FileCheck %s
module attributes {zero.world = 1 : i64} {
  plan.state parameter @p bytes 64 {bucket = @b, tensor = #zero.tensor<master f32 whole on disk>}
  plan.state scalar @loss bytes 4
  plan.state input @x bytes 64 {input = "x", role = "data", type = tensor<16xf32>}
  // The first micro-step follows the last of the step before: its fetch reads what that has written back, and by then compute, which has
  // waited for the copy that was there before, is done with it. The fetch reuses bytes that are written back.
  // CHECK-LABEL: plan.program first @first
  // CHECK-NEXT: plan.entry after @last (0: disk_write 1)
  // CHECK-NOT: plan.entry
  plan.program first @first {
    %p = plan.use @p
    %loss = plan.use @loss
    %w = plan.buffer fetched "w" bytes 64
    plan.copy disk_read %p[0, 64] -> %w[0, 64]
    plan.copy compute %w[0, 4] -> %loss[0, 4]
    plan.return %loss[0, 4]
  }
  // A middle one follows the first or itself: nothing was written, but the bytes are those that compute still reads.
  // CHECK-LABEL: plan.program middle @middle
  // CHECK-NEXT: plan.entry after @middle (0: compute 1)
  // CHECK-NEXT: plan.entry after @first (0: compute 1)
  // CHECK-NOT: plan.entry
  plan.program middle @middle {
    %p = plan.use @p
    %loss = plan.use @loss
    %w = plan.buffer fetched "w" bytes 64
    plan.copy disk_read %p[0, 64] -> %w[0, 64]
    plan.copy compute %w[0, 4] -> %loss[0, 4]
    plan.return %loss[0, 4]
  }
  // The last follows a middle one. Its results come from another lane, so reading them waits; who reads an input beside compute waits for
  // its writing.
  // CHECK-LABEL: plan.program last @last
  // CHECK-NEXT: plan.entry after @middle (1: compute 1)
  // CHECK-NOT: plan.entry
  // CHECK: plan.copy update waits(compute 0)
  // CHECK: plan.return waits(update 1)
  plan.program last @last {
    %p = plan.use @p
    %x = plan.use @x
    %loss = plan.use @loss
    %w = plan.buffer fetched "w" bytes 64
    plan.copy update %x[0, 4] -> %loss[0, 4]
    plan.copy disk_read %p[0, 64] -> %w[0, 64]
    plan.fill compute -> %w[0, 64] : 0
    plan.copy disk_write %w[0, 64] -> %p[0, 64]
    plan.return %loss[0, 4]
  }
  // Evaluation follows itself alone. Before the inputs are written compute has read the results, and has waited for who reads inputs.
  // CHECK-LABEL: plan.program eval @eval
  // CHECK-NEXT: plan.entry after @eval ()
  // CHECK-NOT: plan.entry
  plan.program eval @eval {
    %x = plan.use @x
    %loss = plan.use @loss
    plan.copy update %x[0, 4] -> %loss[0, 4]
    plan.return %loss[0, 4]
  }
}
