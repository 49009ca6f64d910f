// A bias that a kernel would add and do nothing else is added by the product.
// RUN: zero-opt %s --nn-bias-in-products | FileCheck %s
// RUN: zero-opt %s --nn-evaluate="function=twice digits=4" -o /dev/null > %t.apart
// RUN: zero-opt %s --nn-bias-in-products --nn-evaluate="function=twice digits=4" -o /dev/null > %t.together
// RUN: diff %t.apart %t.together && FileCheck %s --check-prefix=VALUES < %t.together
// VALUES-COUNT-2: tensor<

func.func private @add_0(%p: tensor<2x3x8xf32>, %b: tensor<8xf32>) -> tensor<2x3x8xf32> attributes {nn.inplace = [[0, 0]], nn.kernel} {
  %0 = nn.broadcast %b dims [2] : tensor<8xf32> -> tensor<2x3x8xf32>
  %1 = nn.add %p, %0 : tensor<2x3x8xf32>
  return %1 : tensor<2x3x8xf32>
}
func.func private @add_1(%b: tensor<8xbf16>, %p: tensor<6x8xbf16>) -> tensor<2x3x8xbf16> attributes {nn.inplace = [[0, 1]], nn.kernel} {
  %0 = nn.cast %p : tensor<6x8xbf16> -> tensor<6x8xf32>
  %1 = nn.cast %b : tensor<8xbf16> -> tensor<8xf32>
  %2 = nn.broadcast %1 dims [1] : tensor<8xf32> -> tensor<6x8xf32>
  %3 = nn.add %0, %2 : tensor<6x8xf32>
  %4 = nn.reshape %3 : tensor<6x8xf32> -> tensor<2x3x8xf32>
  %5 = nn.cast %4 : tensor<2x3x8xf32> -> tensor<2x3x8xbf16>
  return %5 : tensor<2x3x8xbf16>
}
func.func private @add_2(%p: tensor<6x8xbf16>, %b: tensor<8xf32>) -> tensor<6x8xbf16> attributes {nn.inplace = [[0, 0]], nn.kernel} {
  %0 = nn.cast %p : tensor<6x8xbf16> -> tensor<6x8xf32>
  %1 = nn.broadcast %b dims [1] : tensor<8xf32> -> tensor<6x8xf32>
  %2 = nn.add %0, %1 : tensor<6x8xf32>
  %3 = nn.cast %2 : tensor<6x8xf32> -> tensor<6x8xbf16>
  return %3 : tensor<6x8xbf16>
}
// These do more, or something else.
func.func private @tanh(%p: tensor<6x8xf32>, %b: tensor<8xf32>) -> tensor<6x8xf32> attributes {nn.inplace = [[0, 0]], nn.kernel} {
  %0 = nn.broadcast %b dims [1] : tensor<8xf32> -> tensor<6x8xf32>
  %1 = nn.add %p, %0 : tensor<6x8xf32>
  %2 = nn.tanh %1 : tensor<6x8xf32>
  return %2 : tensor<6x8xf32>
}
func.func private @scale(%p: tensor<6x8xf32>, %b: tensor<8xf32>) -> tensor<6x8xf32> attributes {nn.inplace = [[0, 0]], nn.kernel} {
  %0 = nn.broadcast %b dims [1] : tensor<8xf32> -> tensor<6x8xf32>
  %1 = nn.mul %p, %0 : tensor<6x8xf32>
  return %1 : tensor<6x8xf32>
}
func.func private @of_columns(%p: tensor<6x8xf32>, %b: tensor<6xf32>) -> tensor<6x8xf32> attributes {nn.inplace = [[0, 0]], nn.kernel} {
  %0 = nn.broadcast %b dims [0] : tensor<6xf32> -> tensor<6x8xf32>
  %1 = nn.add %p, %0 : tensor<6x8xf32>
  return %1 : tensor<6x8xf32>
}
func.func private @add_3(%p: tensor<6x8xf32>, %b: tensor<8xf32>) -> tensor<6x8xf32> attributes {nn.inplace = [[0, 0]], nn.kernel} {
  %0 = nn.broadcast %b dims [1] : tensor<8xf32> -> tensor<6x8xf32>
  %1 = nn.add %p, %0 : tensor<6x8xf32>
  return %1 : tensor<6x8xf32>
}
// Casts that change numbers, of what is added and of what is made of the sum.
func.func private @whole_before(%p: tensor<6x8xf32>, %b: tensor<8xf32>) -> tensor<6x8xf32> attributes {nn.inplace = [[0, 0]], nn.kernel} {
  %0 = nn.cast %p : tensor<6x8xf32> -> tensor<6x8xi64>
  %1 = nn.cast %0 : tensor<6x8xi64> -> tensor<6x8xf32>
  %2 = nn.broadcast %b dims [1] : tensor<8xf32> -> tensor<6x8xf32>
  %3 = nn.add %1, %2 : tensor<6x8xf32>
  return %3 : tensor<6x8xf32>
}
func.func private @whole_after(%p: tensor<6x8xf32>, %b: tensor<8xf32>) -> tensor<6x8xf32> attributes {nn.inplace = [[0, 0]], nn.kernel} {
  %0 = nn.broadcast %b dims [1] : tensor<8xf32> -> tensor<6x8xf32>
  %1 = nn.add %p, %0 : tensor<6x8xf32>
  %2 = nn.cast %1 : tensor<6x8xf32> -> tensor<6x8xi64>
  %3 = nn.cast %2 : tensor<6x8xi64> -> tensor<6x8xf32>
  return %3 : tensor<6x8xf32>
}
func.func private @rounded(%p: tensor<6x8xf32>, %b: tensor<8xf32>) -> tensor<6x8xf32> attributes {nn.inplace = [[0, 0]], nn.kernel} {
  %0 = nn.broadcast %b dims [1] : tensor<8xf32> -> tensor<6x8xf32>
  %1 = nn.add %p, %0 : tensor<6x8xf32>
  %2 = nn.cast %1 : tensor<6x8xf32> -> tensor<6x8xf16>
  %3 = nn.cast %2 : tensor<6x8xf16> -> tensor<6x8xf32>
  return %3 : tensor<6x8xf32>
}

// Made again in backward, it is kept instead.
// CHECK-LABEL: func.func @twice(
// CHECK-SAME: %[[X:.*]]: tensor<6x4xf32>, %[[W:.*]]: tensor<8x4xf32>, %[[B:.*]]: tensor<8xf32>
// CHECK-NEXT: %[[Y:.*]] = nn.matmul_epilogue bias %[[X]], %[[W]], %[[B]] {transpose_rhs = true}
// CHECK-NEXT: %[[V:.*]] = nn.reshape %[[Y]]
// CHECK-NEXT: return %[[V]], %[[Y]]
func.func @twice(%x: tensor<6x4xf32>, %w: tensor<8x4xf32>, %b: tensor<8xf32>) -> (tensor<2x3x8xf32>, tensor<6x8xf32>) {
  %p = nn.matmul %x, %w {transpose_rhs = true} : (tensor<6x4xf32>, tensor<8x4xf32>) -> tensor<6x8xf32>
  %v = nn.reshape %p : tensor<6x8xf32> -> tensor<2x3x8xf32>
  %y = nn.launch @add_0(%v, %b) : (tensor<2x3x8xf32>, tensor<8xf32>) -> tensor<2x3x8xf32>
  %z = nn.launch @add_3(%p, %b) : (tensor<6x8xf32>, tensor<8xf32>) -> tensor<6x8xf32>
  return %y, %z : tensor<2x3x8xf32>, tensor<6x8xf32>
}

// CHECK-LABEL: func.func @mixed(
// CHECK-NEXT: %[[Y:.*]] = nn.matmul_epilogue bias %{{.*}} : (tensor<6x4xbf16>, tensor<4x8xbf16>, tensor<8xbf16>) -> tensor<6x8xbf16>
// CHECK-NEXT: nn.reshape %[[Y]]
func.func @mixed(%x: tensor<6x4xbf16>, %w: tensor<4x8xbf16>, %b: tensor<8xbf16>) -> tensor<2x3x8xbf16> {
  %p = nn.matmul %x, %w : (tensor<6x4xbf16>, tensor<4x8xbf16>) -> tensor<6x8xbf16>
  %y = nn.launch @add_1(%b, %p) : (tensor<8xbf16>, tensor<6x8xbf16>) -> tensor<2x3x8xbf16>
  return %y : tensor<2x3x8xbf16>
}

// Not a bias of another type, for a product in another type than its operands', by kernels that do more or cast in between, two biases of one product, beside other readers, or of products onto something.
// CHECK-LABEL: func.func @apart(
// CHECK-NOT: nn.matmul_epilogue
func.func @apart(%x: tensor<6x4xf32>, %w: tensor<4x8xf32>, %b: tensor<8xf32>, %c: tensor<6xf32>) -> (tensor<6x8xf32>, tensor<6x8xf32>, tensor<6x8xf32>) {
  %p = nn.matmul %x, %w : (tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
  %0 = nn.launch @tanh(%p, %b) : (tensor<6x8xf32>, tensor<8xf32>) -> tensor<6x8xf32>
  %q = nn.matmul %0, %0 {transpose_lhs = true} : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<8x8xf32>
  %r = nn.matmul %0, %q : (tensor<6x8xf32>, tensor<8x8xf32>) -> tensor<6x8xf32>
  %1 = nn.launch @scale(%r, %b) : (tensor<6x8xf32>, tensor<8xf32>) -> tensor<6x8xf32>
  %s = nn.matmul %1, %q : (tensor<6x8xf32>, tensor<8x8xf32>) -> tensor<6x8xf32>
  %2 = nn.launch @of_columns(%s, %c) : (tensor<6x8xf32>, tensor<6xf32>) -> tensor<6x8xf32>
  return %0, %1, %2 : tensor<6x8xf32>, tensor<6x8xf32>, tensor<6x8xf32>
}
func.func @other_type(%x: tensor<6x4xbf16>, %w: tensor<4x8xbf16>, %b: tensor<8xf32>) -> tensor<6x8xbf16> {
  %p = nn.matmul %x, %w : (tensor<6x4xbf16>, tensor<4x8xbf16>) -> tensor<6x8xbf16>
  %y = nn.launch @add_2(%p, %b) : (tensor<6x8xbf16>, tensor<8xf32>) -> tensor<6x8xbf16>
  return %y : tensor<6x8xbf16>
}
func.func @other_result(%x: tensor<6x4xbf16>, %w: tensor<4x8xbf16>, %b: tensor<8xf32>) -> tensor<6x8xf32> {
  %p = nn.matmul %x, %w : (tensor<6x4xbf16>, tensor<4x8xbf16>) -> tensor<6x8xf32>
  %y = nn.launch @add_3(%p, %b) : (tensor<6x8xf32>, tensor<8xf32>) -> tensor<6x8xf32>
  return %y : tensor<6x8xf32>
}
func.func @casts(%x: tensor<6x4xf32>, %w: tensor<4x8xf32>, %v: tensor<8x8xf32>, %b: tensor<8xf32>) -> tensor<6x8xf32> {
  %p = nn.matmul %x, %w : (tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
  %0 = nn.launch @whole_before(%p, %b) : (tensor<6x8xf32>, tensor<8xf32>) -> tensor<6x8xf32>
  %q = nn.matmul %0, %v : (tensor<6x8xf32>, tensor<8x8xf32>) -> tensor<6x8xf32>
  %1 = nn.launch @whole_after(%q, %b) : (tensor<6x8xf32>, tensor<8xf32>) -> tensor<6x8xf32>
  %r = nn.matmul %1, %v : (tensor<6x8xf32>, tensor<8x8xf32>) -> tensor<6x8xf32>
  %2 = nn.launch @rounded(%r, %b) : (tensor<6x8xf32>, tensor<8xf32>) -> tensor<6x8xf32>
  return %2 : tensor<6x8xf32>
}
func.func @two(%x: tensor<6x4xf32>, %w: tensor<4x8xf32>, %b: tensor<8xf32>, %c: tensor<8xf32>) -> (tensor<6x8xf32>, tensor<6x8xf32>) {
  %p = nn.matmul %x, %w : (tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
  %y = nn.launch @add_3(%p, %b) : (tensor<6x8xf32>, tensor<8xf32>) -> tensor<6x8xf32>
  %z = nn.launch @add_3(%p, %c) : (tensor<6x8xf32>, tensor<8xf32>) -> tensor<6x8xf32>
  return %y, %z : tensor<6x8xf32>, tensor<6x8xf32>
}
func.func @read_beside(%x: tensor<6x4xf32>, %w: tensor<4x8xf32>, %b: tensor<8xf32>) -> (tensor<6x8xf32>, tensor<6x8xf32>) {
  %p = nn.matmul %x, %w : (tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
  %y = nn.launch @add_3(%p, %b) : (tensor<6x8xf32>, tensor<8xf32>) -> tensor<6x8xf32>
  return %y, %p : tensor<6x8xf32>, tensor<6x8xf32>
}
func.func @onto(%x: tensor<6x4xf32>, %w: tensor<4x8xf32>, %b: tensor<8xf32>, %o: tensor<6x8xf32>) -> tensor<6x8xf32> {
  %p = nn.matmul %x, %w onto %o : (tensor<6x4xf32>, tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  %y = nn.launch @add_3(%p, %b) : (tensor<6x8xf32>, tensor<8xf32>) -> tensor<6x8xf32>
  return %y : tensor<6x8xf32>
}
