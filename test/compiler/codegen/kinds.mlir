// RUN: zero-opt %s --nn-emit-kernels="lanes=16 describe" | FileCheck %s

// All dimensions of a pure map are one: the extent counts chunks of 2048 elements.
// CHECK-LABEL: func.func @map(
// CHECK-SAME: extent = 3
// CHECK-SAME: summary = "map add [5000]"
// CHECK-NOT: memref.{{alloc|copy}}
func.func private @map(%x: tensor<10x500xf32>, %y: tensor<5000xf32>) -> tensor<10x500xf32> attributes {nn.kernel} {
  %v = nn.reshape %y : tensor<5000xf32> -> tensor<10x500xf32>
  %s = nn.add %x, %v : tensor<10x500xf32>
  return %s : tensor<10x500xf32>
}

// Sums over rows: chunks of 64 columns, the last one masked, no results in place.
// CHECK-LABEL: func.func @columns(
// CHECK-SAME: extent = 2
// CHECK-SAME: inplace = []
// CHECK-SAME: summary = "columns mul,reduce [40 x 100]"
// CHECK: scf.if
// CHECK: vector.maskedload
// CHECK: vector.load
func.func private @columns(%x: tensor<40x100xf32>, %y: tensor<40x100xf32>) -> (tensor<100xf32>, tensor<100xf32>) attributes {nn.kernel} {
  %p = nn.mul %x, %y : tensor<40x100xf32>
  %a = nn.reduce sum %p dims [0] : tensor<40x100xf32> -> tensor<100xf32>
  %b = nn.reduce sum %x dims [0] : tensor<40x100xf32> -> tensor<100xf32>
  return %a, %b : tensor<100xf32>, tensor<100xf32>
}

// Heads change places, their elements stay together: whole vectors, no gathers.
// CHECK-LABEL: func.func @heads(
// CHECK-NOT: vector.gather
// CHECK: vector.load
// CHECK-NOT: vector.gather
// CHECK: return
func.func private @heads(%x: tensor<4x16x8x32xf32>) -> tensor<4x8x16x32xf32> attributes {nn.kernel} {
  %t = nn.transpose %x perm [0, 2, 1, 3] : tensor<4x16x8x32xf32> -> tensor<4x8x16x32xf32>
  return %t : tensor<4x8x16x32xf32>
}

// Which piece of a concatenation is asked for depends on the head alone: a branch, no masks.
// CHECK-LABEL: func.func @join(
// CHECK-NOT: mask
// CHECK: scf.if
// CHECK: vector.load
// CHECK-NOT: mask
// CHECK: return
func.func private @join(%q: tensor<4x8x16x32xf32>, %k: tensor<4x8x16x32xf32>) -> tensor<4x16x512xf32> attributes {nn.kernel} {
  %qt = nn.transpose %q perm [0, 2, 1, 3] : tensor<4x8x16x32xf32> -> tensor<4x16x8x32xf32>
  %kt = nn.transpose %k perm [0, 2, 1, 3] : tensor<4x8x16x32xf32> -> tensor<4x16x8x32xf32>
  %q3 = nn.reshape %qt : tensor<4x16x8x32xf32> -> tensor<4x16x256xf32>
  %k3 = nn.reshape %kt : tensor<4x16x8x32xf32> -> tensor<4x16x256xf32>
  %c = nn.concat %q3, %k3 dim 2 : (tensor<4x16x256xf32>, tensor<4x16x256xf32>) -> tensor<4x16x512xf32>
  return %c : tensor<4x16x512xf32>
}

// An update in one pass over memory: the row's sum of squares is made beside the stores; both tensors may be updated in place.
// CHECK-LABEL: func.func @update(
// CHECK-SAME: inplace = {{\[}}[0, 0], [0, 1]]
// CHECK: scf.for
// CHECK: scf.for {{.*}} iter_args
// CHECK: vector.store
// CHECK-NOT: scf.for
// CHECK: memref.store
// CHECK: return
func.func private @update(%g: tensor<9x64xf32>, %p: tensor<9x64xf32>) -> (tensor<9x64xf32>, tensor<9xf32>) attributes {nn.kernel} {
  %q = nn.sub %p, %g : tensor<9x64xf32>
  %g2 = nn.mul %g, %g : tensor<9x64xf32>
  %s = nn.reduce sum %g2 dims [1] : tensor<9x64xf32> -> tensor<9xf32>
  return %q, %s : tensor<9x64xf32>, tensor<9xf32>
}

// Added to an operand that may be the result itself, which is then not copied.
// CHECK-LABEL: func.func @scatter(
// CHECK-SAME: inplace = {{\[}}[0, 2]]
// CHECK: memref.extract_aligned_pointer_as_index
// CHECK: scf.if
func.func private @scatter(%i: tensor<3xi64>, %u: tensor<3x40xf32>, %w: tensor<90x40xf32>) -> tensor<90x40xf32> attributes {nn.kernel} {
  %g = nn.scatter_add %i, %u : tensor<3xi64>, tensor<3x40xf32> -> tensor<90x40xf32>
  %o = nn.add %w, %g : tensor<90x40xf32>
  return %o : tensor<90x40xf32>
}
