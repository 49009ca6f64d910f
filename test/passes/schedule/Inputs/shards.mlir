module attributes {zero.world = 2 : i64} {
  plan.state parameter @p0 bytes 256 {bucket = @b0, tensor = #zero.tensor<master f32 shard on host>}
  plan.state parameter @p1 bytes 256 {bucket = @b1, tensor = #zero.tensor<master f32 shard on host>}
  plan.state scalar @result.loss bytes 4
  plan.program step @step {
    %h0 = plan.use @p0
    %h1 = plan.use @p1
    %r = plan.use @result.loss
    %x = plan.buffer activation "x" bytes 512
    %s0 = plan.buffer fetched "b0.shard" bytes 256
    %w0 = plan.buffer gathered "b0.gathered" bytes 512
    %w1 = plan.buffer gathered "b1.gathered" bytes 512
    %d0 = plan.buffer fetched "p0.fetched" bytes 256
    %d1 = plan.buffer fetched "p1.fetched" bytes 256
    // CHECK: plan.copy to_device %[[H0:.*]][0, 256] -> %[[S0:.*]][0, 256]
    plan.copy to_device %h0[0, 256] -> %s0[0, 256]
    plan.collective gather %s0[0, 256] -> %w0[0, 512] : all_gather 64 of f32
    plan.copy compute %w0[0, 512] -> %x[0, 512]
    // KEPT-NOT: to_device %[[H0]]
    // KEPT: plan.fill compute -> %[[S0]][0, 256] : 1
    // KEPT: plan.copy to_host %[[S0]][0, 256] -> %[[H0]]
    // FETCHED: plan.copy to_device %[[H0]][0, 256] -> %[[D0:.*]][0, 256]
    // FETCHED: plan.fill compute -> %[[D0]][0, 256] : 1
    plan.copy to_device %h0[0, 256] -> %d0[0, 256]
    plan.fill compute -> %d0[0, 256] : 1
    plan.copy to_host %d0[0, 256] -> %h0[0, 256]
    // In place: all of it would stay.
    // CHECK: plan.copy to_device %[[H1:.*]][0, 256] -> %[[W1:.*]][
    plan.copy to_device %h1[0, 256] -> %w1[0 + rank * 256, 256]
    plan.collective gather %w1[0 + rank * 256, 256] -> %w1[0, 512] : all_gather 64 of f32
    plan.copy compute %w1[0, 512] -> %x[0, 512]
    // CHECK: plan.copy to_device %[[H1]][0, 256] -> %[[D1:.*]][0, 256]
    // CHECK: plan.fill compute -> %[[D1]]
    plan.copy to_device %h1[0, 256] -> %d1[0, 256]
    plan.fill compute -> %d1[0, 256] : 1
    plan.copy to_host %d1[0, 256] -> %h1[0, 256]
    plan.return %r[0, 4]
  }
}
