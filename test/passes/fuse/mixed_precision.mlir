// RUN: zero-opt %s --nn-mixed-precision --split-input-file | FileCheck %s

// Parameters, products and what kernels hand on are bf16; statistics and the gradient are f32. A kernel widens what it loads and rounds
// what it stores.
// CHECK-LABEL: func.func private @norm
// CHECK-SAME: (%[[Y:.*]]: tensor<4x8xbf16>) -> (tensor<4x8xbf16>, tensor<4xf32>)
// CHECK-SAME: nn.inplace = {{\[}}[0, 0]]
// CHECK-NEXT: %[[WIDE:.*]] = nn.cast %[[Y]] : tensor<4x8xbf16> -> tensor<4x8xf32>
// CHECK-NEXT: %[[SUM:.*]] = nn.reduce sum %[[WIDE]] dims [1] : tensor<4x8xf32> -> tensor<4xf32>
// CHECK: %[[Z:.*]] = nn.sub %[[WIDE]]
// CHECK-NEXT: %[[HALF:.*]] = nn.cast %[[Z]] : tensor<4x8xf32> -> tensor<4x8xbf16>
// CHECK-NEXT: return %[[HALF]], %[[SUM]]
// Data comes as it is; what a product reads of it is rounded before, once.
// CHECK-LABEL: func.func @train
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xf32>) -> tensor<4xf32>
// CHECK: %[[NARROW:.*]] = nn.launch @narrow(%[[X]]) : (tensor<4x8xf32>) -> tensor<4x8xbf16>
// CHECK: %[[W:.*]] = nn.get @w : tensor<8x8xbf16>
// CHECK: nn.matmul %[[NARROW]], %[[W]] : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16>
// CHECK: nn.launch @norm({{.*}}) : (tensor<4x8xbf16>) -> (tensor<4x8xbf16>, tensor<4xf32>)
// CHECK: %[[G:.*]] = nn.matmul %[[NARROW]], {{.*}} {transpose_lhs = true} : (tensor<4x8xbf16>, tensor<4x8xbf16>) -> tensor<8x8xf32>
// CHECK: nn.gradient @w, %[[G]] : tensor<8x8xf32>
nn.parameter @w : tensor<8x8xf32> {trainable = true}
func.func private @norm(%y: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>) attributes {nn.kernel, nn.inplace = [[0, 0]]} {
  %s = nn.reduce sum %y dims [1] : tensor<4x8xf32> -> tensor<4xf32>
  %b = nn.broadcast %s dims [0] : tensor<4xf32> -> tensor<4x8xf32>
  %z = nn.sub %y, %b : tensor<4x8xf32>
  return %z, %s : tensor<4x8xf32>, tensor<4xf32>
}
func.func @train(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %w = nn.get @w : tensor<8x8xf32>
  %y = nn.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %z, %s = nn.launch @norm(%y) : (tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>)
  %g = nn.matmul %x, %z {transpose_lhs = true} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  nn.gradient @w, %g : tensor<8x8xf32>
  return %s : tensor<4xf32>
}

// -----

// One kernel in two types: the first of two products of a shared parameter is added up to its gradient and stays f32 in the kernel that
// adds, elsewhere the same sum is an activation. What is added term by term in memory stays f32.
// CHECK-DAG: func.func private @add(%{{.*}}: tensor<8x8xf32>, %{{.*}}: tensor<8x8xf32>) -> tensor<8x8xf32>
// CHECK-DAG: func.func private @add_0(%{{.*}}: tensor<8x8xbf16>, %{{.*}}: tensor<8x8xbf16>) -> tensor<8x8xbf16>
// CHECK-DAG: func.func private @scatter(%{{.*}}: tensor<4xi64>, %{{.*}}: tensor<4x8xbf16>) -> tensor<8x8xf32>
// CHECK-LABEL: func.func @train
// CHECK-COUNT-2: nn.matmul {{.*}} : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xf32>
// CHECK: nn.launch @add(
// CHECK: nn.gradient
// CHECK-COUNT-2: nn.matmul {{.*}} : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
// CHECK: nn.launch @add_0(
// CHECK: %[[E:.*]] = nn.launch @scatter({{.*}} -> tensor<8x8xf32>
// CHECK: nn.launch @narrow(%[[E]]) : (tensor<8x8xf32>) -> tensor<8x8xbf16>
nn.parameter @w : tensor<8x8xf32> {trainable = true}
func.func private @add(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {nn.kernel, nn.inplace = [[0, 0], [0, 1]]} {
  %0 = nn.add %a, %b : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
func.func private @scatter(%i: tensor<4xi64>, %u: tensor<4x8xf32>) -> tensor<8x8xf32> attributes {nn.kernel, nn.inplace = []} {
  %0 = nn.scatter_add %i, %u : tensor<4xi64>, tensor<4x8xf32> -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
func.func private @copy(%u: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {nn.kernel, nn.inplace = [[0, 0]]} {
  %0 = nn.add %u, %u : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
func.func @train(%i: tensor<4xi64>, %u: tensor<4x8xf32>) -> tensor<8x8xf32> {
  %w = nn.get @w : tensor<8x8xf32>
  %p = nn.matmul %w, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %q = nn.matmul %w, %w {transpose_lhs = true} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %g = nn.launch @add(%p, %q) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  nn.gradient @w, %g : tensor<8x8xf32>
  %r = nn.matmul %w, %w {transpose_rhs = true} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %s = nn.matmul %w, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %t = nn.launch @add(%r, %s) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %c = nn.launch @copy(%u) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %e = nn.launch @scatter(%i, %c) : (tensor<4xi64>, tensor<4x8xf32>) -> tensor<8x8xf32>
  %o = nn.matmul %t, %e : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %o : tensor<8x8xf32>
}

// -----

// Attention is bf16 but for its mask and row sums; a mask that is a parameter is widened, a gradient that attention yields too.
// CHECK-LABEL: func.func @train
// CHECK-DAG: %[[MASK:.*]] = nn.launch @widen{{.*}} -> tensor<1x1x4x4xf32>
// CHECK: %[[OUT:.*]], %[[LSE:.*]] = nn.attention {{.*}} mask %[[MASK]] {{.*}} -> (tensor<1x1x4x8xbf16>, tensor<1x1x4xf32>)
// CHECK: %[[D:.*]]:3 = nn.attention_grad {{.*}} mask %[[MASK]], %[[OUT]], %[[LSE]]
// CHECK: %[[WIDE:.*]] = nn.launch @widen{{.*}}(%[[D]]#1)
// CHECK: nn.gradient @k, %[[WIDE]]
nn.parameter @k : tensor<1x1x4x8xf32> {trainable = true}
nn.parameter @m : tensor<1x1x4x4xf32> {trainable = false}
func.func @train(%q: tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32> {
  %k = nn.get @k : tensor<1x1x4x8xf32>
  %m = nn.get @m : tensor<1x1x4x4xf32>
  %o, %l = nn.attention %q, %k, %k mask %m {scale = 1.0 : f32} : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x4xf32>) -> (tensor<1x1x4x8xf32>, tensor<1x1x4xf32>)
  %dq, %dk, %dv = nn.attention_grad %q, %k, %k mask %m, %o, %l, %q {scale = 1.0 : f32} : (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x4xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4xf32>, tensor<1x1x4x8xf32>) -> (tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>)
  nn.gradient @k, %dk : tensor<1x1x4x8xf32>
  return %o : tensor<1x1x4x8xf32>
}

// -----

// A gradient that is added up product by product stays f32; what is joined has one type, and rows have that of what they are rows of.
// CHECK-LABEL: func.func @train
// CHECK: %[[X:.*]] = nn.matmul {{.*}} -> tensor<4x8xbf16>
// CHECK: nn.rows %[[X]] from 2 : tensor<4x8xbf16> -> tensor<2x8xbf16>
// CHECK: nn.join_rows {{.*}} : (tensor<2x8xbf16>, tensor<2x8xbf16>) -> tensor<4x8xbf16>
// CHECK: %[[G:.*]] = nn.matmul {{.*}} : (tensor<2x8xbf16>, tensor<2x8xbf16>) -> tensor<8x8xf32>
// CHECK: nn.matmul %{{.*}}, %{{.*}} onto %[[G]] {transpose_lhs = true} : (tensor<2x8xbf16>, tensor<2x8xbf16>, tensor<8x8xf32>) -> tensor<8x8xf32>
nn.parameter @w : tensor<8x8xf32> {trainable = true}
func.func @train(%in: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %w = nn.get @w : tensor<8x8xf32>
  %x = nn.matmul %in, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %x1 = nn.rows %x from 2 : tensor<4x8xf32> -> tensor<2x8xf32>
  %x0 = nn.rows %x from 0 : tensor<4x8xf32> -> tensor<2x8xf32>
  %y0 = nn.matmul %x0, %w : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  %y1 = nn.matmul %x1, %w : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  %y = nn.join_rows %y0, %y1 : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<4x8xf32>
  %z = nn.matmul %y, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %g0 = nn.matmul %x0, %y0 {transpose_lhs = true} : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<8x8xf32>
  %g = nn.matmul %x1, %y1 onto %g0 {transpose_lhs = true} : (tensor<2x8xf32>, tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  nn.gradient @w, %g : tensor<8x8xf32>
  return %z : tensor<4x8xf32>
}

// -----
// What other kernels make of statistics alone stays f32, wherever their boundaries are: @logs of the sums of two tiles. What is made of them and of an
// activation is bf16.
// CHECK-LABEL: func.func private @logs
// CHECK-SAME: (%{{.*}}: tensor<4xf32>, %{{.*}}: tensor<4xf32>) -> tensor<4x2xf32>
// CHECK-LABEL: func.func private @spread
// CHECK-SAME: (%{{.*}}: tensor<4x2xf32>, %{{.*}}: tensor<4x2xbf16>) -> tensor<4x2xbf16>
func.func private @sums(%y: tensor<4x8xf32>) -> tensor<4xf32> attributes {nn.kernel, nn.inplace = []} {
  %s = nn.reduce sum %y dims [1] : tensor<4x8xf32> -> tensor<4xf32>
  return %s : tensor<4xf32>
}
func.func private @logs(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4x2xf32> attributes {nn.kernel, nn.inplace = []} {
  %c = nn.reshape %a : tensor<4xf32> -> tensor<4x1xf32>
  %d = nn.reshape %b : tensor<4xf32> -> tensor<4x1xf32>
  %e = nn.concat %c, %d dim 1 : (tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<4x2xf32>
  %f = nn.log %e : tensor<4x2xf32>
  return %f : tensor<4x2xf32>
}
func.func private @spread(%a: tensor<4x2xf32>, %b: tensor<4x2xf32>) -> tensor<4x2xf32> attributes {nn.kernel, nn.inplace = []} {
  %c = nn.add %a, %b : tensor<4x2xf32>
  return %c : tensor<4x2xf32>
}
func.func private @total(%a: tensor<4x2xf32>) -> tensor<4xf32> attributes {nn.kernel, nn.inplace = []} {
  %s = nn.reduce sum %a dims [1] : tensor<4x2xf32> -> tensor<4xf32>
  return %s : tensor<4xf32>
}
nn.parameter @w : tensor<8x8xf32> {trainable = true}
nn.parameter @v : tensor<8x2xf32> {trainable = true}
func.func @train(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %w = nn.get @w : tensor<8x8xf32>
  %v = nn.get @v : tensor<8x2xf32>
  %y = nn.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %z = nn.matmul %x, %v : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
  %s = nn.launch @sums(%y) : (tensor<4x8xf32>) -> tensor<4xf32>
  %t = nn.launch @sums(%y) : (tensor<4x8xf32>) -> tensor<4xf32>
  %l = nn.launch @logs(%s, %t) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4x2xf32>
  %m = nn.launch @spread(%l, %z) : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  %n = nn.launch @total(%m) : (tensor<4x2xf32>) -> tensor<4xf32>
  return %n : tensor<4xf32>
}
