// Rows that are set apart: the update itself does that, and rows are written where each tensor rests, the master on the device and moments on
// disk, without what fills up the bucket.
// RUN: zero-opt %S/../shard/Inputs/lookup.mlir --nn-table-rows --nn-fuse --zero-partition=bucket-elements=4096 --zero-assign-tiers=offload-optimizer=disk --zero-programs=clip=never --zero-insert-movement -o %t
// RUN: zero-opt "--pass-pipeline=builtin.module(plan-lower,plan.program(plan-assign-lanes))" %t | FileCheck %s
// RUN: sed 's/moment f32 whole on disk/moment f32 whole on host/g' %t | zero-opt "--pass-pipeline=builtin.module(plan-lower,plan.program(plan-assign-lanes))" | FileCheck %s --check-prefix=HOST

// CHECK: plan.fill compute -> %room_for_rows[0, 1024] : 0
// CHECK: plan.update compute %bucket0.parameter[0, 262400], %bucket0.gradient[0, 262400], %bucket0.m.fetched[0, 262400], %bucket0.v.fetched[0, 262400], %input.hyper[0, 64], %input.at[0, 32], %room_for_rows[0, 1024] -> %bucket0.parameter[0, 262400], %bucket0.m.fetched[0, 262400], %bucket0.v.fetched[0, 262400], %pack[0, 4100], %room_for_rows[0, 1024], %bucket0.gradient[0, 262400] : @bucket0 @adamw_1025x64 of f32 apart <4097 x 64 from 0 by i64>
// CHECK: plan.launch compute %room_for_rows[768, 256], %input.at[0, 32], {{.*}} -> %add_rows_to_first_x16_4[0, 256]
// CHECK-NEXT: plan.copy compute %input.at[0, 32] -> %[[AT:.*]][0, 32]
// CHECK-NEXT: plan.update_rows compute %room_for_rows[0, 256], %add_rows_to_first_x16_4[0, 256], %room_for_rows[256, 256], %room_for_rows[512, 256], %input.hyper[0, 64], %[[AT]][0, 32] -> %update_rows[0, 256], %update_rows.1[0, 256], %update_rows.2[0, 256], %pack[8196, 16] : [@bucket0] [0] @adamw_4x16 row 16 of i64
// CHECK-NEXT: plan.write_rows compute %update_rows[0, 256], %[[AT]][0, 32], %bucket0.parameter[0, 262208] -> %bucket0.parameter[0, 262208] : <4097 x 64 from 0 by i64>
// CHECK: plan.write_rows disk_write %update_rows.1[0, 256], %[[AT]][0, 32], %bucket0.m[0, 262208] -> %bucket0.m[0, 262208] : <4097 x 64 from 0 by i64>
// CHECK-NEXT: plan.write_rows disk_write %update_rows.2[0, 256], %[[AT]][0, 32], %bucket0.v[0, 262208] -> %bucket0.v[0, 262208] : <4097 x 64 from 0 by i64>
// HOST: plan.write_rows compute {{.*}} -> %bucket0.parameter
// HOST: plan.write_rows to_host {{.*}} -> %bucket0.m
// HOST-NEXT: plan.write_rows to_host {{.*}} -> %bucket0.v
