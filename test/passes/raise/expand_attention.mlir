// Attention as products and softmax computes the same.
// RUN: zero-opt %s --nn-expand-attention | FileCheck %s
// RUN: for f in grouped masked late banded sunk hidden; do zero-opt %s --nn-evaluate="function=$f digits=4" -o /dev/null; done > %t.attention
// RUN: for f in grouped masked late banded sunk hidden; do zero-opt %s --nn-expand-attention --nn-evaluate="function=$f digits=4" -o /dev/null; done > %t.expanded
// RUN: diff %t.attention %t.expanded && FileCheck %s --check-prefix=VALUES < %t.expanded
// VALUES-COUNT-6: tensor<
// What kernels do is left to them: rows of whole vectors, not too long, of any type but f64. The heads of a position lie side by side there.
// RUN: for f in grouped masked late sliced stacked swapped wider hidden; do zero-opt %s --nn-evaluate="function=$f digits=4" -o /dev/null; done > %t.before
// RUN: for f in grouped masked late sliced stacked swapped wider hidden; do zero-opt %s --nn-expand-attention="kernels" --nn-evaluate="function=$f digits=4" -o /dev/null; done > %t.kernels
// RUN: diff %t.before %t.kernels
// RUN: zero-opt %s --nn-expand-attention="kernels" | FileCheck %s --check-prefix=KERNELS
// KERNELS-LABEL: @grouped
// KERNELS: %[[Q:.*]] = nn.transpose %{{.*}} perm [0, 2, 1, 3] : tensor<2x4x3x8xf32> -> tensor<2x3x4x8xf32>
// KERNELS: %[[Y:.*]], %{{.*}} = nn.attention %[[Q]], {{.*}} {bshd = true, causal = true, scale = 5.000000e-01 : f32} : (tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32>) -> (tensor<2x3x4x8xf32>, tensor<2x3x4xf32>)
// KERNELS: nn.transpose %[[Y]] perm [0, 2, 1, 3] : tensor<2x3x4x8xf32> -> tensor<2x4x3x8xf32>
// KERNELS-LABEL: @masked
// KERNELS-NOT: nn.attention
// KERNELS-LABEL: @late
// KERNELS-NOT: nn.attention
// KERNELS-LABEL: @long
// KERNELS-NOT: nn.attention
// KERNELS-LABEL: @longest
// KERNELS: nn.attention
// KERNELS-LABEL: @exact
// KERNELS-NOT: nn.attention
// What one projection makes is read where it lies, if it is q, k and v in this order and nothing else, and nothing of it is moved.
// KERNELS-LABEL: @sliced
// KERNELS-NEXT: %[[X:.*]] = nn.reshape %arg0 : tensor<6x64xf32> -> tensor<2x3x8x8xf32>
// KERNELS-NEXT: %[[Y:.*]], %{{.*}} = nn.attention %[[X]], %[[X]], %[[X]] {bshd = true, causal = true, packed_kv_heads = 2 : i64, scale = 5.000000e-01 : f32} : (tensor<2x3x8x8xf32>, tensor<2x3x8x8xf32>, tensor<2x3x8x8xf32>) -> (tensor<2x3x4x8xf32>, tensor<2x3x4xf32>)
// KERNELS-NEXT: nn.transpose %[[Y]] perm [0, 2, 1, 3]
// KERNELS-NEXT: return
// KERNELS-LABEL: @stacked
// KERNELS-NEXT: %[[X:.*]] = nn.reshape %arg0 : tensor<2x3x48xf32> -> tensor<2x3x6x8xf32>
// KERNELS-NEXT: nn.attention %[[X]], %[[X]], %[[X]] {{.*}}packed_kv_heads = 2 : i64
// KERNELS-LABEL: @swapped
// KERNELS-NOT: packed
// KERNELS: nn.attention
// KERNELS-LABEL: @wider
// KERNELS-NOT: packed
// KERNELS: nn.attention
// KERNELS-LABEL: @banded
// KERNELS-NOT: nn.attention
// KERNELS-LABEL: @constant
// KERNELS-NOT: packed
// KERNELS: nn.attention

// Two query heads share a key head: they are rows of one product. The triangle is a comparison.
// CHECK-LABEL: @grouped
// CHECK: nn.matmul %{{.*}}, %{{.*}} {transpose_rhs = true} : (tensor<4x6x8xf32>, tensor<4x5x8xf32>) -> tensor<4x6x5xf32>
// CHECK: nn.compare ge %{{.*}}, %{{.*}} : tensor<3x5xi64> -> tensor<3x5xi1>
// CHECK: nn.select
// CHECK-NOT: nn.select
// CHECK: nn.softmax
// CHECK-NOT: nn.select
// CHECK: nn.matmul %{{.*}} : (tensor<4x6x5xf32>, tensor<4x5x8xf32>) -> tensor<4x6x8xf32>
func.func @grouped(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x8xf32>) -> tensor<2x4x3x8xf32> {
  %y, %lse = nn.attention %q, %k, %v {causal = true, scale = 0.5 : f32} : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>) -> (tensor<2x4x3x8xf32>, tensor<2x4x3xf32>)
  return %y : tensor<2x4x3x8xf32>
}

// The second row of the mask sees nothing: zeros.
// CHECK-LABEL: @masked
// CHECK: nn.reduce max
// CHECK: nn.softmax
// CHECK: nn.select
// CHECK-NOT: nn.attention
func.func @masked(%q: tensor<1x2x3x4xf32>, %k: tensor<1x2x3x4xf32>, %v: tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32> {
  %mask = nn.constant dense<[[[[0.0, 1.0, 0xFF800000], [0xFF800000, 0xFF800000, 0xFF800000], [-2.0, 0.0, 0.5]]]]> : tensor<1x1x3x3xf32>
  %y, %lse = nn.attention %q, %k, %v mask %mask {scale = 1.0 : f32} : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x1x3x3xf32>) -> (tensor<1x2x3x4xf32>, tensor<1x2x3xf32>)
  return %y : tensor<1x2x3x4xf32>
}

// The first queries stand before all keys.
// CHECK-LABEL: @late
// CHECK: nn.softmax
// CHECK: nn.select
// CHECK-NOT: nn.attention
func.func @late(%q: tensor<1x1x4x4xf32>, %k: tensor<1x1x2x4xf32>, %v: tensor<1x1x2x4xf32>) -> tensor<1x1x4x4xf32> {
  %y, %lse = nn.attention %q, %k, %v {causal = true, scale = 1.0 : f32} : (tensor<1x1x4x4xf32>, tensor<1x1x2x4xf32>, tensor<1x1x2x4xf32>) -> (tensor<1x1x4x4xf32>, tensor<1x1x4xf32>)
  return %y : tensor<1x1x4x4xf32>
}

func.func @long(%q: tensor<1x1x2x136xf32>) -> tensor<1x1x2x136xf32> {
  %y, %lse = nn.attention %q, %q, %q {scale = 1.0 : f32} : (tensor<1x1x2x136xf32>, tensor<1x1x2x136xf32>, tensor<1x1x2x136xf32>) -> (tensor<1x1x2x136xf32>, tensor<1x1x2xf32>)
  return %y : tensor<1x1x2x136xf32>
}

func.func @longest(%q: tensor<1x1x2x128xf32>) -> tensor<1x1x2x128xf32> {
  %y, %lse = nn.attention %q, %q, %q {scale = 1.0 : f32} : (tensor<1x1x2x128xf32>, tensor<1x1x2x128xf32>, tensor<1x1x2x128xf32>) -> (tensor<1x1x2x128xf32>, tensor<1x1x2xf32>)
  return %y : tensor<1x1x2x128xf32>
}

func.func @exact(%q: tensor<1x1x2x8xf64>) -> tensor<1x1x2x8xf64> {
  %y, %lse = nn.attention %q, %q, %q {scale = 1.0 : f32} : (tensor<1x1x2x8xf64>, tensor<1x1x2x8xf64>, tensor<1x1x2x8xf64>) -> (tensor<1x1x2x8xf64>, tensor<1x1x2xf64>)
  return %y : tensor<1x1x2x8xf64>
}

func.func @sliced(%x: tensor<6x64xf32>) -> tensor<2x4x3x8xf32> {
  %a = nn.reshape %x : tensor<6x64xf32> -> tensor<2x3x64xf32>
  %q0 = nn.slice %a starts [0, 0, 0] sizes [2, 3, 32] steps [1, 1, 1] : tensor<2x3x64xf32> -> tensor<2x3x32xf32>
  %k0 = nn.slice %x starts [0, 32] sizes [6, 16] steps [1, 1] : tensor<6x64xf32> -> tensor<6x16xf32>
  %v0 = nn.slice %a starts [0, 0, 48] sizes [2, 3, 16] steps [1, 1, 1] : tensor<2x3x64xf32> -> tensor<2x3x16xf32>
  %q1 = nn.reshape %q0 : tensor<2x3x32xf32> -> tensor<2x3x4x8xf32>
  %k1 = nn.reshape %k0 : tensor<6x16xf32> -> tensor<2x3x2x8xf32>
  %v1 = nn.reshape %v0 : tensor<2x3x16xf32> -> tensor<2x3x2x8xf32>
  %q = nn.transpose %q1 perm [0, 2, 1, 3] : tensor<2x3x4x8xf32> -> tensor<2x4x3x8xf32>
  %k = nn.transpose %k1 perm [0, 2, 1, 3] : tensor<2x3x2x8xf32> -> tensor<2x2x3x8xf32>
  %v = nn.transpose %v1 perm [0, 2, 1, 3] : tensor<2x3x2x8xf32> -> tensor<2x2x3x8xf32>
  %y, %lse = nn.attention %q, %k, %v {causal = true, scale = 0.5 : f32} : (tensor<2x4x3x8xf32>, tensor<2x2x3x8xf32>, tensor<2x2x3x8xf32>) -> (tensor<2x4x3x8xf32>, tensor<2x4x3xf32>)
  return %y : tensor<2x4x3x8xf32>
}

// As vision transformers take them apart.
func.func @stacked(%x: tensor<2x3x48xf32>) -> tensor<2x2x3x8xf32> {
  %a = nn.reshape %x : tensor<2x3x48xf32> -> tensor<2x3x3x2x8xf32>
  %b = nn.transpose %a perm [2, 0, 3, 1, 4] : tensor<2x3x3x2x8xf32> -> tensor<3x2x2x3x8xf32>
  %q0 = nn.slice %b starts [0, 0, 0, 0, 0] sizes [1, 2, 2, 3, 8] steps [1, 1, 1, 1, 1] : tensor<3x2x2x3x8xf32> -> tensor<1x2x2x3x8xf32>
  %k0 = nn.slice %b starts [1, 0, 0, 0, 0] sizes [1, 2, 2, 3, 8] steps [1, 1, 1, 1, 1] : tensor<3x2x2x3x8xf32> -> tensor<1x2x2x3x8xf32>
  %v0 = nn.slice %b starts [2, 0, 0, 0, 0] sizes [1, 2, 2, 3, 8] steps [1, 1, 1, 1, 1] : tensor<3x2x2x3x8xf32> -> tensor<1x2x2x3x8xf32>
  %q = nn.reshape %q0 : tensor<1x2x2x3x8xf32> -> tensor<2x2x3x8xf32>
  %k = nn.reshape %k0 : tensor<1x2x2x3x8xf32> -> tensor<2x2x3x8xf32>
  %v = nn.reshape %v0 : tensor<1x2x2x3x8xf32> -> tensor<2x2x3x8xf32>
  %y, %lse = nn.attention %q, %k, %v {scale = 0.5 : f32} : (tensor<2x2x3x8xf32>, tensor<2x2x3x8xf32>, tensor<2x2x3x8xf32>) -> (tensor<2x2x3x8xf32>, tensor<2x2x3xf32>)
  return %y : tensor<2x2x3x8xf32>
}

func.func @swapped(%x: tensor<2x3x3x8xf32>) -> tensor<2x1x3x8xf32> {
  %q0 = nn.slice %x starts [0, 0, 1, 0] sizes [2, 3, 1, 8] steps [1, 1, 1, 1] : tensor<2x3x3x8xf32> -> tensor<2x3x1x8xf32>
  %k0 = nn.slice %x starts [0, 0, 0, 0] sizes [2, 3, 1, 8] steps [1, 1, 1, 1] : tensor<2x3x3x8xf32> -> tensor<2x3x1x8xf32>
  %v0 = nn.slice %x starts [0, 0, 2, 0] sizes [2, 3, 1, 8] steps [1, 1, 1, 1] : tensor<2x3x3x8xf32> -> tensor<2x3x1x8xf32>
  %q = nn.reshape %q0 : tensor<2x3x1x8xf32> -> tensor<2x1x3x8xf32>
  %k = nn.reshape %k0 : tensor<2x3x1x8xf32> -> tensor<2x1x3x8xf32>
  %v = nn.reshape %v0 : tensor<2x3x1x8xf32> -> tensor<2x1x3x8xf32>
  %y, %lse = nn.attention %q, %k, %v {scale = 0.5 : f32} : (tensor<2x1x3x8xf32>, tensor<2x1x3x8xf32>, tensor<2x1x3x8xf32>) -> (tensor<2x1x3x8xf32>, tensor<2x1x3xf32>)
  return %y : tensor<2x1x3x8xf32>
}

func.func @wider(%x: tensor<2x3x4x8xf32>) -> tensor<2x1x3x8xf32> {
  %q0 = nn.slice %x starts [0, 0, 0, 0] sizes [2, 3, 1, 8] steps [1, 1, 1, 1] : tensor<2x3x4x8xf32> -> tensor<2x3x1x8xf32>
  %k0 = nn.slice %x starts [0, 0, 1, 0] sizes [2, 3, 1, 8] steps [1, 1, 1, 1] : tensor<2x3x4x8xf32> -> tensor<2x3x1x8xf32>
  %v0 = nn.slice %x starts [0, 0, 2, 0] sizes [2, 3, 1, 8] steps [1, 1, 1, 1] : tensor<2x3x4x8xf32> -> tensor<2x3x1x8xf32>
  %q = nn.reshape %q0 : tensor<2x3x1x8xf32> -> tensor<2x1x3x8xf32>
  %k = nn.reshape %k0 : tensor<2x3x1x8xf32> -> tensor<2x1x3x8xf32>
  %v = nn.reshape %v0 : tensor<2x3x1x8xf32> -> tensor<2x1x3x8xf32>
  %y, %lse = nn.attention %q, %k, %v {scale = 0.5 : f32} : (tensor<2x1x3x8xf32>, tensor<2x1x3x8xf32>, tensor<2x1x3x8xf32>) -> (tensor<2x1x3x8xf32>, tensor<2x1x3xf32>)
  return %y : tensor<2x1x3x8xf32>
}

// Comparisons of positions, and the last query sees nothing.
// CHECK-LABEL: @banded
// CHECK-COUNT-2: nn.compare ge
// CHECK: nn.softmax
// CHECK-NOT: nn.attention
func.func @banded(%q: tensor<1x1x4x4xf32>, %k: tensor<1x1x2x4xf32>, %v: tensor<1x1x2x4xf32>) -> tensor<1x1x4x4xf32> {
  %y, %lse = nn.attention %q, %k, %v {band = array<i64: -1, 0>, scale = 1.0 : f32} : (tensor<1x1x4x4xf32>, tensor<1x1x2x4xf32>, tensor<1x1x2x4xf32>) -> (tensor<1x1x4x4xf32>, tensor<1x1x4xf32>)
  return %y : tensor<1x1x4x4xf32>
}

func.func @constant(%k: tensor<1x1x2x8xf32>) -> tensor<1x1x2x8xf32> {
  %q = nn.constant dense<[[[[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]]]]> : tensor<1x1x2x8xf32>
  %y, %lse = nn.attention %q, %k, %k {scale = 1.0 : f32} : (tensor<1x1x2x8xf32>, tensor<1x1x2x8xf32>, tensor<1x1x2x8xf32>) -> (tensor<1x1x2x8xf32>, tensor<1x1x2xf32>)
  return %y : tensor<1x1x2x8xf32>
}

// One more score for each head, and scores under a cap: for kernels only without the cap.
// KERNELS-LABEL: @sunk
// KERNELS: nn.attention %{{.*}} sink %{{.*}} {bshd = true
// KERNELS-NOT: nn.attention
// CHECK-LABEL: @sunk
// CHECK: nn.concat
// CHECK: nn.softmax %{{.*}} : tensor<2x4x3x6xf32>
// CHECK: nn.slice
// CHECK: nn.tanh
func.func @sunk(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x8xf32>) -> (tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>) {
  %s = nn.constant dense<[-1.0, 0.0, 1.5, 9.0]> : tensor<4xf32>
  %y, %l = nn.attention %q, %k, %v sink %s {causal = true, scale = 0.5 : f32} : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>, tensor<4xf32>) -> (tensor<2x4x3x8xf32>, tensor<2x4x3xf32>)
  %z, %m = nn.attention %q, %k, %v {scale = 0.5 : f32, softcap = 0.7 : f32} : (tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>) -> (tensor<2x4x3x8xf32>, tensor<2x4x3xf32>)
  return %y, %z : tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>
}

// The first rows see nothing but what the mask hides, and weigh what is beyond their bounds, too.
func.func @hidden(%q: tensor<2x4x5x6xf32>, %k: tensor<2x2x5x6xf32>, %v: tensor<2x2x5x6xf32>) -> tensor<2x4x5x6xf32> {
  %mask = nn.constant dense<[[[[0xFF7FFFFF, 0xFF7FFFFF, 0xFF7FFFFF, 0.0, 0.0]]], [[[0xFF7FFFFF, 0.0, 0xFF7FFFFF, 0.0, 0.0]]]]> : tensor<2x1x1x5xf32>
  %y, %lse = nn.attention %q, %k, %v mask %mask {band = array<i64: -1, 0>, beyond = 0xFF7FFFFF : f32, scale = 0.5 : f32} : (tensor<2x4x5x6xf32>, tensor<2x2x5x6xf32>, tensor<2x2x5x6xf32>, tensor<2x1x1x5xf32>) -> (tensor<2x4x5x6xf32>, tensor<2x4x5xf32>)
  return %y : tensor<2x4x5x6xf32>
}
