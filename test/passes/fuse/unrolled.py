"""Prints steps of a loop that an exporter has unrolled: h = tanh(x[:, t] + b + h U) of a product x of all times, `batch first` or times first.

usage: unrolled.py TIMES batch|times"""
import sys

times, first = int(sys.argv[1]), sys.argv[2]
shape, start, size = ((2, times, 16), "0, {}, 0", "2, 1, 16") if first == "batch" else ((times, 2, 16), "{}, 0, 0", "1, 2, 16")
whole, part = ("tensor<" + "x".join(str(n).strip() for n in dims) + "xf32>" for dims in (shape, size.split(",")))
flat, h = f"tensor<{2 * times}x16xf32>", "tensor<2x16xf32>"
print(f"func.func @loop(%a: tensor<{2 * times}x8xf32>, %w: tensor<8x16xf32>, %u: tensor<16x16xf32>, %b: tensor<16xf32>, %h0: {h}) -> {h} {{")
print(f" %x = nn.matmul %a, %w : (tensor<{2 * times}x8xf32>, tensor<8x16xf32>) -> {flat}\n %xs = nn.reshape %x : {flat} -> {whole}")
print(f" %bs = nn.broadcast %b dims [2] : tensor<16xf32> -> {whole}\n %y = nn.add %xs, %bs : {whole}")
for t in range(times):
    print(f" %s{t} = nn.slice %y starts [{start.format(t)}] sizes [{size}] steps [1, 1, 1] : {whole} -> {part}\n %r{t} = nn.reshape %s{t} : {part} -> {h}")
    print(f" %p{t} = nn.matmul %h{t}, %u : ({h}, tensor<16x16xf32>) -> {h}\n %q{t} = nn.add %r{t}, %p{t} : {h}\n %h{t + 1} = nn.tanh %q{t} : {h}")
print(f" return %h{times} : {h}\n}}")
