// Few and long columns are summed in parts, which a second kernel adds up.
// RUN: zero-opt %s --nn-split-columns="columns=64 least=0" | FileCheck %s
// RUN: for f in train fewer; do zero-opt %s --nn-evaluate="function=$f digits=4" -o /dev/null; done > %t.whole
// RUN: for f in train fewer; do zero-opt %s --nn-split-columns="columns=64 least=0" --nn-evaluate="function=$f digits=4" -o /dev/null; done > %t.parts
// RUN: diff %t.whole %t.parts && FileCheck %s --check-prefix=VALUES < %t.parts
// VALUES-COUNT-7: result tensor<{{8|4|2x2}}xf32>:

// The kernels of before go; new ones have names of their own.
// CHECK-NOT: func.func private @{{columns_0|scale_and_bias}}
func.func private @columns_0(%dy: tensor<4x64x8xf32>) -> tensor<8xf32> attributes {nn.inplace = [], nn.kernel} {
  %0 = nn.reshape %dy : tensor<4x64x8xf32> -> tensor<256x8xf32>
  %1 = nn.reduce sum %0 dims [0] : tensor<256x8xf32> -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
func.func private @scale_and_bias(%x: tensor<256x8xf32>, %dy: tensor<256x8xf32>) -> (tensor<8xf32>, tensor<8xf32>) attributes {nn.inplace = [], nn.kernel} {
  %0 = nn.mul %x, %dy : tensor<256x8xf32>
  %1 = nn.reduce sum %0 dims [0] : tensor<256x8xf32> -> tensor<8xf32>
  %2 = nn.reduce sum %dy dims [0] : tensor<256x8xf32> -> tensor<8xf32>
  return %1, %2 : tensor<8xf32>, tensor<8xf32>
}

// Every eighth row makes a part. Equal launches share kernels.
// CHECK: func.func private @[[$PARTS:columns_[1-9]]](%[[DY:.*]]: tensor<4x64x8xf32>) -> tensor<8x8xf32> attributes {nn.inplace = [], nn.kernel} {
// CHECK-NEXT: %[[M:.*]] = nn.reshape %[[DY]] : tensor<4x64x8xf32> -> tensor<256x8xf32>
// CHECK-NEXT: %[[V:.*]] = nn.reshape %[[M]] : tensor<256x8xf32> -> tensor<32x8x8xf32>
// CHECK-NEXT: %[[R:.*]] = nn.reduce sum %[[V]] dims [0] : tensor<32x8x8xf32> -> tensor<8x8xf32>
// CHECK-NEXT: return %[[R]]
// CHECK: func.func private @[[$SUM:columns_[1-9]]](%[[P:.*]]: tensor<8x8xf32>) -> tensor<8xf32> attributes {nn.inplace = [], nn.kernel} {
// CHECK-NEXT: %[[R:.*]] = nn.reduce sum %[[P]] dims [0] : tensor<8x8xf32> -> tensor<8xf32>
// CHECK-NEXT: return %[[R]]
// CHECK: func.func private @[[$PARTS2:columns_[1-9]]](%[[X:.*]]: tensor<256x8xf32>, %[[DY:.*]]: tensor<256x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>)
// CHECK-NEXT: %[[M:.*]] = nn.mul %[[X]], %[[DY]]
// CHECK-NEXT: %[[V:.*]] = nn.reshape %[[M]] : tensor<256x8xf32> -> tensor<32x8x8xf32>
// CHECK-NEXT: %[[R:.*]] = nn.reduce sum %[[V]] dims [0]
// CHECK-NEXT: %[[W:.*]] = nn.reshape %[[DY]] : tensor<256x8xf32> -> tensor<32x8x8xf32>
// CHECK-NEXT: %[[S:.*]] = nn.reduce sum %[[W]] dims [0]
// CHECK-NEXT: return %[[R]], %[[S]]
// CHECK: func.func private @[[$SUM2:columns_[1-9]]](%[[P:.*]]: tensor<8x8xf32>, %[[Q:.*]]: tensor<8x8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
// CHECK-NEXT: %[[R:.*]] = nn.reduce sum %[[P]] dims [0]
// CHECK-NEXT: %[[S:.*]] = nn.reduce sum %[[Q]] dims [0]
// CHECK-NEXT: return %[[R]], %[[S]]
// CHECK-NOT: func.func private
// CHECK-LABEL: func.func @train
// CHECK-SAME: %[[DY:.*]]: tensor<4x64x8xf32>, %[[DZ:.*]]: tensor<4x64x8xf32>, %[[X:.*]]: tensor<256x8xf32>, %[[DU:.*]]: tensor<256x8xf32>
// CHECK-NEXT: %[[P0:.*]] = nn.launch @[[$PARTS]](%[[DY]]) : (tensor<4x64x8xf32>) -> tensor<8x8xf32>
// CHECK-NEXT: %[[S0:.*]] = nn.launch @[[$SUM]](%[[P0]]) : (tensor<8x8xf32>) -> tensor<8xf32>
// CHECK-NEXT: %[[P1:.*]] = nn.launch @[[$PARTS]](%[[DZ]])
// CHECK-NEXT: %[[S1:.*]] = nn.launch @[[$SUM]](%[[P1]])
// CHECK-NEXT: %[[P2:.*]]:2 = nn.launch @[[$PARTS2]](%[[X]], %[[DU]])
// CHECK-NEXT: %[[S2:.*]]:2 = nn.launch @[[$SUM2]](%[[P2]]#0, %[[P2]]#1)
// CHECK-NEXT: return %[[S0]], %[[S1]], %[[S2]]#0, %[[S2]]#1
func.func @train(%dy: tensor<4x64x8xf32>, %dz: tensor<4x64x8xf32>, %x: tensor<256x8xf32>, %du: tensor<256x8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %0 = nn.launch @columns_0(%dy) : (tensor<4x64x8xf32>) -> tensor<8xf32>
  %1 = nn.launch @columns_0(%dz) : (tensor<4x64x8xf32>) -> tensor<8xf32>
  %2:2 = nn.launch @scale_and_bias(%x, %du) : (tensor<256x8xf32>, tensor<256x8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return %0, %1, %2#0, %2#1 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// Fewer parts, where more would sum fewer than 16 terms each, or the rows are no multiple of more. What the sum is of is computed by
// the first kernel; it reads a tensor once.
func.func private @narrow(%dy: tensor<64x8xbf16>) -> tensor<8xf32> attributes {nn.inplace = [], nn.kernel} {
  %0 = nn.cast %dy : tensor<64x8xbf16> -> tensor<64x8xf32>
  %1 = nn.reduce sum %0 dims [0] : tensor<64x8xf32> -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
func.func private @product(%x: tensor<132x4xf32>, %dy: tensor<132x4xf32>) -> tensor<4xf32> attributes {nn.inplace = [], nn.kernel} {
  %0 = nn.mul %x, %dy : tensor<132x4xf32>
  %1 = nn.reduce sum %0 dims [0] : tensor<132x4xf32> -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @heads(%dy: tensor<4x12x2x2xf32>) -> tensor<2x2xf32> attributes {nn.inplace = [], nn.kernel} {
  %0 = nn.reduce sum %dy dims [0, 1] : tensor<4x12x2x2xf32> -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}
// CHECK-NOT: func.func private @{{narrow|product|heads}}
// CHECK: func.func private @{{.*}}(%{{.*}}: tensor<64x8xbf16>) -> tensor<4x8xf32>
// CHECK-NEXT: nn.cast
// CHECK: nn.reduce sum %{{.*}} dims [0] : tensor<16x4x8xf32> -> tensor<4x8xf32>
// CHECK: nn.mul %[[X:.*]], %[[X]] : tensor<132x4xf32>
// CHECK: nn.reduce sum %{{.*}} dims [0] : tensor<33x4x4xf32> -> tensor<4x4xf32>
// CHECK: nn.reshape %{{.*}} : tensor<4x12x2x2xf32> -> tensor<24x2x2x2xf32>
// CHECK-NEXT: nn.reduce sum %{{.*}} dims [0] : tensor<24x2x2x2xf32> -> tensor<2x2x2xf32>
// CHECK-LABEL: func.func @fewer
// CHECK-NEXT: %[[P0:.*]] = nn.launch @{{.*}}(%arg0) : (tensor<64x8xbf16>) -> tensor<4x8xf32>
// CHECK-NEXT: nn.launch @{{.*}}(%[[P0]]) : (tensor<4x8xf32>) -> tensor<8xf32>
// CHECK-NEXT: %[[P1:.*]] = nn.launch @{{.*}}(%arg1) : (tensor<132x4xf32>) -> tensor<4x4xf32>
// CHECK-NEXT: nn.launch @{{.*}}(%[[P1]]) : (tensor<4x4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[P2:.*]] = nn.launch @{{.*}}(%arg2) : (tensor<4x12x2x2xf32>) -> tensor<2x2x2xf32>
// CHECK-NEXT: nn.launch @{{.*}}(%[[P2]]) : (tensor<2x2x2xf32>) -> tensor<2x2xf32>
// CHECK-NEXT: return
func.func @fewer(%dy: tensor<64x8xbf16>, %x: tensor<132x4xf32>, %dz: tensor<4x12x2x2xf32>) -> (tensor<8xf32>, tensor<4xf32>, tensor<2x2xf32>) {
  %0 = nn.launch @narrow(%dy) : (tensor<64x8xbf16>) -> tensor<8xf32>
  %1 = nn.launch @product(%x, %x) : (tensor<132x4xf32>, tensor<132x4xf32>) -> tensor<4xf32>
  %2 = nn.launch @heads(%dz) : (tensor<4x12x2x2xf32>) -> tensor<2x2xf32>
  return %0, %1, %2 : tensor<8xf32>, tensor<4xf32>, tensor<2x2xf32>
}

// Columns stay that are many enough, have fewer than 32 rows or an odd number of them, and kernels that do something else, also beside a sum or
// after it.
func.func private @enough(%dy: tensor<64x64xf32>) -> tensor<64xf32> attributes {nn.inplace = [], nn.kernel} {
  %0 = nn.reduce sum %dy dims [0] : tensor<64x64xf32> -> tensor<64xf32>
  return %0 : tensor<64xf32>
}
func.func private @short(%dy: tensor<30x8xf32>) -> tensor<8xf32> attributes {nn.inplace = [], nn.kernel} {
  %0 = nn.reduce sum %dy dims [0] : tensor<30x8xf32> -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @odd(%dy: tensor<63x8xf32>) -> tensor<8xf32> attributes {nn.inplace = [], nn.kernel} {
  %0 = nn.reduce sum %dy dims [0] : tensor<63x8xf32> -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @beside(%x: tensor<64x8xf32>) -> (tensor<8xf32>, tensor<8xf32>) attributes {nn.inplace = [], nn.kernel} {
  %0 = nn.reduce max %x dims [0] : tensor<64x8xf32> -> tensor<8xf32>
  %1 = nn.reduce sum %x dims [0] : tensor<64x8xf32> -> tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}
func.func private @after(%x: tensor<64x8xf32>) -> tensor<8xf32> attributes {nn.inplace = [], nn.kernel} {
  %0 = nn.reduce sum %x dims [0] : tensor<64x8xf32> -> tensor<8xf32>
  %1 = nn.tanh %0 : tensor<8xf32>
  return %1 : tensor<8xf32>
}
func.func private @in_rows(%x: tensor<64x8xf32>) -> tensor<64xf32> attributes {nn.inplace = [], nn.kernel} {
  %0 = nn.reduce sum %x dims [1] : tensor<64x8xf32> -> tensor<64xf32>
  return %0 : tensor<64xf32>
}
// CHECK-LABEL: func.func @whole
// CHECK-NEXT: nn.launch @enough(
// CHECK-NEXT: nn.launch @short(
// CHECK-NEXT: nn.launch @odd(
// CHECK-NEXT: nn.launch @beside(
// CHECK-NEXT: nn.launch @after(
// CHECK-NEXT: nn.launch @in_rows(
// CHECK-NEXT: return
func.func @whole(%w: tensor<64x64xf32>, %s: tensor<30x8xf32>, %o: tensor<63x8xf32>, %x: tensor<64x8xf32>) {
  %0 = nn.launch @enough(%w) : (tensor<64x64xf32>) -> tensor<64xf32>
  %1 = nn.launch @short(%s) : (tensor<30x8xf32>) -> tensor<8xf32>
  %2 = nn.launch @odd(%o) : (tensor<63x8xf32>) -> tensor<8xf32>
  %3:2 = nn.launch @beside(%x) : (tensor<64x8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  %4 = nn.launch @after(%x) : (tensor<64x8xf32>) -> tensor<8xf32>
  %5 = nn.launch @in_rows(%x) : (tensor<64x8xf32>) -> tensor<64xf32>
  return
}
