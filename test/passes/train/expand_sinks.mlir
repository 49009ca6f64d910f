// RUN: zero-opt %s --nn-expand-sinks | FileCheck %s
// RUN: for f in heads positions blind; do zero-opt %s --nn-evaluate="function=$f digits=4" -o /dev/null; done > %t.before
// RUN: for f in heads positions blind; do zero-opt %s --nn-expand-sinks --nn-evaluate="function=$f digits=4" -o /dev/null; done | diff %t.before -
// RUN: FileCheck %s --check-prefix=VALUES --input-file=%t.before
// VALUES-COUNT-6: tensor<

// CHECK-LABEL: @heads
// CHECK-SAME: (%[[S:[^:]*]]: tensor<4xf32>,
// CHECK: %[[Y:.*]], %[[LSE:.*]] = nn.attention %{{[^ ]*}}, %{{[^ ]*}}, %{{[^ ]*}} {causal
// CHECK: %[[OF:.*]] = nn.broadcast %[[S]] dims [1] : tensor<4xf32> -> tensor<2x4x3xf32>
// CHECK: %[[PEAK:.*]] = nn.max %[[LSE]], %[[OF]]
// CHECK: %[[ALL:.*]] = nn.add %[[PEAK]],
// CHECK: %[[LESS:.*]] = nn.sub %[[LSE]], %[[ALL]]
// CHECK: %[[PART:.*]] = nn.exp %[[LESS]]
// CHECK: %[[ROWS:.*]] = nn.broadcast %[[PART]]
// CHECK: %[[OUT:.*]] = nn.mul %[[Y]], %[[ROWS]]
// CHECK: return %[[OUT]], %[[ALL]]
func.func @heads(%s: tensor<4xf32>, %q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x8xf32>) -> (tensor<2x4x3x8xf32>, tensor<2x4x3xf32>) {
  %y, %l = nn.attention %q, %k, %v sink %s {causal = true, scale = 0.5 : f32} : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>, tensor<4xf32>) -> (tensor<2x4x3x8xf32>, tensor<2x4x3xf32>)
  return %y, %l : tensor<2x4x3x8xf32>, tensor<2x4x3xf32>
}

// The heads of a position side by side; sinks far below and far above all scores.
// CHECK-LABEL: @positions
// CHECK: nn.broadcast %{{.*}} dims [2] : tensor<4xf32> -> tensor<2x3x4xf32>
func.func @positions(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>, %v: tensor<2x5x2x8xf32>) -> (tensor<2x3x4x8xf32>, tensor<2x3x4xf32>) {
  %s = nn.constant dense<[-1.0e9, 0.0, 1.5, 1.0e9]> : tensor<4xf32>
  %y, %l = nn.attention %q, %k, %v sink %s {bshd = true, scale = 0.5 : f32} : (tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32>, tensor<4xf32>) -> (tensor<2x3x4x8xf32>, tensor<2x3x4xf32>)
  return %y, %l : tensor<2x3x4x8xf32>, tensor<2x3x4xf32>
}

// Rows that see no key: zeros, and the sink is all that is summed.
// CHECK-LABEL: @blind
func.func @blind(%q: tensor<1x1x4x8xf32>, %k: tensor<1x1x2x8xf32>) -> (tensor<1x1x4x8xf32>, tensor<1x1x4xf32>) {
  %s = nn.constant dense<0.5> : tensor<1xf32>
  %y, %l = nn.attention %q, %k, %k sink %s {causal = true, scale = 0.5 : f32} : (tensor<1x1x4x8xf32>, tensor<1x1x2x8xf32>, tensor<1x1x2x8xf32>, tensor<1xf32>) -> (tensor<1x1x4x8xf32>, tensor<1x1x4xf32>)
  return %y, %l : tensor<1x1x4x8xf32>, tensor<1x1x4xf32>
}
