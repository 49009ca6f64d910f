// The table that the projection shares is updated as soon as the projection's gradient is known, but for the rows that were looked up: these are
// set apart and updated once what the lookup adds is known. A table that is only looked up is updated as ever.
// RUN: zero-opt %S/Inputs/lookup.mlir --nn-table-rows --nn-fuse --zero-partition=bucket-elements=4096 --zero-assign-tiers=offload-optimizer=disk --zero-programs=clip=never --zero-insert-movement --zero-verify-shard | FileCheck %s
// Not where updates wait for the norm, where nothing comes from another tier, or where gradients are summed over ranks or micro-steps.
// RUN: zero-opt %S/Inputs/lookup.mlir --nn-table-rows --nn-fuse --zero-partition --zero-assign-tiers=offload-optimizer=disk --zero-programs=clip=always --zero-insert-movement | FileCheck %s --check-prefix=NONE
// RUN: zero-opt %S/Inputs/lookup.mlir --nn-table-rows --nn-fuse --zero-partition --zero-programs=clip=never --zero-insert-movement | FileCheck %s --check-prefix=NONE
// RUN: zero-opt %S/Inputs/lookup.mlir --nn-table-rows=world=2 --nn-fuse --zero-partition="world=2 stage=3" --zero-assign-tiers=offload-optimizer=disk --zero-programs=clip=never --zero-insert-movement | FileCheck %s --check-prefix=NONE
// RUN: zero-opt %S/Inputs/lookup.mlir --nn-table-rows --nn-fuse --zero-partition=accumulate=2 --zero-assign-tiers=offload-optimizer=disk --zero-programs=clip=never --zero-insert-movement | FileCheck %s --check-prefix=NONE
// NONE-NOT: zero.room_for_rows
// NONE-NOT: zero.write_rows

// CHECK-LABEL: func.func @step
// CHECK: %[[ROOM:.*]] = zero.room_for_rows : tensor<256xf32>
// CHECK-NEXT: %[[P:.*]] = nn.matmul {{.*}}transpose_lhs
// CHECK-NEXT: %[[REST:.*]] = zero.pack %[[P]] at [0] : (tensor<4097x16xf32>) -> tensor<65600xf32>
// The parameters are read for the last time.
// CHECK: %[[DX:.*]] = nn.matmul %{{.*}} : (tensor<4x4097xf32>, tensor<4097x16xf32>) -> tensor<4x16xf32>
// CHECK-NEXT: %[[S0:.*]] = zero.update @bucket0, %[[REST]], %arg1 apart %[[ROOM]] at %arg0 {kernel = @adamw_1025x64, row = 16 : i64, table_rows = 4097 : i64}
// CHECK: %[[SOFAR:.*]] = zero.view %[[ROOM]] at 192 : tensor<256xf32> -> tensor<4x16xf32>
// CHECK: %[[G:.*]] = nn.launch @add_rows_to_first_x16_4(%[[SOFAR]], %{{.*}}, %{{.*}}, %{{.*}})
// CHECK-NEXT: %[[NEW:.*]]:4 = zero.update_rows [@bucket0] [0], %[[ROOM]], %[[G]], %arg1 at %arg0 {kernel = @adamw_4x16}
// CHECK-NEXT: zero.write_rows @bucket0 master, %[[NEW]]#0 at %arg0 {elements = 65552 : i64, table_rows = 4097 : i64}
// CHECK: %[[H:.*]] = nn.launch @{{.*}} {nn.adds_rows}
// CHECK: %[[S1:.*]] = zero.update @bucket1, %{{.*}}, %arg1 {kernel
// The norm is of all rows: those that were set apart count as zeros before.
// CHECK-NEXT: zero.pack %[[S0]], %[[S1]], %[[NEW]]#3
// Nobody waits for the moments.
// CHECK: zero.write_rows @bucket0 first_moment, %[[NEW]]#1 at %arg0 {elements = 65552 : i64, table_rows = 4097 : i64}
// CHECK-NEXT: zero.write_rows @bucket0 second_moment, %[[NEW]]#2 at %arg0 {elements = 65552 : i64, table_rows = 4097 : i64}
// CHECK-NEXT: return
// All updates of an index go to its first row, in their order.
// CHECK-LABEL: func.func private @add_rows_to_first_x16_4
// CHECK: nn.reduce min
// CHECK: %[[SUM:.*]] = nn.scatter_add
// CHECK-NEXT: nn.add %arg0, %[[SUM]]
