// A table larger than a bucket is alone, so that a norm after it, which backward reads again, does not bring it along; a small one is not.
// RUN: zero-opt %s --zero-partition="world=2 stage=3 bucket-elements=1024" | FileCheck %s
// RUN: zero-opt %s --zero-partition="world=2 stage=3 bucket-elements=8192" | FileCheck %s --check-prefix=SMALL
// CHECK: zero.bucket @bucket0 {{.*}}parameters = [@norm, @rows]
// CHECK: zero.bucket @bucket1 {{.*}}parameters = [@words]
// CHECK: zero.bucket @bucket2 {{.*}}parameters = [@places]
// SMALL: zero.bucket @bucket0 {{.*}}parameters = [@words, @places, @norm, @rows]
nn.parameter @words : tensor<64x32xf32> {trainable = true, init = "normal", init_std = 2.0e-02 : f32}
nn.parameter @places : tensor<40x32xf32> {trainable = true, init = "normal", init_std = 2.0e-02 : f32}
nn.parameter @norm : tensor<8xf32> {trainable = true, init = "ones"}
nn.parameter @rows : tensor<16x32xf32> {trainable = true, init = "normal", init_std = 2.0e-02 : f32}
func.func private @look_up(%table: tensor<40x32xf32>, %at: tensor<4xi64>) -> tensor<4x32xf32> attributes {nn.kernel} {
  %0 = nn.gather %table, %at : tensor<40x32xf32>, tensor<4xi64> -> tensor<4x32xf32>
  return %0 : tensor<4x32xf32>
}
func.func @train(%at: tensor<4xi64> {nn.name = "at", nn.role = "data"}) -> tensor<f32> {
  %words = nn.get @words : tensor<64x32xf32>
  %0 = nn.gather %words, %at : tensor<64x32xf32>, tensor<4xi64> -> tensor<4x32xf32>
  %places = nn.get @places : tensor<40x32xf32>
  %1 = nn.launch @look_up(%places, %at) : (tensor<40x32xf32>, tensor<4xi64>) -> tensor<4x32xf32>
  %norm = nn.get @norm : tensor<8xf32>
  %rows = nn.get @rows : tensor<16x32xf32>
  %loss = nn.reduce sum %norm dims [0] : tensor<8xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
