// Which second gathers of a bucket are spared, and which are not.
// RUN: zero-opt --split-input-file --pass-pipeline="builtin.module(plan.program(plan-elide-gathers{resident-bytes=512}))" %s | FileCheck %s

// Two programs of one module. Three gathers in a row become one; a bucket whose shard has been written since is gathered anew.
module attributes {zero.world = 2 : i64} {
  plan.state parameter @b0.parameter bytes 256 {bucket = @b0, tensor = #zero.tensor<master f32 shard on device>}
  // CHECK-LABEL: plan.program step @three
  // CHECK: plan.collective gather {{.*}} -> %w0
  // CHECK-NEXT: plan.copy compute %w0
  // CHECK-NEXT: plan.copy compute %w0
  // CHECK-NEXT: plan.copy compute %w0
  plan.program step @three {
    %p = plan.use @b0.parameter
    %w0 = plan.buffer gathered "w0" bytes 512
    %w1 = plan.buffer gathered "w1" bytes 512
    %w2 = plan.buffer gathered "w2" bytes 512
    %x = plan.buffer activation "x" bytes 64
    plan.collective gather %p[0, 256] -> %w0[0, 512] : all_gather 64 of f32
    plan.copy compute %w0[0, 64] -> %x[0, 64]
    plan.collective gather %p[0, 256] -> %w1[0, 512] : all_gather 64 of f32
    plan.copy compute %w1[0, 64] -> %x[0, 64]
    plan.collective gather %p[0, 256] -> %w2[0, 512] : all_gather 64 of f32
    plan.copy compute %w2[0, 64] -> %x[0, 64]
    plan.return %x[0, 4]
  }
  // CHECK-LABEL: plan.program last @written
  // CHECK-COUNT-2: plan.collective gather
  // CHECK-NOT: plan.decision
  plan.program last @written {
    %p = plan.use @b0.parameter
    %w0 = plan.buffer gathered "w0" bytes 512
    %w1 = plan.buffer gathered "w1" bytes 512
    %x = plan.buffer activation "x" bytes 64
    plan.collective gather %p[0, 256] -> %w0[0, 512] : all_gather 64 of f32
    plan.copy compute %w0[0, 64] -> %p[0, 64]
    plan.collective gather %p[0, 256] -> %w1[0, 512] : all_gather 64 of f32
    plan.copy compute %w1[0, 64] -> %x[0, 64]
    plan.return %x[0, 4]
  }
}

// -----

// Forward and backward over three buckets with room for one: the one that is needed again soonest, and no second beside it.
module attributes {zero.world = 2 : i64} {
  plan.state parameter @b0.parameter bytes 256 {bucket = @b0, tensor = #zero.tensor<master f32 shard on device>}
  plan.state parameter @b1.parameter bytes 256 {bucket = @b1, tensor = #zero.tensor<master f32 shard on device>}
  plan.state parameter @b2.parameter bytes 256 {bucket = @b2, tensor = #zero.tensor<master f32 shard on device>}
  // CHECK-LABEL: plan.program step @nested
  // CHECK: plan.decision "b2" : "kept until it is needed again"
  // CHECK-NEXT: plan.decision "b1" : "kept until it is needed again"
  // CHECK-NEXT: plan.return
  plan.program step @nested {
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
    plan.collective gather %p1[0, 256] -> %w4[0, 512] : all_gather 64 of f32
    plan.copy compute %w4[0, 64] -> %x[0, 64]
    plan.collective gather %p0[0, 256] -> %w5[0, 512] : all_gather 64 of f32
    plan.copy compute %w5[0, 64] -> %x[0, 64]
    plan.return %x[0, 4]
  }
}

// -----

// Two buckets whose last uses are one step: the second would be kept beside the first from that step on.
module attributes {zero.world = 2 : i64} {
  plan.state parameter @b0.parameter bytes 256 {bucket = @b0, tensor = #zero.tensor<master f32 shard on device>}
  plan.state parameter @b1.parameter bytes 256 {bucket = @b1, tensor = #zero.tensor<master f32 shard on device>}
  plan.state parameter @b2.parameter bytes 256 {bucket = @b2, tensor = #zero.tensor<master f32 shard on device>}
  // CHECK-LABEL: plan.program step @together
  // CHECK: plan.decision "b0" : "kept until it is needed again"
  // CHECK-NEXT: plan.return
  plan.program step @together {
    %p0 = plan.use @b0.parameter
    %p1 = plan.use @b1.parameter
    %p2 = plan.use @b2.parameter
    %w0 = plan.buffer gathered "w0" bytes 512
    %w1 = plan.buffer gathered "w1" bytes 512
    %w2 = plan.buffer gathered "w2" bytes 512
    %w3 = plan.buffer gathered "w3" bytes 512
    %w4 = plan.buffer gathered "w4" bytes 512
    %x = plan.buffer activation "x" bytes 64
    plan.collective gather %p0[0, 256] -> %w0[0, 512] : all_gather 64 of f32
    plan.collective gather %p1[0, 256] -> %w1[0, 512] : all_gather 64 of f32
    plan.launch compute %w0[0, 64], %w1[0, 64] -> %x[0, 64] : @k
    plan.collective gather %p2[0, 256] -> %w2[0, 512] : all_gather 64 of f32
    plan.copy compute %w2[0, 64] -> %x[0, 64]
    plan.collective gather %p0[0, 256] -> %w3[0, 512] : all_gather 64 of f32
    plan.collective gather %p1[0, 256] -> %w4[0, 512] : all_gather 64 of f32
    plan.launch compute %w3[0, 64], %w4[0, 64] -> %x[0, 64] : @k
    plan.return %x[0, 4]
  }
}
