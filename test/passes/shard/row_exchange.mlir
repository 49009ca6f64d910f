// Shards are whole rows; every rank looks up all ranks' rows in its shard, and adds the rows of all ranks to its shard of the gradient. What the
// projection adds to that travels as soon as it is known.
// RUN: zero-opt %S/Inputs/lookup.mlir --nn-table-rows=world=2 --nn-fuse --zero-partition="world=2 stage=3" --zero-programs --zero-insert-movement --zero-verify-shard | FileCheck %s --check-prefixes=CHECK,S3
// RUN: zero-opt %S/Inputs/lookup.mlir --nn-table-rows=world=2 --nn-fuse --zero-partition="world=2 stage=2" --zero-programs --zero-insert-movement --zero-verify-shard | FileCheck %s --check-prefixes=CHECK,S2

// 2049 rows of 16 elements for each of two ranks, rounded up to the 32 columns of the optimizer: 2050.
// CHECK: zero.bucket @bucket0 {elements = 65600 : i64, {{.*}}parameters = [@words], shard = 32800 : i64
// CHECK: zero.bucket @bucket1 {elements = 131072 : i64, {{.*}}parameters = [@places], shard = 65536 : i64
// CHECK-LABEL: func.func @step
// CHECK: nn.constant dense<{{.*}}> : tensor<32xf32>
// CHECK-NEXT: %[[RANK:.*]] = zero.own_shard %{{.*}} : tensor<32xf32> -> tensor<16xf32>
// CHECK: %[[OWN:.*]] = nn.launch @indices_2_2(%arg0)
// CHECK-NEXT: %[[ALL:.*]] = zero.all_gather %[[OWN]] : tensor<4xf32> -> tensor<8xf32>
// S3: %[[ROWS:.*]] = zero.look_up @bucket0, %[[RANK]], %[[ALL]] {kernel = @look_up_8_of_2050x16} : (tensor<16xf32>, tensor<8xf32>) -> tensor<128xf32>
// S3-NEXT: zero.reduce_scatter %[[ROWS]] : tensor<128xf32> -> tensor<64xf32>
// S3: zero.look_up @bucket1
// S3: zero.gather @bucket0
// S2-NOT: zero.look_up
// S2-NOT: zero.gather
// CHECK: %[[P:.*]] = nn.matmul {{.*}}transpose_lhs
// CHECK-NEXT: %[[WHOLE:.*]] = zero.pack %[[P]] at [0] : (tensor<4097x16xf32>) -> tensor<65600xf32>
// CHECK-NEXT: %[[SHARD:.*]] = zero.reduce_scatter %[[WHOLE]] : tensor<65600xf32> -> tensor<32800xf32>
// CHECK: %[[D:.*]] = zero.all_gather %{{.*}} : tensor<64xf32> -> tensor<128xf32>
// CHECK-NEXT: %[[G:.*]] = zero.add_rows @bucket0, %[[SHARD]], %[[RANK]], %[[ALL]], %[[D]] {kernel = @add_rows_8_to_2050x16}
// CHECK: zero.update @bucket0, %[[G]]
// Nothing is reduced of what only rows are added to.
// CHECK-NOT: zero.reduce_scatter
// CHECK: %[[ZEROS:.*]] = zero.pack at [] : () -> tensor<65536xf32>
// CHECK: zero.add_rows @bucket1, %[[ZEROS]]
// CHECK-NOT: nn.adds_rows
// Adding what another rank owns must leave the row as it is, a zero with its sign.
// S3-LABEL: func.func private @look_up_8_of_2050x16
// S3: nn.constant dense<-0.000000e+00> : tensor<8x16xf32>
