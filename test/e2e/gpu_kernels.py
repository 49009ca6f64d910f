#!/usr/bin/env python3
"""Kernels for cuda, on a machine without a GPU: their text, what ptxas makes of it, and their results in the double of a GPU (test/gpu)."""
import functools
import os
import re
import shutil
import sys

from harness import GPT, ROOT, TINY, Suite, expect

sys.path.insert(0, str(ROOT / "test"))
import plan_file  # noqa: E402

suite = Suite(__doc__)
MODELS = {f"{path.parent.name}/{path.stem}": path for path in sorted(TINY.glob("*/*.onnx"))}
BINDS = {"gpt2/dynamo_sdpa_dyn": ["--bind", "batch=2,seq=16"], "llama/ts17_eager_dyn": ["--bind", "batch=2,seq=16"]}
# Tokens enough for norms' gradients to sum columns, too.
MANY = ["--layers", 1, "--hidden", 256, "--heads", 4, "--vocab", 64, "--seq", 32, "--batch", 256]
# Lengths that no tile of attention divides, over several tiles, and heads that share keys.
WRITTEN = {"written/gpt, 8192 tokens": MANY, "written/llama, 8192 tokens": ["--arch", "llama", *MANY],
           "written/grouped, 75 tokens": ["--arch", "llama", "--layers", 1, "--hidden", 64, "--heads", 4, "--kv-heads", 2, "--vocab", 64,
                                          "--seq", 75, "--batch", 2],
           # A sliding window over several tiles, of which some are passed over.
           "written/window of 20, 150 tokens": ["--arch", "llama", "--layers", 1, "--hidden", 64, "--heads", 4, "--kv-heads", 2, "--vocab", 64,
                                                "--seq", 150, "--batch", 1, "--window", 20],
           "written/padded, window of 20, 150 tokens": ["--layers", 1, "--hidden", 64, "--heads", 4, "--vocab", 64, "--seq", 150, "--batch", 2,
                                                        "--arch", "llama", "--window", 20, "--padded"],
           # Rows of logits that in bf16 are kept in shared memory.
           "written/40000 classes": ["--layers", 1, "--hidden", 32, "--heads", 2, "--vocab", 40000, "--seq", 4, "--batch", 1]}
# Rows of 64 and 128 elements, which warpgroups multiply, with ends of tiles.
FOR_WARPGROUPS = {f"written/heads of {width}, sm_90a": ["--layers", 1, "--hidden", 128, "--heads", 128 // width, "--vocab", 64, "--seq", 75, "--batch", 1]
                  for width in (64, 128)}
# Blocks of seven warps, whose shared sums are no whole vectors: too large to be run here.
READ_ONLY = {"written/1600 columns": ["--layers", 1, "--hidden", 1600, "--heads", 25, "--vocab", 64, "--seq", 32, "--batch", 64]}
LOSSES = {"gpt2_loss/dynamo_eager": ["--loss", "output:loss"]}


def ptxas():
    """The toolkit's assembler: ZERO_PTXAS, on the path, where toolkits lie, or in Python's wheel nvidia-cuda-nvcc; None if nowhere."""
    places = [os.environ.get("ZERO_PTXAS"), shutil.which("ptxas"), "/usr/local/cuda/bin/ptxas"]
    for folder in sys.path:
        places.append(os.path.join(folder, "nvidia/cuda_nvcc/bin/ptxas"))
        places.append(os.path.join(folder, "nvidia/cu13/bin/ptxas"))
    return next((place for place in places if place and os.access(place, os.X_OK)), None)


def flags(name, precision):
    return [*BINDS.get(name, []), *LOSSES.get(name, []), "--precision", precision, "--target", "cuda", *(["--gpu", "sm_90a"] if "sm_90a" in name else [])]


@functools.cache
def compiled(name, precision):
    """The plan, in the work folder."""
    plan = f"{name}-{precision}.plan".replace("/", "-").replace(" ", "-")
    suite.zeroc(MODELS[name], plan, *flags(name, precision))
    return suite.work / plan


def sums_columns(name, precision):
    """Gradients of norms' parameters are summed by the kernels of norms' gradients."""
    apart = [k.symbol for k in plan_file.read(compiled(name, precision)).kernels if k.symbol.startswith("columns_norm")]
    expect(not apart, f"rows are read once more by {', '.join(apart)}")


def one_thread(name, precision):
    suite.run(["taskset", "-c", "0", suite.bin / "zeroc", MODELS[name], "-o", "one.plan", *flags(name, precision)])
    expect(compiled(name, precision).read_bytes() == (suite.work / "one.plan").read_bytes(), "another number of threads gives another plan")


def text(name, precision):
    """One entry per kernel with the bounds of the plan, and nothing undefined."""
    path = compiled(name, precision)
    ptx = dict(plan_file.segments(path))[2].decode()
    outside = [line for line in ptx.splitlines() if ".extern" in line and not line.startswith(".extern .shared ")] # which launches give
    expect(not outside and "__nv_" not in ptx, "the module refers to something outside")
    if name == "written/40000 classes":
        kept = [k.summary for k in plan_file.read(path).kernels if k.gpu.shared_bytes]
        expect(len(kept) == (precision == "bf16") and all("[4 x 40000]" in s for s in kept), f"rows are kept by {kept}")
    if name in FOR_WARPGROUPS:
        expect(("wgmma.mma_async" in ptx) == (precision == "bf16"), "warpgroups multiply bf16, and nothing else")
    aligned = {array: int(bytes) for bytes, array in re.findall(r"\.shared \.align (\d+) \.b\d+ (\w+)\[", ptx)}
    for count, size, array, _, offset in re.findall(r"\.shared\.v(\d)\.\w(\d+) [^\[]*\[(\w+)(\+(\d+))?\]", ptx):
        if array in aligned:
            width = int(count) * int(size) // 8
            expect(aligned[array] % width == 0 and int(offset or 0) % width == 0, f"{width} bytes of {array} are accessed at once, {aligned[array]} aligned")
    gpu = "sm_90a" if name in FOR_WARPGROUPS else "sm_80"
    expect(ptx.count(".version") == 1 and f".target {gpu}\n" in ptx, f"it is not one module for {gpu}")
    plan = plan_file.read(path)
    entries = re.findall(r"\.visible \.entry (\w+)\(([^)]*)\)\s*\.reqntid (\d+), 1, 1", ptx)
    expect([e[0] for e in entries] == [k.symbol for k in plan.kernels], "entries are not the kernels of the plan")
    for (symbol, parameters, threads), kernel in zip(entries, plan.kernels):
        expect(parameters.count(".param .u64") == kernel.args == parameters.count(".param"), f"{symbol} takes {parameters}")
        expect(int(threads) == kernel.gpu.threads, f"{symbol} is made for blocks of {threads} threads")
        bounds = re.search(rf"\.visible \.global \.align 8 \.u64 {symbol}_bounds\[\d+\] = {{([\d, ]*)}}", ptx)
        expect(bounds, f"{symbol} says no bounds")
        wanted = [kernel.extent, kernel.args, *kernel.arg_bytes, kernel.row]
        expect([int(n) for n in bounds[1].split(",")] == wanted, f"{symbol} has bounds {bounds[1]}, the plan {wanted}")
    if name == "gpt2/dynamo_sdpa_dyn" and precision == "bf16":  # its rows are whole vectors
        bodies = dict(re.findall(r"\.entry (\w+)\((.*?)\n}", ptx, re.S))
        single = [s for s in bodies if re.search(r"ld\.global(\.\w+)*\.[ub]16\s+%", bodies[s]) and not s.startswith("columns")]
        expect(len(bodies) == len(entries) and not single, f"one number at a time is loaded by {', '.join(single)}")
    attention = [k.symbol for k in plan.kernels if k.symbol.startswith("attention")]
    expect(attention == ["attention_0", "attention_grad_by_row_sums_0"] or name not in WRITTEN, f"attention is {attention}")
    return f"{len(entries)} kernels"


@functools.cache
def architectures():
    """The GPUs of data centres that this assembler knows: the text is for the oldest, and all run it."""
    known = suite.run([assembler, "--help"]).stdout
    return [gpu for gpu in ("sm_80", "sm_90", "sm_100") if f"'{gpu}'" in known]


def assembled(name, precision):
    (suite.work / "a.ptx").write_bytes(dict(plan_file.segments(compiled(name, precision)))[2])
    used = []
    for gpu in ["sm_90a"] if name in FOR_WARPGROUPS else architectures() if name.startswith("gpt2/") else ["sm_90"]:
        said = suite.run([assembler, "-v", f"-arch={gpu}", "a.ptx", "-o", "a.cubin"]).stderr
        # ptxas gives up a few registers where one more block fits then.
        spills = [int(n) for n in re.findall(r"(\d+) bytes spill stores", said)]
        expect(max(spills) <= 32, f"{max(spills)} bytes of registers are spilled for {gpu}")
        registers = [int(n) for n in re.findall(r"Used (\d+) registers", said)]
        used.append(f"{max(registers)} for {gpu}")
    return "at most " + ", ".join(used) + " registers"


def compared(name, precision):
    """Each kernel in the double of a GPU against the same for the processor."""
    (suite.work / "a.mlir").write_text(suite.run([suite.bin / "zeroc", MODELS[name], "--emit", "place", *flags(name, precision)]).stdout)
    done = suite.run([suite.bin / "gpu-compare", compiled(name, precision), "a.mlir"], check=False, timeout=300)
    lines = done.stdout.splitlines() or [done.stderr]
    expect(done.returncode == 0, "; ".join(lines[:3]))
    return lines[-1]


suite.start()
assembler = ptxas()
for number, (name, form) in enumerate({**WRITTEN, **FOR_WARPGROUPS, **READ_ONLY}.items()):
    MODELS[name] = suite.work / f"written{number}.onnx"
    suite.run([sys.executable, GPT, *form, "-o", MODELS[name]])
for name in MODELS:
    for precision in ("f32", "bf16"):
        suite.check(f"gpu kernels: {name} {precision}, text", text, name, precision)
        if assembler:
            suite.check(f"gpu kernels: {name} {precision}, ptxas", assembled, name, precision)
        if name not in READ_ONLY:
            suite.check(f"gpu kernels: {name} {precision}, double", compared, name, precision)
for precision in ("f32", "bf16"):
    for name in (name for name in WRITTEN if "8192" in name):
        suite.check(f"gpu kernels: {name} {precision}, columns", sums_columns, name, precision)
    suite.check(f"gpu kernels: {precision}, the same bytes from any number of threads", one_thread, "gpt2/dynamo_sdpa_dyn", precision)
if not assembler:
    print("NOT RUN: ptxas is nowhere, so nothing but LLVM has read the PTX; install nvidia-cuda-nvcc or name it with ZERO_PTXAS")
suite.finish()
