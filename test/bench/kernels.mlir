// Kernels of a GPT-2 124M step at batch 4 x 256, as nn-fuse makes them: read by kernel_bench.
func.func private @residual_layer_norm(%x: tensor<1024x768xf32>, %r: tensor<1024x768xf32>, %bias: tensor<768xf32>, %g: tensor<768xf32>, %b: tensor<768xf32>)
    -> (tensor<1024x768xf32>, tensor<1024x768xf32>, tensor<1024xf32>, tensor<1024xf32>) attributes {nn.kernel} {
  %biasb = nn.broadcast %bias dims [1] : tensor<768xf32> -> tensor<1024x768xf32>
  %xb = nn.add %x, %biasb : tensor<1024x768xf32>
  %y = nn.add %xb, %r : tensor<1024x768xf32>
  %n = nn.constant dense<0.00130208337> : tensor<1024xf32>
  %eps = nn.constant dense<1.0e-05> : tensor<1024xf32>
  %s = nn.reduce sum %y dims [1] : tensor<1024x768xf32> -> tensor<1024xf32>
  %mean = nn.mul %s, %n : tensor<1024xf32>
  %mb = nn.broadcast %mean dims [0] : tensor<1024xf32> -> tensor<1024x768xf32>
  %d = nn.sub %y, %mb : tensor<1024x768xf32>
  %q = nn.mul %d, %d : tensor<1024x768xf32>
  %qs = nn.reduce sum %q dims [1] : tensor<1024x768xf32> -> tensor<1024xf32>
  %var = nn.mul %qs, %n : tensor<1024xf32>
  %ve = nn.add %var, %eps : tensor<1024xf32>
  %rstd = nn.rsqrt %ve : tensor<1024xf32>
  %rb = nn.broadcast %rstd dims [0] : tensor<1024xf32> -> tensor<1024x768xf32>
  %h = nn.mul %d, %rb : tensor<1024x768xf32>
  %gb = nn.broadcast %g dims [1] : tensor<768xf32> -> tensor<1024x768xf32>
  %bb = nn.broadcast %b dims [1] : tensor<768xf32> -> tensor<1024x768xf32>
  %hg = nn.mul %h, %gb : tensor<1024x768xf32>
  %o = nn.add %hg, %bb : tensor<1024x768xf32>
  return %y, %o, %mean, %rstd : tensor<1024x768xf32>, tensor<1024x768xf32>, tensor<1024xf32>, tensor<1024xf32>
}
func.func private @layer_norm(%y: tensor<8192x768xf32>, %g: tensor<768xf32>, %b: tensor<768xf32>) -> tensor<8192x768xf32> attributes {nn.kernel} {
  %n = nn.constant dense<0.00130208337> : tensor<8192xf32>
  %eps = nn.constant dense<1.0e-05> : tensor<8192xf32>
  %s = nn.reduce sum %y dims [1] : tensor<8192x768xf32> -> tensor<8192xf32>
  %mean = nn.mul %s, %n : tensor<8192xf32>
  %mb = nn.broadcast %mean dims [0] : tensor<8192xf32> -> tensor<8192x768xf32>
  %d = nn.sub %y, %mb : tensor<8192x768xf32>
  %q = nn.mul %d, %d : tensor<8192x768xf32>
  %qs = nn.reduce sum %q dims [1] : tensor<8192x768xf32> -> tensor<8192xf32>
  %var = nn.mul %qs, %n : tensor<8192xf32>
  %ve = nn.add %var, %eps : tensor<8192xf32>
  %rstd = nn.rsqrt %ve : tensor<8192xf32>
  %rb = nn.broadcast %rstd dims [0] : tensor<8192xf32> -> tensor<8192x768xf32>
  %h = nn.mul %d, %rb : tensor<8192x768xf32>
  %gb = nn.broadcast %g dims [1] : tensor<768xf32> -> tensor<8192x768xf32>
  %bb = nn.broadcast %b dims [1] : tensor<768xf32> -> tensor<8192x768xf32>
  %hg = nn.mul %h, %gb : tensor<8192x768xf32>
  %o = nn.add %hg, %bb : tensor<8192x768xf32>
  return %o : tensor<8192x768xf32>
}
func.func private @bias_gelu(%h: tensor<1024x3072xf32>, %bias: tensor<3072xf32>) -> tensor<1024x3072xf32> attributes {nn.kernel} {
  %biasb = nn.broadcast %bias dims [1] : tensor<3072xf32> -> tensor<1024x3072xf32>
  %x = nn.add %h, %biasb : tensor<1024x3072xf32>
  %a = nn.constant dense<0.0713548139> : tensor<1024x3072xf32>
  %c = nn.constant dense<1.59576917> : tensor<1024x3072xf32>
  %x2 = nn.mul %x, %x : tensor<1024x3072xf32>
  %ax2 = nn.mul %x2, %a : tensor<1024x3072xf32>
  %i = nn.add %ax2, %c : tensor<1024x3072xf32>
  %u = nn.mul %x, %i : tensor<1024x3072xf32>
  %s = nn.sigmoid %u : tensor<1024x3072xf32>
  %y = nn.mul %x, %s : tensor<1024x3072xf32>
  return %y : tensor<1024x3072xf32>
}
func.func private @softmax(%s: tensor<12288x256xf32>) -> tensor<12288x256xf32> attributes {nn.kernel} {
  %mx = nn.reduce max %s dims [1] : tensor<12288x256xf32> -> tensor<12288xf32>
  %mb = nn.broadcast %mx dims [0] : tensor<12288xf32> -> tensor<12288x256xf32>
  %d = nn.sub %s, %mb : tensor<12288x256xf32>
  %e = nn.exp %d : tensor<12288x256xf32>
  %t = nn.reduce sum %e dims [1] : tensor<12288x256xf32> -> tensor<12288xf32>
  %one = nn.constant dense<1.0> : tensor<12288xf32>
  %ti = nn.div %one, %t : tensor<12288xf32>
  %tb = nn.broadcast %ti dims [0] : tensor<12288xf32> -> tensor<12288x256xf32>
  %p = nn.mul %e, %tb : tensor<12288x256xf32>
  return %p : tensor<12288x256xf32>
}
func.func private @cross_entropy(%x: tensor<1024x50257xf32>, %labels: tensor<1024xi64>, %scale: tensor<1xf32>)
    -> (tensor<1024xf32>, tensor<1024x50257xf32>) attributes {nn.kernel} {
  %m = nn.reduce max %x dims [1] : tensor<1024x50257xf32> -> tensor<1024xf32>
  %mb = nn.broadcast %m dims [0] : tensor<1024xf32> -> tensor<1024x50257xf32>
  %d = nn.sub %x, %mb : tensor<1024x50257xf32>
  %e = nn.exp %d : tensor<1024x50257xf32>
  %s = nn.reduce sum %e dims [1] : tensor<1024x50257xf32> -> tensor<1024xf32>
  %l = nn.log %s : tensor<1024xf32>
  %lse = nn.add %l, %m : tensor<1024xf32>
  %ignore = nn.constant dense<-100> : tensor<1024xi64>
  %keep = nn.compare ne %labels, %ignore : tensor<1024xi64> -> tensor<1024xi1>
  %l32 = nn.cast %labels : tensor<1024xi64> -> tensor<1024xi32>
  %i = nn.iota 1 : tensor<1024x50257xi32>
  %lab = nn.broadcast %l32 dims [0] : tensor<1024xi32> -> tensor<1024x50257xi32>
  %hit = nn.compare eq %i, %lab : tensor<1024x50257xi32> -> tensor<1024x50257xi1>
  %zeros = nn.constant dense<0.0> : tensor<1024x50257xf32>
  %ones = nn.constant dense<1.0> : tensor<1024x50257xf32>
  %own = nn.select %hit, %x, %zeros : tensor<1024x50257xi1>, tensor<1024x50257xf32>
  %picked = nn.reduce sum %own dims [1] : tensor<1024x50257xf32> -> tensor<1024xf32>
  %nll = nn.sub %lse, %picked : tensor<1024xf32>
  %sr = nn.broadcast %scale dims [0] : tensor<1xf32> -> tensor<1024xf32>
  %zf = nn.constant dense<0.0> : tensor<1024xf32>
  %w = nn.select %keep, %sr, %zf : tensor<1024xi1>, tensor<1024xf32>
  %loss = nn.mul %nll, %w : tensor<1024xf32>
  %lb = nn.broadcast %lse dims [0] : tensor<1024xf32> -> tensor<1024x50257xf32>
  %xs = nn.sub %x, %lb : tensor<1024x50257xf32>
  %p = nn.exp %xs : tensor<1024x50257xf32>
  %hot = nn.select %hit, %ones, %zeros : tensor<1024x50257xi1>, tensor<1024x50257xf32>
  %pd = nn.sub %p, %hot : tensor<1024x50257xf32>
  %wb = nn.broadcast %w dims [0] : tensor<1024xf32> -> tensor<1024x50257xf32>
  %dx = nn.mul %pd, %wb : tensor<1024x50257xf32>
  return %loss, %dx : tensor<1024xf32>, tensor<1024x50257xf32>
}
func.func private @bias_gradient(%dy: tensor<1024x3072xf32>) -> tensor<3072xf32> attributes {nn.kernel} {
  %s = nn.reduce sum %dy dims [0] : tensor<1024x3072xf32> -> tensor<3072xf32>
  return %s : tensor<3072xf32>
}
func.func private @norm_gradients(%dy: tensor<1024x768xf32>, %x: tensor<1024x768xf32>, %mean: tensor<1024xf32>, %rstd: tensor<1024xf32>)
    -> (tensor<768xf32>, tensor<768xf32>) attributes {nn.kernel} {
  %mb = nn.broadcast %mean dims [0] : tensor<1024xf32> -> tensor<1024x768xf32>
  %rb = nn.broadcast %rstd dims [0] : tensor<1024xf32> -> tensor<1024x768xf32>
  %d = nn.sub %x, %mb : tensor<1024x768xf32>
  %h = nn.mul %d, %rb : tensor<1024x768xf32>
  %g = nn.mul %dy, %h : tensor<1024x768xf32>
  %dg = nn.reduce sum %g dims [0] : tensor<1024x768xf32> -> tensor<768xf32>
  %db = nn.reduce sum %dy dims [0] : tensor<1024x768xf32> -> tensor<768xf32>
  return %dg, %db : tensor<768xf32>, tensor<768xf32>
}
func.func private @split_heads(%x: tensor<4x256x2304xf32>, %b: tensor<2304xf32>) -> (tensor<4x12x256x64xf32>, tensor<4x12x256x64xf32>, tensor<4x12x256x64xf32>)
    attributes {nn.kernel} {
  %bb = nn.broadcast %b dims [2] : tensor<2304xf32> -> tensor<4x256x2304xf32>
  %y = nn.add %x, %bb : tensor<4x256x2304xf32>
  %q = nn.slice %y starts [0, 0, 0] sizes [4, 256, 768] steps [1, 1, 1] : tensor<4x256x2304xf32> -> tensor<4x256x768xf32>
  %k = nn.slice %y starts [0, 0, 768] sizes [4, 256, 768] steps [1, 1, 1] : tensor<4x256x2304xf32> -> tensor<4x256x768xf32>
  %v = nn.slice %y starts [0, 0, 1536] sizes [4, 256, 768] steps [1, 1, 1] : tensor<4x256x2304xf32> -> tensor<4x256x768xf32>
  %q4 = nn.reshape %q : tensor<4x256x768xf32> -> tensor<4x256x12x64xf32>
  %k4 = nn.reshape %k : tensor<4x256x768xf32> -> tensor<4x256x12x64xf32>
  %v4 = nn.reshape %v : tensor<4x256x768xf32> -> tensor<4x256x12x64xf32>
  %qt = nn.transpose %q4 perm [0, 2, 1, 3] : tensor<4x256x12x64xf32> -> tensor<4x12x256x64xf32>
  %kt = nn.transpose %k4 perm [0, 2, 1, 3] : tensor<4x256x12x64xf32> -> tensor<4x12x256x64xf32>
  %vt = nn.transpose %v4 perm [0, 2, 1, 3] : tensor<4x256x12x64xf32> -> tensor<4x12x256x64xf32>
  return %qt, %kt, %vt : tensor<4x12x256x64xf32>, tensor<4x12x256x64xf32>, tensor<4x12x256x64xf32>
}
func.func private @join_heads(%q: tensor<4x12x256x64xf32>, %k: tensor<4x12x256x64xf32>, %v: tensor<4x12x256x64xf32>) -> tensor<4x256x2304xf32> attributes {nn.kernel} {
  %qt = nn.transpose %q perm [0, 2, 1, 3] : tensor<4x12x256x64xf32> -> tensor<4x256x12x64xf32>
  %kt = nn.transpose %k perm [0, 2, 1, 3] : tensor<4x12x256x64xf32> -> tensor<4x256x12x64xf32>
  %vt = nn.transpose %v perm [0, 2, 1, 3] : tensor<4x12x256x64xf32> -> tensor<4x256x12x64xf32>
  %q3 = nn.reshape %qt : tensor<4x256x12x64xf32> -> tensor<4x256x768xf32>
  %k3 = nn.reshape %kt : tensor<4x256x12x64xf32> -> tensor<4x256x768xf32>
  %v3 = nn.reshape %vt : tensor<4x256x12x64xf32> -> tensor<4x256x768xf32>
  %c = nn.concat %q3, %k3, %v3 dim 2 : (tensor<4x256x768xf32>, tensor<4x256x768xf32>, tensor<4x256x768xf32>) -> tensor<4x256x2304xf32>
  return %c : tensor<4x256x2304xf32>
}
func.func private @adamw(%p: tensor<16384x1024xf32>, %g: tensor<16384x1024xf32>, %m: tensor<16384x1024xf32>, %v: tensor<16384x1024xf32>, %h: tensor<16xf32>)
    -> (tensor<16384x1024xf32>, tensor<16384x1024xf32>, tensor<16384x1024xf32>, tensor<16384xf32>) attributes {nn.kernel} {
  %lr = nn.slice %h starts [0] sizes [1] steps [1] : tensor<16xf32> -> tensor<1xf32>
  %b1 = nn.slice %h starts [1] sizes [1] steps [1] : tensor<16xf32> -> tensor<1xf32>
  %b2 = nn.slice %h starts [2] sizes [1] steps [1] : tensor<16xf32> -> tensor<1xf32>
  %eps = nn.slice %h starts [3] sizes [1] steps [1] : tensor<16xf32> -> tensor<1xf32>
  %c2 = nn.slice %h starts [6] sizes [1] steps [1] : tensor<16xf32> -> tensor<1xf32>
  %one = nn.constant dense<1.0> : tensor<1xf32>
  %n1 = nn.sub %one, %b1 : tensor<1xf32>
  %n2 = nn.sub %one, %b2 : tensor<1xf32>
  %un = nn.rsqrt %c2 : tensor<1xf32>
  %lrb = nn.broadcast %lr dims [1] : tensor<1xf32> -> tensor<16384x1024xf32>
  %n1b = nn.broadcast %n1 dims [1] : tensor<1xf32> -> tensor<16384x1024xf32>
  %n2b = nn.broadcast %n2 dims [1] : tensor<1xf32> -> tensor<16384x1024xf32>
  %b2b = nn.broadcast %b2 dims [1] : tensor<1xf32> -> tensor<16384x1024xf32>
  %epsb = nn.broadcast %eps dims [1] : tensor<1xf32> -> tensor<16384x1024xf32>
  %unb = nn.broadcast %un dims [1] : tensor<1xf32> -> tensor<16384x1024xf32>
  %gm = nn.sub %g, %m : tensor<16384x1024xf32>
  %gm1 = nn.mul %n1b, %gm : tensor<16384x1024xf32>
  %m1 = nn.add %m, %gm1 : tensor<16384x1024xf32>
  %g2 = nn.mul %g, %g : tensor<16384x1024xf32>
  %va = nn.mul %b2b, %v : tensor<16384x1024xf32>
  %vb = nn.mul %n2b, %g2 : tensor<16384x1024xf32>
  %v1 = nn.add %va, %vb : tensor<16384x1024xf32>
  %root = nn.sqrt %v1 : tensor<16384x1024xf32>
  %ru = nn.mul %root, %unb : tensor<16384x1024xf32>
  %den = nn.add %ru, %epsb : tensor<16384x1024xf32>
  %num = nn.mul %lrb, %m1 : tensor<16384x1024xf32>
  %q = nn.div %num, %den : tensor<16384x1024xf32>
  %p1 = nn.sub %p, %q : tensor<16384x1024xf32>
  %ss = nn.reduce sum %g2 dims [1] : tensor<16384x1024xf32> -> tensor<16384xf32>
  return %p1, %m1, %v1, %ss : tensor<16384x1024xf32>, tensor<16384x1024xf32>, tensor<16384x1024xf32>, tensor<16384xf32>
}
