// Columns are summed by a kernel that passes over the same rows, for parts of them, and a second kernel adds up the parts.
// RUN: zero-opt %s --nn-split-columns="columns=128 least=0" | FileCheck %s
// RUN: for f in train apart; do zero-opt %s --nn-evaluate="function=$f digits=2" -o /dev/null; done > %t.whole
// RUN: for f in train apart; do zero-opt %s --nn-split-columns="columns=128 least=0" --nn-evaluate="function=$f digits=2" -o /dev/null; done > %t.parts
// RUN: diff %t.whole %t.parts

// The gradient of a norm, onto another one; what its scale and bias sum; and a bias that sums its result.
// CHECK-NOT: func.func private @{{norm_0|scale_and_bias|bias}}(
func.func private @norm_0(%dy: tensor<32x256xbf16>, %x: tensor<2x16x256xf32>, %r: tensor<2x16xf32>, %dz: tensor<2x16x256xbf16>) -> tensor<2x16x256xbf16> attributes {nn.inplace = [], nn.kernel} {
  %0 = nn.cast %dy : tensor<32x256xbf16> -> tensor<32x256xf32>
  %1 = nn.reshape %0 : tensor<32x256xf32> -> tensor<2x16x256xf32>
  %2 = nn.mul %1, %x : tensor<2x16x256xf32>
  %3 = nn.reduce sum %2 dims [2] : tensor<2x16x256xf32> -> tensor<2x16xf32>
  %4 = nn.mul %3, %r : tensor<2x16xf32>
  %5 = nn.broadcast %4 dims [0, 1] : tensor<2x16xf32> -> tensor<2x16x256xf32>
  %6 = nn.cast %dz : tensor<2x16x256xbf16> -> tensor<2x16x256xf32>
  %7 = nn.sub %6, %5 : tensor<2x16x256xf32>
  %8 = nn.cast %7 : tensor<2x16x256xf32> -> tensor<2x16x256xbf16>
  return %8 : tensor<2x16x256xbf16>
}
func.func private @scale_and_bias(%dy: tensor<32x256xbf16>, %x: tensor<2x16x256xf32>) -> (tensor<256xf32>, tensor<256xf32>) attributes {nn.inplace = [], nn.kernel} {
  %0 = nn.cast %dy : tensor<32x256xbf16> -> tensor<32x256xf32>
  %1 = nn.reshape %x : tensor<2x16x256xf32> -> tensor<32x256xf32>
  %2 = nn.mul %0, %1 : tensor<32x256xf32>
  %3 = nn.reduce sum %2 dims [0] : tensor<32x256xf32> -> tensor<256xf32>
  %4 = nn.reduce sum %0 dims [0] : tensor<32x256xf32> -> tensor<256xf32>
  return %3, %4 : tensor<256xf32>, tensor<256xf32>
}
func.func private @bias(%dx: tensor<32x256xbf16>) -> tensor<4x64xbf16> attributes {nn.inplace = [], nn.kernel} {
  %0 = nn.cast %dx : tensor<32x256xbf16> -> tensor<32x256xf32>
  %1 = nn.reshape %0 : tensor<32x256xf32> -> tensor<32x4x64xf32>
  %2 = nn.reduce sum %1 dims [0] : tensor<32x4x64xf32> -> tensor<4x64xf32>
  %3 = nn.cast %2 : tensor<4x64xf32> -> tensor<4x64xbf16>
  return %3 : tensor<4x64xbf16>
}

// CHECK: func.func private @[[$NORM:norm_[1-9]]](%[[DY:.*]]: tensor<32x256xbf16>, %{{.*}}: tensor<2x16x256xf32>, %{{.*}}: tensor<2x16xf32>, %{{.*}}: tensor<2x16x256xbf16>) -> (tensor<2x16x256xbf16>, tensor<2x256xf32>, tensor<2x256xf32>, tensor<2x256xf32>)
// What was stored and read is summed as it was before it was rounded.
// CHECK: %[[DX:.*]] = nn.sub
// CHECK: nn.cast %[[DX]]
// CHECK: nn.reduce sum %{{.*}} dims [1] : tensor<2x16x256xf32> -> tensor<2x256xf32>
// CHECK: nn.reduce sum %{{.*}} dims [1] : tensor<2x16x256xf32> -> tensor<2x256xf32>
// CHECK: %[[V:.*]] = nn.reshape %[[DX]] : tensor<2x16x256xf32> -> tensor<32x256xf32>
// CHECK: %[[W:.*]] = nn.reshape %{{.*}} -> tensor<2x16x256xf32>
// CHECK-NEXT: nn.reduce sum %[[W]] dims [1]
// CHECK: func.func private @[[$SUM:columns_[0-9]]](%{{.*}}: tensor<2x256xf32>, %{{.*}}: tensor<2x256xf32>, %{{.*}}: tensor<2x256xf32>) -> (tensor<256xf32>, tensor<256xf32>, tensor<4x64xbf16>)
// What is made of the sums comes after them.
// CHECK-LABEL: func.func @train
// CHECK-SAME: %[[DY:.*]]: tensor<32x256xbf16>, %[[X:.*]]: tensor<2x16x256xf32>, %[[R:.*]]: tensor<2x16xf32>, %[[DZ:.*]]: tensor<2x16x256xbf16>
// CHECK-NEXT: %[[P:.*]]:4 = nn.launch @[[$NORM]](%[[DY]], %[[X]], %[[R]], %[[DZ]])
// CHECK-NEXT: %[[S:.*]]:3 = nn.launch @[[$SUM]](%[[P]]#1, %[[P]]#2, %[[P]]#3)
// CHECK-NEXT: %[[V:.*]] = nn.reshape %[[S]]#1
// CHECK: return %[[P]]#0, %[[S]]#0, %[[V]], %[[S]]#2
func.func @train(%dy: tensor<32x256xbf16>, %x: tensor<2x16x256xf32>, %r: tensor<2x16xf32>, %dz: tensor<2x16x256xbf16>) -> (tensor<2x16x256xbf16>, tensor<256xf32>, tensor<2x128xf32>, tensor<4x64xbf16>) {
  %0:2 = nn.launch @scale_and_bias(%dy, %x) : (tensor<32x256xbf16>, tensor<2x16x256xf32>) -> (tensor<256xf32>, tensor<256xf32>)
  %1 = nn.reshape %0#1 : tensor<256xf32> -> tensor<2x128xf32>
  %2 = nn.launch @norm_0(%dy, %x, %r, %dz) : (tensor<32x256xbf16>, tensor<2x16x256xf32>, tensor<2x16xf32>, tensor<2x16x256xbf16>) -> tensor<2x16x256xbf16>
  %3 = nn.reshape %2 : tensor<2x16x256xbf16> -> tensor<32x256xbf16>
  %4 = nn.launch @bias(%3) : (tensor<32x256xbf16>) -> tensor<4x64xbf16>
  return %2, %0#0, %1, %4 : tensor<2x16x256xbf16>, tensor<256xf32>, tensor<2x128xf32>, tensor<4x64xbf16>
}

// Not where the rows need the sums themselves, or what is summed is not theirs.
func.func private @rows(%x: tensor<32x256xf32>, %b: tensor<256xf32>) -> (tensor<32x256xf32>, tensor<32xf32>) attributes {nn.inplace = [], nn.kernel} {
  %0 = nn.broadcast %b dims [1] : tensor<256xf32> -> tensor<32x256xf32>
  %1 = nn.mul %x, %0 : tensor<32x256xf32>
  %2 = nn.reduce sum %1 dims [1] : tensor<32x256xf32> -> tensor<32xf32>
  return %1, %2 : tensor<32x256xf32>, tensor<32xf32>
}
func.func private @column_sums(%x: tensor<32x256xf32>) -> tensor<256xf32> attributes {nn.inplace = [], nn.kernel} {
  %0 = nn.reduce sum %x dims [0] : tensor<32x256xf32> -> tensor<256xf32>
  return %0 : tensor<256xf32>
}
func.func private @bias_of_others(%a: tensor<32x256xf32>, %b: tensor<32x256xf32>) -> tensor<256xf32> attributes {nn.inplace = [], nn.kernel} {
  %0 = nn.add %a, %b : tensor<32x256xf32>
  %1 = nn.reduce sum %0 dims [0] : tensor<32x256xf32> -> tensor<256xf32>
  return %1 : tensor<256xf32>
}
// CHECK-LABEL: func.func @apart
// CHECK: nn.launch @column_sums(
// CHECK: nn.launch @rows(
// CHECK: nn.launch @bias_of_others(
func.func @apart(%x: tensor<32x256xf32>, %y: tensor<32x256xf32>) -> (tensor<32xf32>, tensor<256xf32>) {
  %0 = nn.launch @column_sums(%x) : (tensor<32x256xf32>) -> tensor<256xf32>
  %1:2 = nn.launch @rows(%y, %0) : (tensor<32x256xf32>, tensor<256xf32>) -> (tensor<32x256xf32>, tensor<32xf32>)
  %2 = nn.launch @bias_of_others(%1#0, %x) : (tensor<32x256xf32>, tensor<32x256xf32>) -> tensor<256xf32>
  return %1#1, %2 : tensor<32xf32>, tensor<256xf32>
}
