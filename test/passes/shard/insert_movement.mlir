// Stages differ in where parameters are whole and who updates what; the sums over ranks are the same.
// RUN: zero-opt %S/Inputs/train.mlir --zero-partition="world=2 stage=0" --zero-programs --zero-insert-movement | FileCheck %s --check-prefix=S0
// RUN: zero-opt %S/Inputs/train.mlir --zero-partition="world=2 stage=1" --zero-programs --zero-insert-movement | FileCheck %s --check-prefix=S2
// RUN: zero-opt %S/Inputs/train.mlir --zero-partition="world=2 stage=2" --zero-programs --zero-insert-movement | FileCheck %s --check-prefix=S2
// RUN: zero-opt %S/Inputs/train.mlir --zero-partition="world=2 stage=3" --zero-programs --zero-insert-movement | FileCheck %s --check-prefix=S3
// RUN: zero-opt %S/Inputs/train.mlir --zero-partition="world=1 stage=3" --zero-programs --zero-insert-movement | FileCheck %s --check-prefix=ALONE
// RUN: zero-opt %S/Inputs/train.mlir --zero-partition="world=2 stage=2 accumulate=2" --zero-programs --zero-insert-movement | FileCheck %s --check-prefix=ACC

// Stage 0: the reduced shard is gathered again and everybody updates everything; the norm comes from the own shard.
// S0-LABEL: func.func @step(
// S0: %[[W:.*]] = zero.resident @bucket0 : tensor<32xf32>
// S0: %[[P:.*]] = zero.pack %{{.*}} at [0] : (tensor<4x8xf32>) -> tensor<32xf32>
// S0: %[[S:.*]] = zero.reduce_scatter %{{.*}} : tensor<32xf32> -> tensor<16xf32>
// The update waits for the last read of the bucket, which stands after the gradient.
// S0: nn.matmul {{.*}}transpose_rhs
// S0: %[[G:.*]] = zero.all_gather %{{.*}} : tensor<16xf32> -> tensor<32xf32>
// S0: %[[Q:.*]] = zero.update @bucket0, %[[G]], %{{.*}} {kernel = @adamw_2x16, whole}
// S0: zero.own_shard %[[Q]] : tensor<2xf32> -> tensor<1xf32>
// S0: nn.launch @sum_1(
// S0: zero.all_reduce %{{.*}} : tensor<2xf32>

// S2-LABEL: func.func @step(
// S2: zero.update @bucket0, %{{.*}} {kernel = @adamw_1x16}
// S2-NEXT: zero.publish @bucket0
// The clipping variant knows the norm before it updates.
// S2-LABEL: func.func @step_clip(
// S2: nn.launch @sum_squares_1x16(
// S2: %[[R:.*]] = zero.all_reduce
// S2: %[[NORM:.*]] = zero.view %[[R]] at 1 : tensor<2xf32> -> tensor<1xf32>
// S2: zero.update @bucket0, %{{.*}}, %{{.*}} clip %[[NORM]] {kernel = @adamw_clip_1x16}
// S2: zero.publish

// S3-LABEL: func.func @step(
// S3: %[[A:.*]] = zero.gather @bucket0 : tensor<32xf32>
// S3-NEXT: %[[V:.*]] = zero.view %[[A]] at 0 : tensor<32xf32> -> tensor<4x8xf32>
// S3-NEXT: nn.matmul %{{.*}}, %[[V]]
// S3-NEXT: zero.release %[[A]]
// S3: zero.gather
// S3: nn.matmul {{.*}}transpose_rhs
// S3: zero.update @bucket0, %{{.*}} {kernel = @adamw_1x16}
// S3-NOT: zero.publish
// S3-LABEL: func.func @eval(
// S3: zero.all_reduce %{{.*}} : tensor<1xf32>

// ALONE-NOT: zero.gather
// ALONE-NOT: zero.reduce_scatter
// ALONE-NOT: zero.all_reduce
// ALONE: zero.update @bucket0

// ACC-LABEL: func.func @first(
// ACC: zero.accumulate @bucket0, %{{.*}} {first}
// ACC-LABEL: func.func @last(
// ACC: %[[SUM:.*]] = zero.accumulate @bucket0, %{{.*}} {kernel = @accumulate_1x16}
// ACC: zero.update @bucket0, %[[SUM]]
