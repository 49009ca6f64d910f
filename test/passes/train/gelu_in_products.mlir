// Products take GELU in its tanh form and multiply by its slope.
// RUN: zero-opt %s --nn-gelu-in-products | FileCheck %s
// RUN: zero-opt %s --nn-evaluate="function=forward digits=4" -o /dev/null > %t.apart
// RUN: zero-opt %s --nn-gelu-in-products --nn-evaluate="function=forward digits=4" -o /dev/null > %t.together
// RUN: diff %t.apart %t.together && FileCheck %s --check-prefix=VALUES < %t.together
// VALUES-COUNT-2: tensor<

nn.parameter @w : tensor<4x8xf32> {trainable = true}
nn.parameter @b : tensor<8xf32> {trainable = true}
nn.parameter @v : tensor<8x4xf32> {trainable = true}

// The sum is computed once, for whoever reads it, and views go their way.
// CHECK-LABEL: func.func @forward(
// CHECK-SAME: %[[X:.*]]: tensor<2x3x4xf32>, %[[W:.*]]: tensor<8x4xf32>, %[[B:.*]]: tensor<8xf32>, %[[D:.*]]: tensor<6x4xf32>, %[[V:.*]]: tensor<8x4xf32>
// CHECK-NEXT: %[[XV:.*]] = nn.reshape %[[X]]
// CHECK-NEXT: %[[Y:.*]], %[[U:.*]] = nn.matmul_epilogue gelu %[[XV]], %[[W]], %[[B]] {transpose_rhs = true}
// CHECK-NEXT: %[[YV:.*]] = nn.reshape %[[Y]]
// CHECK-NEXT: %[[G:.*]] = nn.matmul_epilogue gelu_grad %[[D]], %[[V]], %[[U]] {transpose_rhs = true}
// CHECK-NEXT: %[[GV:.*]] = nn.reshape %[[G]]
// CHECK-NEXT: return %[[YV]], %[[GV]]
func.func @forward(%x: tensor<2x3x4xf32>, %w: tensor<8x4xf32>, %b: tensor<8xf32>, %d: tensor<6x4xf32>, %v: tensor<8x4xf32>)
    -> (tensor<2x3x8xf32>, tensor<2x3x8xf32>) {
  %m = nn.reshape %x : tensor<2x3x4xf32> -> tensor<6x4xf32>
  %p = nn.matmul %m, %w {transpose_rhs = true} : (tensor<6x4xf32>, tensor<8x4xf32>) -> tensor<6x8xf32>
  %pv = nn.reshape %p : tensor<6x8xf32> -> tensor<2x3x8xf32>
  %r = nn.broadcast %b dims [2] : tensor<8xf32> -> tensor<2x3x8xf32>
  %u = nn.add %r, %pv : tensor<2x3x8xf32>
  %y = nn.gelu tanh %u : tensor<2x3x8xf32>
  %e = nn.matmul %d, %v {transpose_rhs = true} : (tensor<6x4xf32>, tensor<8x4xf32>) -> tensor<6x8xf32>
  %ev = nn.reshape %e : tensor<6x8xf32> -> tensor<2x3x8xf32>
  %g = nn.gelu_grad tanh %u, %ev : tensor<2x3x8xf32>
  return %y, %g : tensor<2x3x8xf32>, tensor<2x3x8xf32>
}

// Backward reads GELU's result.
// CHECK-LABEL: func.func @train(
// CHECK: %[[Y:.*]], %[[U:.*]] = nn.matmul_epilogue gelu
// CHECK: nn.reduce sum
// CHECK-NOT: nn.gelu
// CHECK: nn.matmul_epilogue gelu_grad
func.func @train(%x: tensor<2x4xf32>) -> tensor<f32> {
  %w = nn.get @w : tensor<4x8xf32>
  %h = nn.matmul %x, %w : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  %b = nn.get @b : tensor<8xf32>
  %r = nn.broadcast %b dims [1] : tensor<8xf32> -> tensor<2x8xf32>
  %u = nn.add %h, %r : tensor<2x8xf32>
  %t = nn.gelu tanh %u : tensor<2x8xf32>
  %v = nn.get @v : tensor<8x4xf32>
  %view = nn.reshape %t : tensor<2x8xf32> -> tensor<2x8xf32>
  %y = nn.matmul %view, %v : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  %loss = nn.reduce sum %y dims [0, 1] : tensor<2x4xf32> -> tensor<f32>
  %dt = nn.matmul %y, %v {transpose_rhs = true} : (tensor<2x4xf32>, tensor<8x4xf32>) -> tensor<2x8xf32>
  %dv = nn.matmul %view, %y {transpose_lhs = true} : (tensor<2x8xf32>, tensor<2x4xf32>) -> tensor<8x4xf32>
  nn.gradient @v, %dv : tensor<8x4xf32>
  %du = nn.gelu_grad tanh %u, %dt : tensor<2x8xf32>
  %db = nn.reduce sum %du dims [0] : tensor<2x8xf32> -> tensor<8xf32>
  nn.gradient @b, %db : tensor<8xf32>
  %dw = nn.matmul %x, %du {transpose_lhs = true} : (tensor<2x4xf32>, tensor<2x8xf32>) -> tensor<4x8xf32>
  nn.gradient @w, %dw : tensor<4x8xf32>
  return %loss : tensor<f32>
}

// Not of the other form, of products that somebody else reads, that are onto something, of a batch or made again, of rows that are no whole vectors, or where what is added is
// no row of as many numbers.
// CHECK-NOT: nn.matmul_epilogue
func.func @erf(%x: tensor<6x4xf32>, %w: tensor<4x8xf32>, %b: tensor<8xf32>) -> tensor<6x8xf32> {
  %p = nn.matmul %x, %w : (tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
  %r = nn.broadcast %b dims [1] : tensor<8xf32> -> tensor<6x8xf32>
  %u = nn.add %p, %r : tensor<6x8xf32>
  %y = nn.gelu erf %u : tensor<6x8xf32>
  return %y : tensor<6x8xf32>
}
func.func @read_twice(%x: tensor<6x4xf32>, %w: tensor<4x8xf32>, %b: tensor<8xf32>) -> (tensor<6x8xf32>, tensor<6x8xf32>) {
  %p = nn.matmul %x, %w : (tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
  %r = nn.broadcast %b dims [1] : tensor<8xf32> -> tensor<6x8xf32>
  %u = nn.add %p, %r : tensor<6x8xf32>
  %y = nn.gelu tanh %u : tensor<6x8xf32>
  return %y, %p : tensor<6x8xf32>, tensor<6x8xf32>
}
func.func @onto(%x: tensor<6x4xf32>, %w: tensor<4x8xf32>, %b: tensor<8xf32>, %o: tensor<6x8xf32>) -> tensor<6x8xf32> {
  %p = nn.matmul %x, %w onto %o : (tensor<6x4xf32>, tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  %r = nn.broadcast %b dims [1] : tensor<8xf32> -> tensor<6x8xf32>
  %u = nn.add %p, %r : tensor<6x8xf32>
  %y = nn.gelu tanh %u : tensor<6x8xf32>
  return %y : tensor<6x8xf32>
}
func.func @again(%x: tensor<6x4xf32>, %w: tensor<4x8xf32>, %b: tensor<8xf32>) -> tensor<6x8xf32> {
  %p = nn.matmul %x, %w {recompute} : (tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
  %r = nn.broadcast %b dims [1] : tensor<8xf32> -> tensor<6x8xf32>
  %u = nn.add %p, %r : tensor<6x8xf32>
  %y = nn.gelu tanh %u : tensor<6x8xf32>
  return %y : tensor<6x8xf32>
}
func.func @batch(%x: tensor<2x6x4xf32>, %w: tensor<2x4x8xf32>, %b: tensor<8xf32>) -> tensor<2x6x8xf32> {
  %p = nn.matmul %x, %w : (tensor<2x6x4xf32>, tensor<2x4x8xf32>) -> tensor<2x6x8xf32>
  %r = nn.broadcast %b dims [2] : tensor<8xf32> -> tensor<2x6x8xf32>
  %u = nn.add %p, %r : tensor<2x6x8xf32>
  %y = nn.gelu tanh %u : tensor<2x6x8xf32>
  return %y : tensor<2x6x8xf32>
}
func.func @odd(%x: tensor<6x4xf32>, %w: tensor<4x12xf32>, %b: tensor<12xf32>) -> tensor<6x12xf32> {
  %p = nn.matmul %x, %w : (tensor<6x4xf32>, tensor<4x12xf32>) -> tensor<6x12xf32>
  %r = nn.broadcast %b dims [1] : tensor<12xf32> -> tensor<6x12xf32>
  %u = nn.add %p, %r : tensor<6x12xf32>
  %y = nn.gelu tanh %u : tensor<6x12xf32>
  return %y : tensor<6x12xf32>
}
func.func @of_rows(%x: tensor<8x4xf32>, %w: tensor<4x8xf32>, %b: tensor<8xf32>) -> tensor<8x8xf32> {
  %p = nn.matmul %x, %w : (tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  %r = nn.broadcast %b dims [0] : tensor<8xf32> -> tensor<8x8xf32>
  %u = nn.add %p, %r : tensor<8x8xf32>
  %y = nn.gelu tanh %u : tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}
// A gradient of GELU whose input no product keeps.
func.func @gradient(%u: tensor<6x8xf32>, %d: tensor<6x4xf32>, %v: tensor<8x4xf32>) -> tensor<6x8xf32> {
  %e = nn.matmul %d, %v {transpose_rhs = true} : (tensor<6x4xf32>, tensor<8x4xf32>) -> tensor<6x8xf32>
  %g = nn.gelu_grad tanh %u, %e : tensor<6x8xf32>
  return %g : tensor<6x8xf32>
}
