module attributes {zero.world = 1 : i64} {
  plan.state parameter @p0 bytes 256 {bucket = @b0, tensor = #zero.tensor<master f32 whole on disk>}
  plan.state parameter @p1 bytes 256 {bucket = @b1, tensor = #zero.tensor<master f32 whole on disk>}
  plan.state scalar @result.loss bytes 4
  plan.program step @step {
    %h0 = plan.use @p0
    %h1 = plan.use @p1
    %r = plan.use @result.loss
    %x = plan.buffer activation "x" bytes 128
    %m1 = plan.buffer fetched "p1.fetched" bytes 256
    %w1 = plan.buffer gathered "b1.gathered" bytes 128
    %m0 = plan.buffer fetched "p0.fetched" bytes 256
    %w0 = plan.buffer gathered "b0.gathered" bytes 128
    %d0 = plan.buffer fetched "p0.fetched" bytes 256
    // The second master comes beside the first, and is rounded where it is used.
    // CHECK: plan.copy disk_read %[[H1:.*]][0, 256] -> %[[M1:.*]][0, 256]
    // CHECK-NEXT: plan.copy disk_read %[[H0:.*]][0, 256] -> %[[M0:.*]][0, 256]
    // CHECK-NEXT: plan.launch compute %[[M1]][0, 256] -> %[[W1:.*]][0, 128] : @round
    // CHECK-NEXT: plan.copy compute %[[W1]]
    // CHECK-NEXT: plan.launch compute %[[M0]][0, 256] -> %[[W0:.*]][0, 128] : @round
    // CHECK-NEXT: plan.copy compute %[[W0]]
    plan.copy disk_read %h1[0, 256] -> %m1[0, 256]
    plan.launch compute %m1[0, 256] -> %w1[0, 128] : @round
    plan.copy compute %w1[0, 128] -> %x[0, 128]
    plan.copy disk_read %h0[0, 256] -> %m0[0, 256]
    plan.launch compute %m0[0, 256] -> %w0[0, 128] : @round
    plan.copy compute %w0[0, 128] -> %x[0, 128]
    // CHECK-NEXT: plan.fill compute -> %[[M0]][0, 256] : 1
    // CHECK-NEXT: plan.copy disk_write %[[M0]][0, 256] -> %[[H0]][0, 256]
    plan.copy disk_read %h0[0, 256] -> %d0[0, 256]
    plan.fill compute -> %d0[0, 256] : 1
    plan.copy disk_write %d0[0, 256] -> %h0[0, 256]
    plan.return %r[0, 4]
  }
}
