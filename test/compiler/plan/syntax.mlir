// Every operation of the plan dialect, written and read again; and what its verifiers refuse.
// RUN: zero-opt %s | zero-opt | FileCheck %s
module attributes {zero.world = 2 : i64} {
  // CHECK: plan.state input @input.tokens bytes 64 at 0 {input = "tokens", limit = 50257 : i64, role = "data", type = tensor<8xi64>}
  plan.state input @input.tokens bytes 64 at 0 {input = "tokens", limit = 50257 : i64, role = "data", type = tensor<8xi64>}
  // CHECK: plan.state constant @c bytes 8 {value = dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>}
  plan.state constant @c bytes 8 {value = dense<[1.0, 2.0]> : tensor<2xf32>}
  // CHECK: plan.program last clips @last height 1024 live 1000 {
  plan.program last clips @last height 1024 live 1000 {
    // CHECK: %c = plan.use @c
    %c = plan.use @c
    // CHECK: %h.0.mlp = plan.buffer activation "h.0/mlp" bytes 1024 at 0 live 0 to 8
    %x = plan.buffer activation "h.0/mlp" bytes 1024 at 0 live 0 to 8
    // CHECK: plan.decision "b0" : "gathered 3 steps early" because "there is room"
    plan.decision "b0" : "gathered 3 steps early" because "there is room"
    // CHECK: plan.launch compute waits(gather 3, reduce 1) %c[0, 8] -> %h.0.mlp[0, 64], %h.0.mlp[64, 64] : @k
    plan.launch compute waits(gather 3, reduce 1) %c[0, 8] -> %x[0, 64], %x[64, 64] : @k
    // CHECK: plan.matmul compute {{.*}} : 2 x 3 x 4 of f32 to f32 ld [4, 3, 3] batch 5 [8, 0, 6] {accumulate, transpose_b}
    plan.matmul compute %x[0, 160], %x[160, 48], %x[256, 120] -> %x[256, 120] : 2 x 3 x 4 of f32 to f32 ld [4, 3, 3] batch 5 [8, 0, 6] {accumulate, transpose_b}
    // CHECK: plan.attention compute {{.*}} : [1, 2, 2, 4, 4, 2] of f32 scale 0.707106769 {causal}
    plan.attention compute %x[0, 64], %x[64, 64], %x[128, 64] -> %x[192, 64], %x[256, 32] : [1, 2, 2, 4, 4, 2] of f32 scale 0.707106769 {causal}
    // CHECK: plan.attention_grad compute {{.*}} : [1, 2, 2, 4, 4, 2] of f32 scale 1.000000e+00 {bias_parts = 1 : i64, mask_shape = array<i64: 1, 1, 4, 4>}
    plan.attention_grad compute %x[0, 64], %x[64, 64], %x[128, 64], %x[192, 64], %x[640, 128], %x[256, 64], %x[320, 32], %x[384, 64] -> %x[448, 64], %x[512, 64], %x[576, 64], %x[768, 128] : [1, 2, 2, 4, 4, 2] of f32 scale 1.0 {mask_shape = array<i64: 1, 1, 4, 4>, bias_parts = 1 : i64}
    // CHECK: plan.collective reduce %h.0.mlp[0, 128] -> %h.0.mlp[0 + rank * 64, 64], %h.0.mlp[128, 128] : reduce_scatter 16 of f32 by 16
    plan.collective reduce %x[0, 128] -> %x[0 + rank * 64, 64], %x[128, 128] : reduce_scatter 16 of f32 by 16
    // CHECK: plan.copy compute %c[0, 8] -> %h.0.mlp[8, 8]
    plan.copy compute %c[0, 8] -> %x[8, 8]
    // CHECK: plan.fill compute -> %h.0.mlp[0, 64] : 1065353216
    plan.fill compute -> %x[0, 64] : 1065353216
    // CHECK: plan.update update %h.0.mlp[0, 64], %h.0.mlp[64, 64] -> %h.0.mlp[0, 64] : @b0 @adamw of f32 whole
    plan.update update %x[0, 64], %x[64, 64] -> %x[0, 64] : @b0 @adamw of f32 whole
    // CHECK: plan.return %h.0.mlp[0, 4], %h.0.mlp[4, 4]
    plan.return %x[0, 4], %x[4, 4]
  }
}
