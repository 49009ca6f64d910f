// RUN: zero-opt %s --zero-partition="world=2 stage=3" | FileCheck %s
// RUN: zero-opt %s --zero-partition="world=2 stage=3 bucket-elements=4096" | FileCheck %s --check-prefix=LIMIT

// Each tile lies alone, however little it is beside the limit, and no bucket is larger than the largest tile unless a limit says so.
// CHECK: zero.bucket @bucket0 {{.*}}parameters = [@a]
// CHECK: zero.bucket @bucket1 {{.*}}parameters = [@b]
// CHECK: zero.bucket @bucket2 {elements = 1024 : i64, {{.*}}parameters = [@"t#0"], shard = 512
// CHECK: zero.bucket @bucket3 {elements = 512 : i64, {{.*}}parameters = [@"t#1"], shard = 256
// LIMIT: zero.bucket @bucket0 {{.*}}parameters = [@a, @b]
// LIMIT: zero.bucket @bucket1 {{.*}}parameters = [@"t#0"]
// LIMIT: zero.bucket @bucket2 {{.*}}parameters = [@"t#1"]
nn.parameter @"t#0" : tensor<32x32xf32> {trainable = true, tile_of = "t", whole = array<i64: 48, 32>, begin = array<i64: 0, 0>}
nn.parameter @"t#1" : tensor<16x32xf32> {trainable = true, tile_of = "t", whole = array<i64: 48, 32>, begin = array<i64: 32, 0>}
nn.parameter @a : tensor<20x32xf32> {trainable = true}
nn.parameter @b : tensor<20x32xf32> {trainable = true}
func.func @train() -> tensor<f32> {
  %t0 = nn.get @"t#0" : tensor<32x32xf32>
  %a = nn.get @a : tensor<20x32xf32>
  %t1 = nn.get @"t#1" : tensor<16x32xf32>
  %b = nn.get @b : tensor<20x32xf32>
  %loss = nn.reduce sum %a dims [0, 1] : tensor<20x32xf32> -> tensor<f32>
  return %loss : tensor<f32>
}
