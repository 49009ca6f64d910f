// RUN: zero-opt %s --nn-pad-classes=multiple=8 | FileCheck %s
// Values and gradients stay the same. The sum of a gradient over all classes is zero but for rounding.
// RUN: for f in rows columns train; do zero-opt %s --nn-differentiate --nn-evaluate="function=$f digits=4 limit=65" -o /dev/null; done | sed "s/sum [^ ]*//" > %t.before
// RUN: for f in rows columns train; do zero-opt %s --nn-pad-classes --nn-differentiate --nn-evaluate="function=$f digits=4 limit=65" -o /dev/null; done | sed "s/sum [^ ]*//" > %t.padded
// RUN: diff %t.before %t.padded && FileCheck %s --check-prefix=VALUES < %t.padded
// Any number of classes is a multiple of one.
// RUN: zero-opt %s > %t.unchanged
// RUN: zero-opt %s --nn-pad-classes=multiple=1 | diff %t.unchanged -
// RUN: not zero-opt %s --nn-pad-classes=multiple=0 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not zero-opt %s --nn-pad-classes=multiple=-8 2>&1 | FileCheck %s --check-prefix=NEGATIVE

// NONE: error: classes are padded to a multiple of one or more, not of 0
// NEGATIVE: error: classes are padded to a multiple of one or more, not of -8

// VALUES-COUNT-4: result tensor
// VALUES: gradient @other tensor<8x65xf32>: {{ *}}norm {{[1-9]}}
// VALUES-NEXT: gradient @bias tensor<67xf32>: {{ *}}norm {{0[.][1-9]}}
// VALUES-NEXT: gradient @head tensor<67x8xf32>: {{ *}}norm {{0[.][1-9]}}
// VALUES-NEXT: gradient @table tensor<65x8xf32>: {{ *}}norm {{[1-9]}}
// VALUES-NEXT: result tensor<f32>: {{[1-9]}}

// Weights stored [classes, width]. What reads the log of the sum of exponentials goes on reading it.
// CHECK-LABEL: func.func @rows
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>, %[[W:.*]]: tensor<67x8xf32>, %[[LABELS:.*]]: tensor<4xi64>, %[[SCALE:.*]]: tensor<1xf32>)
// CHECK-NEXT: %[[P:.*]] = nn.pad %[[W]] with 0.000000e+00 : f32 low [0, 0] high [5, 0] interior [0, 0] : tensor<67x8xf32> -> tensor<72x8xf32>
// CHECK-NEXT: %[[Y:.*]] = nn.matmul %[[X]], %[[P]] {transpose_rhs = true} : (tensor<4x8xf32>, tensor<72x8xf32>) -> tensor<4x72xf32>
// CHECK-NEXT: %[[CLASS:.*]] = nn.iota 1 : tensor<4x72xi32>
// CHECK-NEXT: %[[END:.*]] = nn.constant dense<67> : tensor<4x72xi32>
// CHECK-NEXT: %[[EXISTS:.*]] = nn.compare lt %[[CLASS]], %[[END]]
// CHECK-NEXT: %[[NEVER:.*]] = nn.constant dense<0xFF800000> : tensor<4x72xf32>
// CHECK-NEXT: %[[S:.*]] = nn.select %[[EXISTS]], %[[Y]], %[[NEVER]]
// CHECK-NEXT: %[[LOSS:.*]], %[[LSE:.*]] = nn.cross_entropy %[[S]], %[[LABELS]], %[[SCALE]] {ignore_index = -100 : i64} : (tensor<4x72xf32>
// CHECK-NEXT: return %[[LOSS]], %[[LSE]]
func.func @rows(%x: tensor<4x8xf32>, %w: tensor<67x8xf32>, %labels: tensor<4xi64>, %scale: tensor<1xf32>) -> (tensor<f32>, tensor<4xf32>) {
  %y = nn.matmul %x, %w {transpose_rhs = true} : (tensor<4x8xf32>, tensor<67x8xf32>) -> tensor<4x67xf32>
  %loss, %lse = nn.cross_entropy %y, %labels, %scale {ignore_index = -100 : i64} : (tensor<4x67xf32>, tensor<4xi64>, tensor<1xf32>) -> (tensor<f32>, tensor<4xf32>)
  return %loss, %lse : tensor<f32>, tensor<4xf32>
}

// Weights stored [width, classes], just enough classes. What else is said of the product stays.
// CHECK-LABEL: func.func @columns
// CHECK-SAME: %[[X:.*]]: tensor<8x4xf32>, %[[W:.*]]: tensor<8x65xf32>
// CHECK-NEXT: %[[P:.*]] = nn.pad %[[W]] with 0.000000e+00 : f32 low [0, 0] high [0, 7] interior [0, 0] : tensor<8x65xf32> -> tensor<8x72xf32>
// CHECK-NEXT: %[[Y:.*]] = nn.matmul %[[X]], %[[P]] {keep_lhs, recompute, transpose_lhs = true} : (tensor<8x4xf32>, tensor<8x72xf32>) -> tensor<4x72xf32>
// CHECK: nn.constant dense<65>
// CHECK: %[[S:.*]] = nn.select %{{.*}}, %[[Y]], %{{.*}}
// CHECK-NEXT: nn.cross_entropy %[[S]]
func.func @columns(%x: tensor<8x4xf32>, %w: tensor<8x65xf32>, %labels: tensor<4xi64>, %scale: tensor<1xf32>) -> (tensor<f32>, tensor<4xf32>) {
  %y = nn.matmul %x, %w {keep_lhs, recompute, transpose_lhs = true} : (tensor<8x4xf32>, tensor<8x65xf32>) -> tensor<4x65xf32>
  %loss, %lse = nn.cross_entropy %y, %labels, %scale {ignore_index = -100 : i64} : (tensor<4x65xf32>, tensor<4xi64>, tensor<1xf32>) -> (tensor<f32>, tensor<4xf32>)
  return %loss, %lse : tensor<f32>, tensor<4xf32>
}

// A bias has as many classes as the weights; what caps them caps more. Views on the way are left out. Two losses, each with logits of its own; one ignores a label
// that occurs.
// CHECK-LABEL: func.func @train
// CHECK: %[[BIAS:.*]] = nn.get @bias
// CHECK: %[[X:.*]] = nn.gather %{{.*}} : tensor<65x8xf32>
// CHECK: %[[Y:.*]] = nn.matmul %[[X]], %{{.*}} {transpose_rhs = true} : (tensor<4x8xf32>, tensor<72x8xf32>) -> tensor<4x72xf32>
// CHECK: %[[PB:.*]] = nn.pad %[[BIAS]] with 0.000000e+00 : f32 low [0] high [5] interior [0] : tensor<67xf32> -> tensor<72xf32>
// CHECK-NEXT: %[[B:.*]] = nn.broadcast %[[PB]] dims [1] : tensor<72xf32> -> tensor<4x72xf32>
// CHECK-NEXT: %[[SUM:.*]] = nn.add %[[B]], %[[Y]] : tensor<4x72xf32>
// CHECK-NEXT: %[[CAP:.*]] = nn.constant dense<2.000000e+00> : tensor<4x72xf32>
// CHECK-NEXT: %[[PART:.*]] = nn.div %[[SUM]], %[[CAP]] : tensor<4x72xf32>
// CHECK-NEXT: %[[TANH:.*]] = nn.tanh %[[PART]] : tensor<4x72xf32>
// CHECK: %[[Z:.*]] = nn.mul %[[TANH]], %{{.*}} : tensor<4x72xf32>
// CHECK: %[[S:.*]] = nn.select %{{.*}}, %[[Z]], %{{.*}}
// CHECK-NEXT: nn.cross_entropy %[[S]]
// CHECK: %[[V:.*]] = nn.matmul %[[X]], %{{.*}} : (tensor<4x8xf32>, tensor<8x72xf32>) -> tensor<4x72xf32>
// CHECK: %[[T:.*]] = nn.select %{{.*}}, %[[V]], %{{.*}}
// CHECK-NEXT: nn.cross_entropy %[[T]]
nn.parameter @table : tensor<65x8xf32> {trainable = true, init = "normal", init_std = 1.0 : f32}
nn.parameter @head : tensor<67x8xf32> {trainable = true, init = "normal", init_std = 1.0 : f32}
nn.parameter @bias : tensor<67xf32> {trainable = true, init = "normal", init_std = 1.0 : f32}
nn.parameter @other : tensor<8x65xf32> {trainable = true, init = "normal", init_std = 1.0 : f32}
func.func @train(%ids: tensor<4xi64>, %labels: tensor<4xi64>, %scale: tensor<1xf32>) -> tensor<f32> {
  %table = nn.get @table : tensor<65x8xf32>
  %head = nn.get @head : tensor<67x8xf32>
  %bias = nn.get @bias : tensor<67xf32>
  %other = nn.get @other : tensor<8x65xf32>
  %x = nn.gather %table, %ids : tensor<65x8xf32>, tensor<4xi64> -> tensor<4x8xf32>
  %y = nn.matmul %x, %head {transpose_rhs = true} : (tensor<4x8xf32>, tensor<67x8xf32>) -> tensor<4x67xf32>
  %r = nn.reshape %y : tensor<4x67xf32> -> tensor<2x2x67xf32>
  %b = nn.broadcast %bias dims [2] : tensor<67xf32> -> tensor<2x2x67xf32>
  %sum = nn.add %b, %r : tensor<2x2x67xf32>
  %cap = nn.constant dense<2.0> : tensor<2x2x67xf32>
  %part = nn.div %sum, %cap : tensor<2x2x67xf32>
  %tanh = nn.tanh %part : tensor<2x2x67xf32>
  %capped = nn.mul %tanh, %cap : tensor<2x2x67xf32>
  %z = nn.reshape %capped : tensor<2x2x67xf32> -> tensor<4x67xf32>
  %loss, %lse = nn.cross_entropy %z, %labels, %scale {ignore_index = -100 : i64} : (tensor<4x67xf32>, tensor<4xi64>, tensor<1xf32>) -> (tensor<f32>, tensor<4xf32>)
  %v = nn.matmul %x, %other : (tensor<4x8xf32>, tensor<8x65xf32>) -> tensor<4x65xf32>
  %loss2, %lse2 = nn.cross_entropy %v, %labels, %scale {ignore_index = 47 : i64} : (tensor<4x65xf32>, tensor<4xi64>, tensor<1xf32>) -> (tensor<f32>, tensor<4xf32>)
  %both = nn.add %loss, %loss2 : tensor<f32>
  return %both : tensor<f32>
}

// Nothing is done where the classes are a multiple or too few, labels are smoothed over all classes, somebody else reads the logits, before
// their bias or after it, or each sample has weights of its own.
// CHECK-LABEL: func.func @multiple
// CHECK-NOT: nn.pad
// CHECK-NOT: nn.select
func.func @multiple(%x: tensor<4x8xf32>, %w: tensor<72x8xf32>, %labels: tensor<4xi64>, %scale: tensor<1xf32>) -> tensor<f32> {
  %y = nn.matmul %x, %w {transpose_rhs = true} : (tensor<4x8xf32>, tensor<72x8xf32>) -> tensor<4x72xf32>
  %loss, %lse = nn.cross_entropy %y, %labels, %scale {ignore_index = -100 : i64} : (tensor<4x72xf32>, tensor<4xi64>, tensor<1xf32>) -> (tensor<f32>, tensor<4xf32>)
  return %loss : tensor<f32>
}
func.func @few(%x: tensor<4x8xf32>, %w: tensor<63x8xf32>, %labels: tensor<4xi64>, %scale: tensor<1xf32>) -> tensor<f32> {
  %y = nn.matmul %x, %w {transpose_rhs = true} : (tensor<4x8xf32>, tensor<63x8xf32>) -> tensor<4x63xf32>
  %loss, %lse = nn.cross_entropy %y, %labels, %scale {ignore_index = -100 : i64} : (tensor<4x63xf32>, tensor<4xi64>, tensor<1xf32>) -> (tensor<f32>, tensor<4xf32>)
  return %loss : tensor<f32>
}
func.func @smoothed(%x: tensor<4x8xf32>, %w: tensor<67x8xf32>, %labels: tensor<4xi64>, %scale: tensor<1xf32>) -> tensor<f32> {
  %y = nn.matmul %x, %w {transpose_rhs = true} : (tensor<4x8xf32>, tensor<67x8xf32>) -> tensor<4x67xf32>
  %loss, %lse = nn.cross_entropy %y, %labels, %scale {ignore_index = -100 : i64, label_smoothing = 0.125 : f32} : (tensor<4x67xf32>, tensor<4xi64>, tensor<1xf32>) -> (tensor<f32>, tensor<4xf32>)
  return %loss : tensor<f32>
}
func.func @read(%x: tensor<4x8xf32>, %w: tensor<67x8xf32>, %labels: tensor<4xi64>, %scale: tensor<1xf32>) -> (tensor<f32>, tensor<4x67xf32>) {
  %y = nn.matmul %x, %w {transpose_rhs = true} : (tensor<4x8xf32>, tensor<67x8xf32>) -> tensor<4x67xf32>
  %loss, %lse = nn.cross_entropy %y, %labels, %scale {ignore_index = -100 : i64} : (tensor<4x67xf32>, tensor<4xi64>, tensor<1xf32>) -> (tensor<f32>, tensor<4xf32>)
  return %loss, %y : tensor<f32>, tensor<4x67xf32>
}
func.func @read_before(%x: tensor<4x8xf32>, %w: tensor<67x8xf32>, %bias: tensor<67xf32>, %labels: tensor<4xi64>, %scale: tensor<1xf32>) -> (tensor<f32>, tensor<4x67xf32>) {
  %y = nn.matmul %x, %w {transpose_rhs = true} : (tensor<4x8xf32>, tensor<67x8xf32>) -> tensor<4x67xf32>
  %b = nn.broadcast %bias dims [1] : tensor<67xf32> -> tensor<4x67xf32>
  %z = nn.add %y, %b : tensor<4x67xf32>
  %loss, %lse = nn.cross_entropy %z, %labels, %scale {ignore_index = -100 : i64} : (tensor<4x67xf32>, tensor<4xi64>, tensor<1xf32>) -> (tensor<f32>, tensor<4xf32>)
  return %loss, %y : tensor<f32>, tensor<4x67xf32>
}
func.func @batched(%x: tensor<2x2x8xf32>, %w: tensor<2x8x67xf32>, %labels: tensor<4xi64>, %scale: tensor<1xf32>) -> tensor<f32> {
  %y = nn.matmul %x, %w : (tensor<2x2x8xf32>, tensor<2x8x67xf32>) -> tensor<2x2x67xf32>
  %z = nn.reshape %y : tensor<2x2x67xf32> -> tensor<4x67xf32>
  %loss, %lse = nn.cross_entropy %z, %labels, %scale {ignore_index = -100 : i64} : (tensor<4x67xf32>, tensor<4xi64>, tensor<1xf32>) -> (tensor<f32>, tensor<4xf32>)
  return %loss : tensor<f32>
}
