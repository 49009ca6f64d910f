// In evaluation a number that is drawn to keep or to drop a sample is the probability of keeping it; other noise is drawn as in training.
// RUN: zero-opt %s --split-input-file --nn-add-loss=loss=output:loss --canonicalize | FileCheck %s

// CHECK-LABEL: func.func @train(
// CHECK: nn.noise
// CHECK: nn.compare lt
// CHECK-LABEL: func.func @eval(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<2xf32>
// CHECK-NOT: nn.noise
// CHECK: %[[KEEP:.*]] = nn.constant dense<8.000000e-01>
// CHECK-NOT: nn.noise
// CHECK: nn.div %{{.*}}, %[[KEEP]]
nn.parameter @w : tensor<2xf32> {trainable = true}
func.func @forward(%x: tensor<2xf32> {nn.name = "x"}, %seed: tensor<2xi64> {nn.name = "seed", nn.role = "seed"})
    -> (tensor<f32> {nn.name = "loss"}) {
  %w = nn.get @w : tensor<2xf32>
  %keep = nn.constant dense<0.8> : tensor<2xf32>
  %u = nn.noise %x, %seed {normal = false, id = 0 : i64, samples = 2 : i64} : tensor<2xf32>, tensor<2xi64>
  %kept = nn.compare lt %u, %keep : tensor<2xf32> -> tensor<2xi1>
  %mask = nn.cast %kept : tensor<2xi1> -> tensor<2xf32>
  %scaled = nn.div %mask, %keep : tensor<2xf32>
  %y = nn.mul %w, %scaled : tensor<2xf32>
  %loss = nn.reduce sum %y dims [0] : tensor<2xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// The same written as a floor.
// CHECK-LABEL: func.func @eval(
// CHECK-NOT: nn.noise
// CHECK-NOT: nn.floor
// CHECK: return
nn.parameter @w : tensor<2xf32> {trainable = true}
func.func @forward(%x: tensor<2xf32> {nn.name = "x"}, %seed: tensor<2xi64> {nn.name = "seed", nn.role = "seed"})
    -> (tensor<f32> {nn.name = "loss"}) {
  %w = nn.get @w : tensor<2xf32>
  %keep = nn.constant dense<0.8> : tensor<2xf32>
  %u = nn.noise %x, %seed {normal = false, id = 0 : i64, samples = 2 : i64} : tensor<2xf32>, tensor<2xi64>
  %sum = nn.add %keep, %u : tensor<2xf32>
  %mask = nn.floor %sum : tensor<2xf32>
  %y = nn.mul %w, %mask : tensor<2xf32>
  %loss = nn.reduce sum %y dims [0] : tensor<2xf32> -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// CHECK-LABEL: func.func @eval(
// CHECK: nn.noise %{{.*}}normal = true
nn.parameter @w : tensor<2xf32> {trainable = true}
func.func @forward(%x: tensor<2xf32> {nn.name = "x"}, %seed: tensor<2xi64> {nn.name = "seed", nn.role = "seed"})
    -> (tensor<f32> {nn.name = "loss"}) {
  %w = nn.get @w : tensor<2xf32>
  %u = nn.noise %x, %seed {normal = true, id = 0 : i64, samples = 2 : i64} : tensor<2xf32>, tensor<2xi64>
  %y = nn.mul %w, %u : tensor<2xf32>
  %loss = nn.reduce sum %y dims [0] : tensor<2xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
