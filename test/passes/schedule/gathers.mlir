// Three buckets forward and backward.
// RUN: zero-opt --pass-pipeline="builtin.module(plan.program(plan-elide-gathers))" %s | FileCheck %s --check-prefix=ELIDE
// RUN: zero-opt --pass-pipeline="builtin.module(plan.program(plan-elide-gathers{resident-bytes=512}))" %s | FileCheck %s --check-prefix=RESIDENT
// RUN: zero-opt --pass-pipeline="builtin.module(plan.program(plan-hoist-gathers{ahead=1}))" %s | FileCheck %s --check-prefixes=ORDER,AHEAD1
// RUN: zero-opt --pass-pipeline="builtin.module(plan.program(plan-hoist-gathers{gather-bytes=1024}))" %s | FileCheck %s --check-prefixes=ORDER,BYTES
// RUN: zero-opt --pass-pipeline="builtin.module(plan.program(plan-hoist-gathers{ahead=5}))" %s | FileCheck %s --check-prefix=FAR
// RUN: zero-opt --pass-pipeline="builtin.module(plan.program(plan-hoist-gathers{gather-bytes=512}))" %s | FileCheck %s --check-prefix=NONE
module attributes {zero.world = 2 : i64} {
  plan.state parameter @b0.parameter bytes 256 {bucket = @b0, tensor = #zero.tensor<master f32 shard on device>}
  plan.state parameter @b1.parameter bytes 256 {bucket = @b1, tensor = #zero.tensor<master f32 shard on device>}
  plan.state parameter @b2.parameter bytes 256 {bucket = @b2, tensor = #zero.tensor<master f32 shard on device>}
  // The last bucket of forward is the first of backward: its second gather goes, nothing else is worth any memory.
  // ELIDE-COUNT-5: plan.collective
  // ELIDE-NOT: plan.collective
  // ELIDE: plan.decision "b2" : "kept until it is needed again" because "no other bucket is gathered in between"

  // 512 bytes keep one more, the one that is needed again soonest.
  // RESIDENT-COUNT-4: plan.collective
  // RESIDENT-NOT: plan.collective
  // RESIDENT: plan.decision "b1" : "kept until it is needed again" because "512 bytes fit into --resident-bytes"

  // While one bucket is used, the next may come; never three at once.
  // ORDER: plan.collective gather %b0.parameter{{.*}} -> %w0[
  // ORDER-NEXT: plan.collective gather %b1.parameter{{.*}} -> %w1[
  // ORDER-NEXT: plan.copy compute %w0[
  // ORDER-NEXT: plan.collective gather %b2.parameter{{.*}} -> %w2[
  // ORDER-NEXT: plan.copy compute %w1[
  // ORDER-NEXT: plan.collective gather %b2.parameter{{.*}} -> %w3[
  // ORDER-NEXT: plan.copy compute %w2[
  // ORDER-NEXT: plan.collective gather %b1.parameter{{.*}} -> %w4[
  // ORDER-NEXT: plan.copy compute %w3[
  // ORDER-NEXT: plan.copy compute %w3[0, 64] -> %b0.parameter
  // What is gathered must have been written.
  // ORDER-NEXT: plan.collective gather %b0.parameter{{.*}} -> %w5[
  // ORDER-NEXT: plan.copy compute %w4[
  // ORDER-NEXT: plan.copy compute %w5[
  // AHEAD1-NEXT: plan.decision "b1" : "gathered 1 step early" because "at most 1 other bucket is whole from step 0 on"
  // BYTES-NEXT: plan.decision "b1" : "gathered 1 step early" because "there is room in --gather-bytes from step 0 on"

  // However much room there is, a bucket is not gathered before its shard is written.
  // FAR: plan.copy compute %w3[0, 64] -> %b0.parameter
  // FAR-NEXT: plan.collective gather %b0.parameter{{.*}} -> %w5[

  // Room for one bucket: all gathers stay.
  // NONE: plan.collective gather %b0.parameter
  // NONE-NEXT: plan.copy
  // NONE-NOT: plan.decision
  plan.program step @step {
    %p0 = plan.use @b0.parameter
    %p1 = plan.use @b1.parameter
    %p2 = plan.use @b2.parameter
    %w0 = plan.buffer gathered "w0" bytes 512
    %w1 = plan.buffer gathered "w1" bytes 512
    %w2 = plan.buffer gathered "w2" bytes 512
    %w3 = plan.buffer gathered "w3" bytes 512
    %w4 = plan.buffer gathered "w4" bytes 512
    %w5 = plan.buffer gathered "w5" bytes 512
    %x = plan.buffer activation "x" bytes 64
    plan.collective gather %p0[0, 256] -> %w0[0, 512] : all_gather 64 of f32
    plan.copy compute %w0[0, 64] -> %x[0, 64]
    plan.collective gather %p1[0, 256] -> %w1[0, 512] : all_gather 64 of f32
    plan.copy compute %w1[0, 64] -> %x[0, 64]
    plan.collective gather %p2[0, 256] -> %w2[0, 512] : all_gather 64 of f32
    plan.copy compute %w2[0, 64] -> %x[0, 64]
    plan.collective gather %p2[0, 256] -> %w3[0, 512] : all_gather 64 of f32
    plan.copy compute %w3[0, 64] -> %x[0, 64]
    plan.copy compute %w3[0, 64] -> %p0[0, 64]
    plan.collective gather %p1[0, 256] -> %w4[0, 512] : all_gather 64 of f32
    plan.copy compute %w4[0, 64] -> %x[0, 64]
    plan.collective gather %p0[0, 256] -> %w5[0, 512] : all_gather 64 of f32
    plan.copy compute %w5[0, 64] -> %x[0, 64]
    plan.return %x[0, 4]
  }
}
