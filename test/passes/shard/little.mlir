// Little parameters before and after large ones join them, so that no collective travels for a norm's weight alone.
// RUN: zero-opt %s --zero-partition="world=2 stage=3 bucket-elements=2048" | FileCheck %s
// RUN: zero-opt %s --zero-partition="world=2 stage=3 bucket-elements=1024" | FileCheck %s --check-prefix=HALF
// 2048 / 64 = 32 elements are little: @n before @w, and @m and @o after it, but not @p as well.
// CHECK: zero.bucket @bucket0 {{.*}}offsets = array<i64: 0, 16, 2064, 2080>, parameters = [@n, @w, @m, @o]
// CHECK: zero.bucket @bucket1 {{.*}}parameters = [@p, @q]
// CHECK-NOT: zero.bucket
// 16 elements: @m joins, @o begins a bucket, which the others follow.
// HALF: zero.bucket @bucket0 {{.*}}parameters = [@n, @w, @m]
// HALF: zero.bucket @bucket1 {{.*}}parameters = [@o, @p, @q]
nn.parameter @n : tensor<8xf32> {trainable = true, init = "ones"}
nn.parameter @w : tensor<64x32xf32> {trainable = true, init = "normal", init_std = 2.0e-02 : f32}
nn.parameter @m : tensor<16xf32> {trainable = true, init = "ones"}
nn.parameter @o : tensor<16xf32> {trainable = true, init = "ones"}
nn.parameter @p : tensor<4xf32> {trainable = true, init = "ones"}
nn.parameter @q : tensor<900xf32> {trainable = true, init = "ones"}
func.func @train(%x: tensor<4x64xf32> {nn.name = "x", nn.role = "data"}) -> tensor<f32> {
  %n = nn.get @n : tensor<8xf32>
  %w = nn.get @w : tensor<64x32xf32>
  %m = nn.get @m : tensor<16xf32>
  %o = nn.get @o : tensor<16xf32>
  %p = nn.get @p : tensor<4xf32>
  %q = nn.get @q : tensor<900xf32>
  %loss = nn.reduce sum %q dims [0] : tensor<900xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
