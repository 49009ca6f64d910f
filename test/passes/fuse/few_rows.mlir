// A table of two rows is summed column by column, one of many is not; the sums are those of before.
// RUN: zero-opt %s --nn-few-rows="least=0" | FileCheck %s
// RUN: for f in types one; do zero-opt %s --nn-evaluate="function=$f digits=4" -o /dev/null; done > %t.before
// RUN: for f in types one; do zero-opt %s --nn-few-rows="least=0" --nn-evaluate="function=$f digits=4" -o /dev/null; done > %t.after
// RUN: diff %t.before %t.after && FileCheck %s --check-prefix=VALUES < %t.after
// VALUES-COUNT-2: result tensor<{{2|1}}x4xf32>:

// CHECK-LABEL: func.func @types
// CHECK-COUNT-2: nn.reduce sum {{.*}} dims [0, 1] : tensor<2x8x4xf32> -> tensor<4xf32>
// CHECK: nn.concat
// CHECK-NOT: scatter_add
// CHECK: return
func.func @types(%i: tensor<2x8xi64>, %x: tensor<2x8x4xf32>) -> tensor<2x4xf32> {
  %one = nn.constant dense<1> : tensor<2x8xi64>
  %zero = nn.constant dense<0> : tensor<2x8xi64>
  %odd = nn.compare gt %i, %zero : tensor<2x8xi64> -> tensor<2x8xi1>
  %t = nn.select %odd, %one, %zero : tensor<2x8xi1>, tensor<2x8xi64>
  %y = nn.scatter_add %t, %x : tensor<2x8xi64>, tensor<2x8x4xf32> -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// CHECK-LABEL: func.func @one
// CHECK-NOT: nn.select
// CHECK: nn.reduce sum %{{.*}} dims [0]
func.func @one(%x: tensor<8x4xf32>) -> tensor<1x4xf32> {
  %zero = nn.constant dense<0> : tensor<8xi64>
  %y = nn.scatter_add %zero, %x : tensor<8xi64>, tensor<8x4xf32> -> tensor<1x4xf32>
  return %y : tensor<1x4xf32>
}

// CHECK-LABEL: func.func @words
// CHECK: nn.scatter_add
func.func @words(%i: tensor<8xi64>, %x: tensor<8x4xf32>) -> tensor<40x4xf32> {
  %y = nn.scatter_add %i, %x : tensor<8xi64>, tensor<8x4xf32> -> tensor<40x4xf32>
  return %y : tensor<40x4xf32>
}
