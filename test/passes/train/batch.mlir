// Which inputs begin with the batch, and what dropout covers.
// RUN: zero-opt %s --split-input-file --nn-add-loss=loss=mse | FileCheck %s
// RUN: zero-opt %s --split-input-file --nn-add-loss=loss=output:mean | FileCheck %s --check-prefix=OWN

// By sizes: the output's first dimension is the batch. Dropout of what depends on no sample covers none.
// CHECK-LABEL: func.func @train(
// CHECK-SAME: %[[POS:[a-z0-9]+]]: tensor<1x8xf32> {nn.name = "pos", nn.role = "shared"}
// CHECK-SAME: tensor<4x8xf32> {nn.name = "x", nn.role = "data"}
// CHECK-SAME: tensor<f32> {nn.name = "k", nn.role = "shared"}
// CHECK-SAME: tensor<8x8xf32> {nn.name = "mask", nn.role = "shared"}
// CHECK: nn.dropout %[[POS]], {{.*}} samples = 0 : i64}
// CHECK: nn.dropout {{.*}} samples = 4 : i64}
// OWN-LABEL: func.func @train(
// OWN-SAME: nn.name = "pos", nn.role = "shared"
// OWN-SAME: nn.name = "x", nn.role = "data"
// OWN-SAME: nn.name = "k", nn.role = "shared"
// OWN-SAME: nn.name = "mask", nn.role = "shared"
func.func @forward(%pos: tensor<1x8xf32> {nn.name = "pos"}, %x: tensor<4x8xf32> {nn.name = "x"}, %k: tensor<f32> {nn.name = "k"},
                   %mask: tensor<8x8xf32> {nn.name = "mask"}, %y: tensor<4x3xf32> {nn.name = "y"},
                   %seed: tensor<2xi64> {nn.name = "seed", nn.role = "seed"})
    -> (tensor<4x8xf32> {nn.name = "out"}, tensor<f32> {nn.name = "mean"}) {
  %p = nn.dropout %pos, %seed {rate = 0.1 : f32, id = 0 : i64, samples = 1 : i64} : tensor<1x8xf32>, tensor<2xi64>
  %r = nn.reshape %p : tensor<1x8xf32> -> tensor<8xf32>
  %b = nn.broadcast %r dims [1] : tensor<8xf32> -> tensor<4x8xf32>
  %m = nn.matmul %x, %mask : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %s = nn.add %b, %m : tensor<4x8xf32>
  %d = nn.dropout %s, %seed {rate = 0.1 : f32, id = 1 : i64, samples = 1 : i64} : tensor<4x8xf32>, tensor<2xi64>
  %mean = nn.reduce sum %d dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return %d, %mean : tensor<4x8xf32>, tensor<f32>
}

// -----

// Symbols tell what sizes do not: batch and sequence are 4, the batch is also what the fixed 1 is not.
// CHECK-LABEL: func.func @train(
// CHECK-SAME: tensor<4x4xf32> {nn.name = "mask", nn.role = "shared"}
// CHECK-SAME: tensor<4x4xf32> {nn.name = "x", nn.role = "data"}
// CHECK-SAME: tensor<4xf32> {nn.name = "weight", nn.role = "data"}
// OWN-LABEL: func.func @train(
// OWN-SAME: nn.name = "mask", nn.role = "shared"
// OWN-SAME: nn.name = "x", nn.role = "data"
func.func @forward(%mask: tensor<4x4xf32> {nn.name = "mask", nn.symbols = ["seq", "seq"]}, %x: tensor<4x4xf32> {nn.name = "x", nn.symbols = ["batch", "seq"]},
                   %weight: tensor<4xf32> {nn.name = "weight", nn.symbols = ["other"]})
    -> (tensor<4x4xf32> {nn.name = "out"}, tensor<f32> {nn.name = "mean"}) {
  %m = nn.matmul %x, %mask : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %mean = nn.reduce sum %m dims [0, 1] : tensor<4x4xf32> -> tensor<f32>
  return %m, %mean : tensor<4x4xf32>, tensor<f32>
}

// -----

// A batch of one is not the fixed 1 of what is shared.
// CHECK-LABEL: func.func @train(
// CHECK-SAME: tensor<1x8xf32> {nn.name = "pos", nn.role = "shared"}
// CHECK-SAME: tensor<1x8xf32> {nn.name = "x", nn.role = "data"}
// OWN-LABEL: func.func @train(
// OWN-SAME: nn.name = "pos", nn.role = "shared"
// OWN-SAME: nn.name = "x", nn.role = "data"
func.func @forward(%pos: tensor<1x8xf32> {nn.name = "pos", nn.symbols = ["", "seq"]}, %x: tensor<1x8xf32> {nn.name = "x", nn.symbols = ["batch", "seq"]})
    -> (tensor<1x8xf32> {nn.name = "out"}, tensor<f32> {nn.name = "mean"}) {
  %s = nn.add %pos, %x : tensor<1x8xf32>
  %mean = nn.reduce sum %s dims [0, 1] : tensor<1x8xf32> -> tensor<f32>
  return %s, %mean : tensor<1x8xf32>, tensor<f32>
}

// -----

// A graph of n nodes, each a sample: symbols that leave nothing are not believed.
// CHECK-LABEL: func.func @train(
// CHECK-SAME: nn.name = "edges", nn.role = "data"
// CHECK-SAME: nn.name = "x", nn.role = "data"
func.func @forward(%edges: tensor<8x8xf32> {nn.name = "edges", nn.symbols = ["n", "n"]}, %x: tensor<8x3xf32> {nn.name = "x", nn.symbols = ["n", ""]})
    -> (tensor<8x3xf32> {nn.name = "out"}, tensor<f32> {nn.name = "mean"}) {
  %s = nn.matmul %edges, %x : (tensor<8x8xf32>, tensor<8x3xf32>) -> tensor<8x3xf32>
  %mean = nn.reduce sum %s dims [0, 1] : tensor<8x3xf32> -> tensor<f32>
  return %s, %mean : tensor<8x3xf32>, tensor<f32>
}

// -----

// What the model has flattened to rows of places is taken apart again: the labels have a place for each.
// CHECK-LABEL: func.func @train(
// CHECK-SAME: tensor<4x2x6xf32> {nn.name = "x", nn.role = "data"}
// CHECK-SAME: tensor<4x2x5xf32> {nn.name = "labels", nn.role = "labels"}
// CHECK: nn.reshape {{.*}} : tensor<8x5xf32> -> tensor<4x2x5xf32>
func.func @forward(%x: tensor<4x2x6xf32> {nn.name = "x"}, %w: tensor<6x5xf32> {nn.name = "w"}, %b: tensor<5xf32> {nn.name = "b"})
    -> (tensor<8x5xf32> {nn.name = "out"}, tensor<f32> {nn.name = "mean"}) {
  %r = nn.reshape %x : tensor<4x2x6xf32> -> tensor<8x6xf32>
  %m = nn.matmul %r, %w : (tensor<8x6xf32>, tensor<6x5xf32>) -> tensor<8x5xf32>
  %bias = nn.broadcast %b dims [1] : tensor<5xf32> -> tensor<8x5xf32>
  %s = nn.add %bias, %m : tensor<8x5xf32>
  %mean = nn.reduce sum %s dims [0, 1] : tensor<8x5xf32> -> tensor<f32>
  return %s, %mean : tensor<8x5xf32>, tensor<f32>
}
