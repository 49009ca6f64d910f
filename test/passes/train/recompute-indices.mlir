// RUN: zero-opt %s --nn-recompute=min-bytes=0 | FileCheck %s

// The indices of a lookup, as many integers as an input has, are those of its gradient; where they are no more than that is made again, as
// are other integers.
// CHECK-LABEL: func.func @train(
// CHECK: %[[I:.*]] = nn.select {{.*}} : tensor<4xi1>, tensor<4xi64>
// CHECK: nn.gather %{{.*}}, %[[I]]
// CHECK: nn.reduce sum
// CHECK-NOT: nn.select
// CHECK: nn.broadcast %[[I]] dims [0] : tensor<4xi64> -> tensor<4x4xi64>
// CHECK: nn.scatter_add %[[I]]
nn.parameter @t : tensor<8x4xf32> {trainable = true}
func.func @train(%ids: tensor<4xi64>) -> tensor<f32> {
  %t = nn.get @t : tensor<8x4xf32>
  %none = nn.constant dense<0> : tensor<4xi64>
  %valid = nn.compare ge %ids, %none : tensor<4xi64> -> tensor<4xi1>
  %indices = nn.select %valid, %ids, %none : tensor<4xi1>, tensor<4xi64>
  %many = nn.broadcast %indices dims [0] : tensor<4xi64> -> tensor<4x4xi64>
  %rows = nn.gather %t, %indices : tensor<8x4xf32>, tensor<4xi64> -> tensor<4x4xf32>
  %scale = nn.cast %many : tensor<4x4xi64> -> tensor<4x4xf32>
  %y = nn.mul %rows, %scale : tensor<4x4xf32>
  %loss = nn.reduce sum %y dims [0, 1] : tensor<4x4xf32> -> tensor<f32>
  %again = nn.cast %many : tensor<4x4xi64> -> tensor<4x4xf32>
  %d = nn.scatter_add %indices, %again : tensor<4xi64>, tensor<4x4xf32> -> tensor<8x4xf32>
  nn.gradient @t, %d : tensor<8x4xf32>
  return %loss : tensor<f32>
}
