// Gathered in front of all others: what is updated first.
// RUN: zero-opt --pass-pipeline="builtin.module(plan.program(plan-hoist-gathers{ahead=0 early-bytes=1024}))" %s | FileCheck %s --check-prefixes=CHECK,TWO
// RUN: zero-opt --pass-pipeline="builtin.module(plan.program(plan-hoist-gathers{ahead=0 early-bytes=1023}))" %s | FileCheck %s --check-prefixes=CHECK,ONE
// RUN: zero-opt --pass-pipeline="builtin.module(plan.program(plan-hoist-gathers{ahead=0 early-bytes=511}))" %s | FileCheck %s --check-prefix=NONE
// RUN: zero-opt --pass-pipeline="builtin.module(plan.program(plan-hoist-gathers{ahead=0 early-bytes=99999}))" %s | FileCheck %s --check-prefixes=CHECK,TWO
module attributes {zero.world = 2 : i64} {
  plan.state parameter @b0.parameter bytes 256 {bucket = @b0, tensor = #zero.tensor<master f32 shard on device>}
  plan.state parameter @b1.parameter bytes 256 {bucket = @b1, tensor = #zero.tensor<master f32 shard on device>}
  plan.state parameter @b2.parameter bytes 256 {bucket = @b2, tensor = #zero.tensor<master f32 shard on device>}
  plan.state parameter @b3.parameter bytes 256 {bucket = @b3, tensor = #zero.tensor<master f32 shard on device>}
  // b0 is what forward begins with, b3 is never written, the second gather of b1 comes after its update, and of b2 one in front is enough.
  // TWO: plan.collective gather %b2.parameter{{.*}} -> %w2[
  // TWO-NEXT: plan.collective gather %b1.parameter{{.*}} -> %w1[
  // ONE: plan.collective gather %b2.parameter{{.*}} -> %w2[
  // CHECK-NEXT: plan.collective gather %b0.parameter{{.*}} -> %w0[
  // CHECK-NEXT: plan.copy compute %w0[
  // ONE-NEXT: plan.collective gather %b1.parameter{{.*}} -> %w1[
  // ONE-NEXT: plan.copy compute %w1[
  // CHECK-NEXT: plan.collective gather %b3.parameter{{.*}} -> %w3[
  // TWO-NEXT: plan.copy compute %w1[
  // CHECK-NEXT: plan.copy compute %w3[
  // CHECK-NEXT: plan.collective gather %b2.parameter{{.*}} -> %w5[
  // CHECK-NEXT: plan.copy compute %w2[
  // CHECK-NEXT: plan.copy compute %w5[
  // CHECK-NEXT: plan.copy compute %x[{{.*}} -> %b2.parameter
  // CHECK-NEXT: plan.copy compute %x[{{.*}} -> %b1.parameter
  // CHECK-NEXT: plan.collective gather %b1.parameter{{.*}} -> %w4[
  // CHECK-NEXT: plan.copy compute %x[{{.*}} -> %b0.parameter
  // CHECK: plan.decision "b2" : "gathered in front of all others" because "its update is among the first: it can come beside the rest of the step before, for which --early-bytes has room"
  // TWO-NEXT: plan.decision "b1" : "gathered in front of all others"
  // ONE-NOT: in front of all others
  // NONE-NOT: in front of all others
  plan.program step @step {
    %p0 = plan.use @b0.parameter
    %p1 = plan.use @b1.parameter
    %p2 = plan.use @b2.parameter
    %p3 = plan.use @b3.parameter
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
    plan.collective gather %p3[0, 256] -> %w3[0, 512] : all_gather 64 of f32
    plan.copy compute %w3[0, 64] -> %x[0, 64]
    plan.collective gather %p2[0, 256] -> %w2[0, 512] : all_gather 64 of f32
    plan.copy compute %w2[0, 64] -> %x[0, 64]
    plan.collective gather %p2[0, 256] -> %w5[0, 512] : all_gather 64 of f32
    plan.copy compute %w5[0, 64] -> %x[0, 64]
    plan.copy compute %x[0, 64] -> %p2[0, 64]      // stands for the update, as the next ones do
    plan.copy compute %x[0, 64] -> %p1[0, 64]
    plan.copy compute %x[0, 64] -> %p0[0, 64]
    plan.collective gather %p1[0, 256] -> %w4[0, 512] : all_gather 64 of f32
    plan.copy compute %w4[0, 64] -> %x[0, 64]
    plan.return
  }
}
