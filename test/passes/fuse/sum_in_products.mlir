// The columns of what a product reads are summed by the product: the gradient of a bias beside that of its weight.
// RUN: zero-opt %s --nn-sum-in-products | FileCheck %s
// RUN: zero-opt %s --nn-evaluate="function=train digits=4" -o /dev/null > %t.apart
// RUN: zero-opt %s --nn-sum-in-products --nn-evaluate="function=train digits=4" -o /dev/null > %t.together
// RUN: diff %t.apart %t.together && FileCheck %s --check-prefix=VALUES < %t.together
// VALUES-COUNT-4: tensor<

func.func private @columns_0(%dy: tensor<2x3x8xf32>) -> tensor<8xf32> attributes {nn.inplace = [], nn.kernel} {
  %0 = nn.reshape %dy : tensor<2x3x8xf32> -> tensor<6x8xf32>
  %1 = nn.reduce sum %0 dims [0] : tensor<6x8xf32> -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
// The same of a tensor that no kernel views as a matrix.
func.func private @columns_3(%dy: tensor<2x3x2x2xf32>) -> tensor<4xf32> attributes {nn.inplace = [], nn.kernel} {
  %0 = nn.reduce sum %dy dims [0, 1] : tensor<2x3x2x2xf32> -> tensor<2x2xf32>
  %1 = nn.reshape %0 : tensor<2x2xf32> -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @columns_1(%dy: tensor<6x4xbf16>) -> tensor<4xf32> attributes {nn.inplace = [], nn.kernel} {
  %0 = nn.cast %dy : tensor<6x4xbf16> -> tensor<6x4xf32>
  %1 = nn.reduce sum %0 dims [0] : tensor<6x4xf32> -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
// These do more, or something else.
func.func private @squares(%dy: tensor<6x4xf32>) -> tensor<4xf32> attributes {nn.inplace = [], nn.kernel} {
  %0 = nn.mul %dy, %dy : tensor<6x4xf32>
  %1 = nn.reduce sum %0 dims [0] : tensor<6x4xf32> -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @rows(%dy: tensor<6x4xf32>) -> tensor<6xf32> attributes {nn.inplace = [], nn.kernel} {
  %0 = nn.reduce sum %dy dims [1] : tensor<6x4xf32> -> tensor<6xf32>
  return %0 : tensor<6xf32>
}
func.func private @largest(%dy: tensor<6x4xf32>) -> tensor<4xf32> attributes {nn.inplace = [], nn.kernel} {
  %0 = nn.reduce max %dy dims [0] : tensor<6x4xf32> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @columns_2(%dy: tensor<6x4xf32>) -> tensor<4xf32> attributes {nn.inplace = [], nn.kernel} {
  %0 = nn.reduce sum %dy dims [0] : tensor<6x4xf32> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

func.func private @twice_as_much(%s: tensor<4xf32>) -> tensor<4xf32> attributes {nn.inplace = [], nn.kernel} {
  %0 = nn.add %s, %s : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// A weight stored [in, out] reads the gradient as it is, one stored [out, in] transposed. The launches move after the products.
// CHECK-LABEL: func.func @train
// CHECK-SAME: %[[X:.*]]: tensor<6x4xf32>, %[[DY:.*]]: tensor<2x3x8xf32>, %[[DZ:.*]]: tensor<2x3x8xf32>
func.func @train(%x: tensor<6x4xf32>, %dy: tensor<2x3x8xf32>, %dz: tensor<2x3x8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8x4xf32>, tensor<8xf32>) {
  // CHECK-NEXT: %[[D:.*]] = nn.reshape %[[DY]]
  // CHECK-NEXT: nn.matmul %[[X]], %[[D]] {transpose_lhs = true}
  // CHECK-NEXT: nn.launch @columns_0(%[[DY]]) {nn.in_product}
  %db = nn.launch @columns_0(%dy) : (tensor<2x3x8xf32>) -> tensor<8xf32>
  %d = nn.reshape %dy : tensor<2x3x8xf32> -> tensor<6x8xf32>
  %dw = nn.matmul %x, %d {transpose_lhs = true} : (tensor<6x4xf32>, tensor<6x8xf32>) -> tensor<4x8xf32>
  // CHECK-NEXT: %[[E:.*]] = nn.reshape %[[DZ]]
  // CHECK-NEXT: nn.matmul %[[E]], %[[X]] {transpose_lhs = true}
  // CHECK-NEXT: nn.launch @columns_0(%[[DZ]]) {nn.in_product}
  %e = nn.reshape %dz : tensor<2x3x8xf32> -> tensor<6x8xf32>
  %dv = nn.matmul %e, %x {transpose_lhs = true} : (tensor<6x8xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
  %dc = nn.launch @columns_0(%dz) : (tensor<2x3x8xf32>) -> tensor<8xf32>
  return %dw, %db, %dv, %dc : tensor<4x8xf32>, tensor<8xf32>, tensor<8x4xf32>, tensor<8xf32>
}

// Operands in bf16, results in f32.
// CHECK-LABEL: func.func @mixed
// CHECK-NEXT: nn.matmul
// CHECK-NEXT: nn.launch @columns_1({{.*}}) {nn.in_product}
func.func @mixed(%x: tensor<6x8xbf16>, %dy: tensor<6x4xbf16>) -> (tensor<8x4xf32>, tensor<4xf32>) {
  %db = nn.launch @columns_1(%dy) : (tensor<6x4xbf16>) -> tensor<4xf32>
  %dw = nn.matmul %x, %dy {transpose_lhs = true} : (tensor<6x8xbf16>, tensor<6x4xbf16>) -> tensor<8x4xf32>
  return %dw, %db : tensor<8x4xf32>, tensor<4xf32>
}

// What hands a gradient over goes with it.
// CHECK-LABEL: func.func @handed
// CHECK-NEXT: nn.matmul
// CHECK-NEXT: %[[S:.*]] = nn.launch @columns_2({{.*}}) {nn.in_product}
// CHECK-NEXT: %[[R:.*]] = nn.reshape %[[S]]
// CHECK-NEXT: nn.gradient @b, %[[R]]
// CHECK-NEXT: nn.gradient @w
nn.parameter @w : tensor<8x4xf32> {trainable = true}
nn.parameter @b : tensor<1x4xf32> {trainable = true}
func.func @handed(%x: tensor<6x8xf32>, %dy: tensor<6x4xf32>) {
  %s = nn.launch @columns_2(%dy) : (tensor<6x4xf32>) -> tensor<4xf32>
  %r = nn.reshape %s : tensor<4xf32> -> tensor<1x4xf32>
  nn.gradient @b, %r : tensor<1x4xf32>
  %dw = nn.matmul %x, %dy {transpose_lhs = true} : (tensor<6x8xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
  nn.gradient @w, %dw : tensor<8x4xf32>
  return
}

// CHECK-LABEL: func.func @heads
// CHECK: nn.matmul
// CHECK-NEXT: nn.launch @columns_3({{.*}}) {nn.in_product}
func.func @heads(%x: tensor<6x8xf32>, %dy: tensor<2x3x2x2xf32>) -> (tensor<4x8xf32>, tensor<4xf32>) {
  %s = nn.launch @columns_3(%dy) : (tensor<2x3x2x2xf32>) -> tensor<4xf32>
  %d = nn.reshape %dy : tensor<2x3x2x2xf32> -> tensor<6x4xf32>
  %dw = nn.matmul %d, %x {transpose_lhs = true} : (tensor<6x4xf32>, tensor<6x8xf32>) -> tensor<4x8xf32>
  return %dw, %s : tensor<4x8xf32>, tensor<4xf32>
}

// One product sums for one launch.
// CHECK-LABEL: func.func @twice
// CHECK-NEXT: nn.matmul
// CHECK-NEXT: nn.launch @columns_2({{.*}}) {nn.in_product}
// CHECK-NEXT: nn.launch @columns_2(%{{[^)]*}}) :
func.func @twice(%x: tensor<6x8xf32>, %dy: tensor<6x4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %dw = nn.matmul %x, %dy {transpose_lhs = true} : (tensor<6x8xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
  %s = nn.launch @columns_2(%dy) : (tensor<6x4xf32>) -> tensor<4xf32>
  %t = nn.launch @columns_2(%dy) : (tensor<6x4xf32>) -> tensor<4xf32>
  return %dw, %s, %t : tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>
}

// Not of kernels that do something else, of products that sum over another dimension, onto something, of sums of another type, or where the
// sums are read before.
// CHECK-LABEL: func.func @apart
// CHECK-NOT: nn.in_product
func.func @apart(%x: tensor<6x8xf32>, %dy: tensor<6x4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>, tensor<6xf32>, tensor<4xf32>) {
  %s = nn.launch @squares(%dy) : (tensor<6x4xf32>) -> tensor<4xf32>
  %r = nn.launch @rows(%dy) : (tensor<6x4xf32>) -> tensor<6xf32>
  %m = nn.launch @largest(%dy) : (tensor<6x4xf32>) -> tensor<4xf32>
  %dw = nn.matmul %x, %dy {transpose_lhs = true} : (tensor<6x8xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
  return %dw, %s, %r, %m : tensor<8x4xf32>, tensor<4xf32>, tensor<6xf32>, tensor<4xf32>
}
func.func @other_dimension(%w: tensor<8x4xf32>, %dy: tensor<6x4xf32>) -> (tensor<6x8xf32>, tensor<4xf32>) {
  %s = nn.launch @columns_2(%dy) : (tensor<6x4xf32>) -> tensor<4xf32>
  %dx = nn.matmul %dy, %w {transpose_rhs = true} : (tensor<6x4xf32>, tensor<8x4xf32>) -> tensor<6x8xf32>
  return %dx, %s : tensor<6x8xf32>, tensor<4xf32>
}
func.func @onto(%w: tensor<8x4xf32>, %x: tensor<6x8xf32>, %dy: tensor<6x4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>) {
  %s = nn.launch @columns_2(%dy) : (tensor<6x4xf32>) -> tensor<4xf32>
  %dw = nn.matmul %x, %dy onto %w {transpose_lhs = true} : (tensor<6x8xf32>, tensor<6x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %dw, %s : tensor<8x4xf32>, tensor<4xf32>
}
func.func @other_type(%x: tensor<6x8xbf16>, %dy: tensor<6x4xbf16>) -> (tensor<8x4xbf16>, tensor<4xf32>) {
  %s = nn.launch @columns_1(%dy) : (tensor<6x4xbf16>) -> tensor<4xf32>
  %dw = nn.matmul %x, %dy {transpose_lhs = true} : (tensor<6x8xbf16>, tensor<6x4xbf16>) -> tensor<8x4xbf16>
  return %dw, %s : tensor<8x4xbf16>, tensor<4xf32>
}
func.func @read_before(%x: tensor<6x8xf32>, %dy: tensor<6x4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>) {
  %s = nn.launch @columns_2(%dy) : (tensor<6x4xf32>) -> tensor<4xf32>
  %t = nn.launch @twice_as_much(%s) : (tensor<4xf32>) -> tensor<4xf32>
  %dw = nn.matmul %x, %dy {transpose_lhs = true} : (tensor<6x8xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
  return %dw, %t : tensor<8x4xf32>, tensor<4xf32>
}
