// Few rows of a large table are looked up, and added to its gradient, by launches of their own; with more ranks they are too many.
// RUN: zero-opt %s --nn-table-rows=world=2 --nn-fuse | FileCheck %s
// RUN: zero-opt %s --nn-table-rows=world=4096 --nn-fuse | FileCheck %s --check-prefix=MANY
// RUN: zero-opt %s --nn-evaluate="function=train digits=4" -o /dev/null > %t.before
// RUN: zero-opt %s --nn-table-rows=world=2 --nn-fuse --nn-evaluate="function=train digits=4" -o /dev/null > %t.after
// RUN: diff %t.before %t.after

// CHECK: func.func private @gather_0(%[[T:.*]]: tensor<4096x16xf32>, %[[I:.*]]: tensor<4xi64>) -> tensor<4x16xf32>
// CHECK-NEXT: nn.gather %[[T]], %[[I]]
// CHECK: func.func private @scatter_add_0(%[[D:.*]]: tensor<4096x16xf32>, %[[I:.*]]: tensor<4xi64>, %[[R:.*]]: tensor<4x16xf32>) -> tensor<4096x16xf32> attributes {nn.inplace = {{\[\[}}0, 0]], nn.kernel}
// CHECK-NEXT: %[[S:.*]] = nn.scatter_add %[[I]], %[[R]]
// CHECK-NEXT: nn.add %[[D]], %[[S]]
// CHECK-LABEL: func.func @train
// CHECK: %[[X:.*]] = nn.launch @gather_0(%{{.*}}, %arg0) {nn.looks_up}
// CHECK: %[[P:.*]] = nn.matmul
// CHECK: %[[G:.*]] = nn.launch @scatter_add_0(%[[P]], %arg0, %{{.*}}) {nn.adds_rows}
// CHECK-NEXT: nn.gradient @words, %[[G]]
// MANY-NOT: nn.looks_up
// MANY-NOT: nn.adds_rows
nn.parameter @words : tensor<4096x16xf32> {trainable = true, init = "normal", init_std = 2.0e-02 : f32}
func.func @train(%at: tensor<4xi64>, %y: tensor<4x4096xf32>, %dy: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %words = nn.get @words : tensor<4096x16xf32>
  %x = nn.gather %words, %at : tensor<4096x16xf32>, tensor<4xi64> -> tensor<4x16xf32>
  %0 = nn.tanh %x : tensor<4x16xf32>
  %p = nn.matmul %y, %0 {transpose_lhs = true} : (tensor<4x4096xf32>, tensor<4x16xf32>) -> tensor<4096x16xf32>
  %d = nn.mul %0, %dy : tensor<4x16xf32>
  %s = nn.scatter_add %at, %d : tensor<4xi64>, tensor<4x16xf32> -> tensor<4096x16xf32>
  %g = nn.add %p, %s : tensor<4096x16xf32>
  nn.gradient @words, %g : tensor<4096x16xf32>
  return %0 : tensor<4x16xf32>
}
