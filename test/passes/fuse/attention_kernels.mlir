// Attention is a launch, its gradient two; equal layers share kernels.
// RUN: zero-opt %s --nn-attention-kernels | FileCheck %s --implicit-check-not=nn.warpgroups
// RUN: zero-opt %s --nn-attention-kernels=warpgroups=true | FileCheck %s --check-prefix=GROUPS
// GROUPS: func.func private @attention_0{{.*}}nn.kernel, nn.warpgroups}
// GROUPS: func.func private @mul_reduce{{.*}}nn.kernel}
// GROUPS: func.func private @attention_grad_by_row_sums_0{{.*}}nn.kernel, nn.warpgroups}
// The sum of all of dk is zero but for rounding.
// RUN: for f in train packed; do zero-opt %s --nn-evaluate="function=$f digits=4" -o /dev/null; done | sed "s/sum [^ ]*//" > %t.whole
// RUN: for f in train packed; do zero-opt %s --nn-attention-kernels --nn-evaluate="function=$f digits=4" -o /dev/null; done | sed "s/sum [^ ]*//" > %t.kernels
// RUN: diff %t.whole %t.kernels && FileCheck %s --check-prefix=VALUES < %t.kernels
// VALUES-COUNT-4: tensor<

// CHECK: func.func private @attention_0(%[[Q:.*]]: tensor<1x4x5x8xf32>, %[[K:.*]]: tensor<1x2x6x8xf32>, %[[V:.*]]: tensor<1x2x6x8xf32>) -> (tensor<1x4x5x8xf32>, tensor<1x4x5xf32>)
// CHECK-SAME: nn.inplace = [], nn.kernel
// CHECK-NEXT: nn.attention %[[Q]], %[[K]], %[[V]] {causal = true, scale = 5.000000e-01 : f32}
// CHECK: func.func private @[[$SUMS:.*]](%[[OUT:.*]]: tensor<1x4x5x8xf32>, %[[DOUT:.*]]: tensor<1x4x5x8xf32>) -> tensor<1x4x5xf32>
// CHECK-NEXT: %[[PRODUCT:.*]] = nn.mul %[[OUT]], %[[DOUT]]
// CHECK-NEXT: nn.reduce sum %[[PRODUCT]] dims [3]
// CHECK: func.func private @attention_grad_by_row_sums_0(
// CHECK: nn.attention_grad_by_row_sums
// CHECK-NOT: nn.kernel
// CHECK-LABEL: func.func @train
// CHECK-NEXT: %[[Y:.*]]:2 = nn.launch @attention_0(%arg0, %arg1, %arg2)
// CHECK-NEXT: %[[Z:.*]]:2 = nn.launch @attention_0(%[[Y]]#0, %arg1, %arg2)
// CHECK-NEXT: %[[D:.*]] = nn.launch @[[$SUMS]](%[[Z]]#0, %arg3)
// CHECK-NEXT: %{{.*}}:3 = nn.launch @attention_grad_by_row_sums_0(%[[Y]]#0, %arg1, %arg2, %[[Z]]#1, %[[D]], %arg3)
// CHECK-NEXT: return
func.func @train(%q: tensor<1x4x5x8xf32>, %k: tensor<1x2x6x8xf32>, %v: tensor<1x2x6x8xf32>, %dz: tensor<1x4x5x8xf32>) -> (tensor<1x4x5x8xf32>, tensor<1x2x6x8xf32>, tensor<1x2x6x8xf32>) {
  %y, %l = nn.attention %q, %k, %v {causal = true, scale = 0.5 : f32} : (tensor<1x4x5x8xf32>, tensor<1x2x6x8xf32>, tensor<1x2x6x8xf32>) -> (tensor<1x4x5x8xf32>, tensor<1x4x5xf32>)
  %z, %lse = nn.attention %y, %k, %v {causal = true, scale = 0.5 : f32} : (tensor<1x4x5x8xf32>, tensor<1x2x6x8xf32>, tensor<1x2x6x8xf32>) -> (tensor<1x4x5x8xf32>, tensor<1x4x5xf32>)
  %dq, %dk, %dv = nn.attention_grad %y, %k, %v, %z, %lse, %dz {causal = true, scale = 0.5 : f32} : (tensor<1x4x5x8xf32>, tensor<1x2x6x8xf32>, tensor<1x2x6x8xf32>, tensor<1x4x5x8xf32>, tensor<1x4x5xf32>, tensor<1x4x5x8xf32>) -> (tensor<1x4x5x8xf32>, tensor<1x2x6x8xf32>, tensor<1x2x6x8xf32>)
  return %dq, %dk, %dv : tensor<1x4x5x8xf32>, tensor<1x2x6x8xf32>, tensor<1x2x6x8xf32>
}

// What one tensor is to several operands is one argument.
// CHECK: func.func private @attention_1(%[[X:.*]]: tensor<1x2x4x8xbf16>) -> (tensor<1x2x4x8xbf16>, tensor<1x2x4xf32>)
// CHECK-NEXT: nn.attention %[[X]], %[[X]], %[[X]]
// CHECK-LABEL: func.func @itself
// CHECK: nn.launch @attention_1(%arg0)
// Half precision is widened where it is summed.
// CHECK: nn.launch @[[NARROW:.*]](%{{.*}}#0, %arg1) : (tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>) -> tensor<1x2x4xf32>
func.func @itself(%x: tensor<1x2x4x8xbf16>, %dy: tensor<1x2x4x8xbf16>) -> tensor<1x2x4x8xbf16> {
  %y, %lse = nn.attention %x, %x, %x {scale = 0.5 : f32} : (tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>) -> (tensor<1x2x4x8xbf16>, tensor<1x2x4xf32>)
  %dq, %dk, %dv = nn.attention_grad %x, %x, %x, %y, %lse, %dy {scale = 0.5 : f32} : (tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>, tensor<1x2x4xf32>, tensor<1x2x4x8xbf16>) -> (tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>)
  return %dq : tensor<1x2x4x8xbf16>
}

// The gradient of what is packed is one, and the kernel writes it whole.
// CHECK-LABEL: func.func @packed
// CHECK-NEXT: %[[Y:.*]]:2 = nn.launch @attention_2(%arg0) : (tensor<1x5x8x8xf32>) -> (tensor<1x5x4x8xf32>, tensor<1x5x4xf32>)
// CHECK-NEXT: %[[D:.*]] = nn.launch @{{.*}}(%[[Y]]#0, %arg1)
// CHECK-NEXT: %[[DX:.*]] = nn.launch @attention_grad_by_row_sums_2(%arg0, %[[Y]]#1, %[[D]], %arg1) : (tensor<1x5x8x8xf32>, tensor<1x5x4xf32>, tensor<1x5x4xf32>, tensor<1x5x4x8xf32>) -> tensor<1x5x8x8xf32>
// CHECK-NEXT: return %[[DX]]
func.func @packed(%x: tensor<1x5x8x8xf32>, %dy: tensor<1x5x4x8xf32>) -> tensor<1x5x8x8xf32> {
  %y, %lse = nn.attention %x, %x, %x {bshd = true, causal = true, packed_kv_heads = 2 : i64, scale = 0.5 : f32} : (tensor<1x5x8x8xf32>, tensor<1x5x8x8xf32>, tensor<1x5x8x8xf32>) -> (tensor<1x5x4x8xf32>, tensor<1x5x4xf32>)
  %dx = nn.attention_grad %x, %x, %x, %y, %lse, %dy {bshd = true, causal = true, packed_kv_heads = 2 : i64, scale = 0.5 : f32} : (tensor<1x5x8x8xf32>, tensor<1x5x8x8xf32>, tensor<1x5x8x8xf32>, tensor<1x5x4x8xf32>, tensor<1x5x4xf32>, tensor<1x5x4x8xf32>) -> tensor<1x5x8x8xf32>
  return %dx : tensor<1x5x8x8xf32>
}
