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

// A padded tensor read window by window: branches and what they read are in order though lanes and loops share a block.
// CHECK-LABEL: func.func @windows(
// CHECK: scf.if
// CHECK-NOT: memref.{{alloc|copy}}
func.func private @windows(%x: tensor<3x16x40xf32>) -> tensor<3x40x16x3xf32> attributes {nn.kernel} {
  %p = nn.pad %x with 0.000000e+00 : f32 low [0, 0, 1] high [0, 0, 1] interior [0, 0, 0] : tensor<3x16x40xf32> -> tensor<3x16x42xf32>
  %0 = nn.slice %p starts [0, 0, 0] sizes [3, 16, 40] steps [1, 1, 1] : tensor<3x16x42xf32> -> tensor<3x16x40xf32>
  %1 = nn.slice %p starts [0, 0, 1] sizes [3, 16, 40] steps [1, 1, 1] : tensor<3x16x42xf32> -> tensor<3x16x40xf32>
  %2 = nn.slice %p starts [0, 0, 2] sizes [3, 16, 40] steps [1, 1, 1] : tensor<3x16x42xf32> -> tensor<3x16x40xf32>
  %a = nn.reshape %0 : tensor<3x16x40xf32> -> tensor<3x16x1x40xf32>
  %b = nn.reshape %1 : tensor<3x16x40xf32> -> tensor<3x16x1x40xf32>
  %c = nn.reshape %2 : tensor<3x16x40xf32> -> tensor<3x16x1x40xf32>
  %j = nn.concat %a, %b, %c dim 2 : (tensor<3x16x1x40xf32>, tensor<3x16x1x40xf32>, tensor<3x16x1x40xf32>) -> tensor<3x16x3x40xf32>
  %t = nn.transpose %j perm [0, 3, 1, 2] : tensor<3x16x3x40xf32> -> tensor<3x40x16x3xf32>
  return %t : tensor<3x40x16x3xf32>
}

// Rolled rows that are sums of other elements: on each side of the branch the sum is a loop of that side.
// CHECK-LABEL: func.func @rolled(
// CHECK: scf.if
// CHECK: scf.for
// CHECK-NOT: memref.{{alloc|copy}}
func.func private @rolled(%x: tensor<3x8x16xf32>) -> (tensor<3x8x16xf32>, tensor<3x8x16xf32>) attributes {nn.kernel} {
  %s = nn.reduce sum %x dims [2] : tensor<3x8x16xf32> -> tensor<3x8xf32>
  %r = nn.broadcast %s dims [0, 1] : tensor<3x8xf32> -> tensor<3x8x16xf32>
  %d = nn.sub %x, %r : tensor<3x8x16xf32>
  %a = nn.slice %d starts [0, 2, 0] sizes [3, 6, 16] steps [1, 1, 1] : tensor<3x8x16xf32> -> tensor<3x6x16xf32>
  %b = nn.slice %d starts [0, 0, 0] sizes [3, 2, 16] steps [1, 1, 1] : tensor<3x8x16xf32> -> tensor<3x2x16xf32>
  %c = nn.concat %a, %b dim 1 : (tensor<3x6x16xf32>, tensor<3x2x16xf32>) -> tensor<3x8x16xf32>
  return %d, %c : tensor<3x8x16xf32>, tensor<3x8x16xf32>
}
