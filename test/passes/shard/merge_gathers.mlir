// A bucket stays gathered between neighbouring uses; a far use gathers again.
// RUN: zero-opt %s --zero-merge-gathers="distance=1" -split-input-file | FileCheck %s
// RUN: zero-opt %s --zero-merge-gathers="distance=0" -split-input-file | FileCheck %s --check-prefix=NONE

// CHECK-LABEL: func.func @near
// CHECK: %[[A:.*]] = zero.gather @a
// CHECK-NEXT: zero.view %[[A]] at 0
// CHECK-NEXT: zero.gather @b
// CHECK-NEXT: zero.release
// CHECK-NEXT: zero.view %[[A]] at 4
// CHECK-NEXT: zero.release %[[A]]
// NONE-LABEL: func.func @near
// NONE-COUNT-2: zero.gather @a
zero.bucket @a {elements = 16 : i64, shard = 16 : i64, parameters = [@w], offsets = array<i64: 0>, trainable = false}
zero.bucket @b {elements = 16 : i64, shard = 16 : i64, parameters = [@w], offsets = array<i64: 0>, trainable = false}
func.func @near() attributes {zero.role = "step"} {
  %a = zero.gather @a : tensor<16xf32>
  %0 = zero.view %a at 0 : tensor<16xf32> -> tensor<4xf32>
  zero.release %a : tensor<16xf32>
  %b = zero.gather @b : tensor<16xf32>
  zero.release %b : tensor<16xf32>
  %a2 = zero.gather @a : tensor<16xf32>
  %1 = zero.view %a2 at 4 : tensor<16xf32> -> tensor<4xf32>
  zero.release %a2 : tensor<16xf32>
  return
}
// -----
// Two other buckets in between are more than the distance.
// CHECK-LABEL: func.func @far
// CHECK-COUNT-2: zero.gather @a
zero.bucket @a {elements = 16 : i64, shard = 16 : i64, parameters = [@w], offsets = array<i64: 0>, trainable = false}
zero.bucket @b {elements = 16 : i64, shard = 16 : i64, parameters = [@w], offsets = array<i64: 0>, trainable = false}
zero.bucket @c {elements = 16 : i64, shard = 16 : i64, parameters = [@w], offsets = array<i64: 0>, trainable = false}
func.func @far() attributes {zero.role = "step"} {
  %a = zero.gather @a : tensor<16xf32>
  zero.release %a : tensor<16xf32>
  %b = zero.gather @b : tensor<16xf32>
  zero.release %b : tensor<16xf32>
  %c = zero.gather @c : tensor<16xf32>
  zero.release %c : tensor<16xf32>
  %a2 = zero.gather @a : tensor<16xf32>
  zero.release %a2 : tensor<16xf32>
  return
}
// -----
// Each use of a kept bucket counts from there anew: one other bucket before it and one after it.
// CHECK-LABEL: func.func @chain
// CHECK-COUNT-1: zero.gather @a
// CHECK-NOT: zero.gather @a
// CHECK: return
zero.bucket @a {elements = 16 : i64, shard = 16 : i64, parameters = [@w], offsets = array<i64: 0>, trainable = false}
zero.bucket @b {elements = 16 : i64, shard = 16 : i64, parameters = [@w], offsets = array<i64: 0>, trainable = false}
zero.bucket @c {elements = 16 : i64, shard = 16 : i64, parameters = [@w], offsets = array<i64: 0>, trainable = false}
func.func @chain() attributes {zero.role = "step"} {
  %a = zero.gather @a : tensor<16xf32>
  zero.release %a : tensor<16xf32>
  %b = zero.gather @b : tensor<16xf32>
  zero.release %b : tensor<16xf32>
  %a2 = zero.gather @a : tensor<16xf32>
  zero.release %a2 : tensor<16xf32>
  %c = zero.gather @c : tensor<16xf32>
  zero.release %c : tensor<16xf32>
  %a3 = zero.gather @a : tensor<16xf32>
  zero.release %a3 : tensor<16xf32>
  return
}
