// RUN: zero-opt %s --nn-emit-kernels="lanes=16 describe" | FileCheck %s
// RUN: zero-opt %s --nn-emit-kernels="lanes=8" | FileCheck %s --check-prefix=AVX2

// A row at a time: maximum, then the sum of exponentials, which stay in the result's row, then the quotients; no memory but the
// arguments'.
// CHECK-LABEL: func.func @softmax
// CHECK-SAME: (%[[X:.*]]: memref<2400xf32>, %[[Y:.*]]: memref<2400xf32>, %[[BEGIN:.*]]: index, %[[END:.*]]: index)
// CHECK-SAME: bytes = 19200
// CHECK-SAME: extent = 24
// CHECK-SAME: inplace = {{\[}}[0, 0]]
// CHECK-SAME: summary = "rows reduce,sub,exp,div [24 x 100]"
// CHECK-NOT: memref.alloc
// CHECK-NOT: memref.copy
// CHECK: scf.for %[[ROW:.*]] = %[[BEGIN]] to %[[END]]
// CHECK: %[[M:.*]] = scf.for {{.*}} iter_args
// CHECK: vector.load %[[X]]{{.*}} vector<16xf32>
// CHECK: arith.maximumf
// CHECK: vector.maskedload %[[X]]
// CHECK: scf.for {{.*}} iter_args
// CHECK: math.fma
// CHECK: vector.store %{{.*}}, %[[Y]]{{.*}} vector<16xf32>
// CHECK: vector.load %[[Y]]{{.*}} vector<16xf32>
// CHECK-NOT: math.fma
// CHECK: vector.store %{{.*}}, %[[Y]]{{.*}} vector<16xf32>
// CHECK-NOT: math.fma
// CHECK: vector.maskedstore %[[Y]]
// CHECK: return

// AVX2-LABEL: func.func @softmax
// AVX2: vector.load {{.*}} vector<8xf32>
// AVX2-NOT: vector<16xf32>
func.func private @softmax(%s: tensor<24x100xf32>) -> tensor<24x100xf32> attributes {nn.kernel} {
  %m = nn.reduce max %s dims [1] : tensor<24x100xf32> -> tensor<24xf32>
  %mb = nn.broadcast %m dims [0] : tensor<24xf32> -> tensor<24x100xf32>
  %d = nn.sub %s, %mb : tensor<24x100xf32>
  %e = nn.exp %d : tensor<24x100xf32>
  %t = nn.reduce sum %e dims [1] : tensor<24x100xf32> -> tensor<24xf32>
  %tb = nn.broadcast %t dims [0] : tensor<24xf32> -> tensor<24x100xf32>
  %p = nn.div %e, %tb : tensor<24x100xf32>
  return %p : tensor<24x100xf32>
}

// The operand is wanted again: in place there would be nothing left of it, so the exponentials are made twice.
// CHECK-LABEL: func.func @wanted_again
// CHECK: iter_args
// CHECK: iter_args
// CHECK: math.fma
// CHECK-NOT: vector.store
// CHECK: scf.for
// CHECK: math.fma
// CHECK: vector.store
func.func private @wanted_again(%s: tensor<24x96xf32>) -> tensor<24x96xf32> attributes {nn.kernel} {
  %m = nn.reduce max %s dims [1] : tensor<24x96xf32> -> tensor<24xf32>
  %mb = nn.broadcast %m dims [0] : tensor<24xf32> -> tensor<24x96xf32>
  %d = nn.sub %s, %mb : tensor<24x96xf32>
  %e = nn.exp %d : tensor<24x96xf32>
  %t = nn.reduce sum %e dims [1] : tensor<24x96xf32> -> tensor<24xf32>
  %tb = nn.broadcast %t dims [0] : tensor<24xf32> -> tensor<24x96xf32>
  %p = nn.div %e, %tb : tensor<24x96xf32>
  %y = nn.mul %p, %s : tensor<24x96xf32>
  return %y : tensor<24x96xf32>
}
