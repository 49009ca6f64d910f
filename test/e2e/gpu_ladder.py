#!/usr/bin/env python3
"""What is made for a machine with GPUs, on one without: the bundle of test/gpu/bundle.sh starts with nothing of ours installed, all rungs of
test/gpu/run.sh pass on the stand-ins for NVIDIA's libraries (no GPU takes part), and what is broken makes its own rung fail and no other."""
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess

import numpy as np
from safetensors.numpy import load_file, save_file

from harness import ROOT, Suite, expect

GLIBC = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2"}
MODEL, RANKS = "gpt2_loss-dynamo_eager", "gpt2-dynamo_sdpa_dyn"
suite = Suite(__doc__)


def bundle():
    suite.run([ROOT / "test/gpu/bundle.sh", suite.work / "bundle", "--stand-ins", "--peer", __file__], timeout=900)
    return f"{sum(p.stat().st_size for p in (suite.work / 'bundle').rglob('*')) / 2**20:.1f} MiB"


def made():
    expect((suite.work / "bundle/sums").exists(), "there is no bundle")
    return suite.work / "bundle"


def self_contained():
    """They want glibc 2.36 and what is carried along, and start in a root that has nothing else."""
    root, programs = suite.work / "root", sorted((made() / "bin").iterdir())
    carried = {path.name for path in (made() / "lib").iterdir()}
    for program in [*programs, *sorted((made() / "lib").iterdir())]:
        said = suite.run(["readelf", "-d", "-V", "-W", program]).stdout
        needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", said))
        expect(needed and needed <= GLIBC | carried, f"{program.name} needs {', '.join(needed - GLIBC - carried)}")
        newest = max(int(n) for n in re.findall(r"GLIBC_2\.(\d+)", said))
        expect(newest <= 36, f"{program.name} needs glibc 2.{newest}")
    for folder in ("lib64", "lib/x86_64-linux-gnu", "bin", "proc", "tmp"):
        (root / folder).mkdir(parents=True)
    for name in GLIBC:
        place = "lib64" if name.startswith("ld") else "lib/x86_64-linux-gnu"
        shutil.copy(pathlib.Path("/", place, name), root / place)
    enter = [*([] if os.geteuid() == 0 else [shutil.which("unshare"), "--map-root-user"]), shutil.which("chroot", path="/usr/sbin:/sbin:/usr/bin")]
    shutil.copytree(made() / "lib", root / "lib", dirs_exist_ok=True)
    for program in programs:
        shutil.copy(program, root / "bin")
        done = suite.run(["env", "-i", *enter, root, f"/bin/{program.name}", "--help"], check=False)
        expect("sage" in done.stdout + done.stderr or "commands are" in done.stderr, f"{program.name} does not start: {done.stderr.strip()}")
    return f"{len(programs)} programs"


def climb(folder, env=None):
    """The report's lines of rungs by what became of them, and the last line."""
    report = suite.work / "report.md"
    report.unlink(missing_ok=True)
    done = suite.run(["bash", folder / "run.sh", folder, report], check=False, timeout=480,
                     env={"ZERO_CUDA_LIBRARIES": str(suite.bin.parent / "test/gpu/fake"), **(env or {})})
    text = report.read_text()
    last = text.splitlines()[-1]
    rungs = {kind: re.findall(rf"^- {kind}: (.*)", text, re.M) for kind in ("ok", "FAILED", "not run")}
    counts = [len(rungs[kind]) for kind in rungs]
    expect(last == f"{counts[0]} passed, {counts[1]} failed, {counts[2]} not run", f"the last line is '{last}', and rungs {counts}")
    expect((done.returncode == 0) == (counts[1] == 0), f"exit status {done.returncode} with '{last}'")
    return rungs, text


def passes():
    rungs, text = climb(made(), {"ZERO_FAKE_DEVICES": "4"})
    expect(not rungs["FAILED"], "; ".join(rungs["FAILED"]))
    wanted = [line for line in asked() if not line.startswith("set ")]
    expect(len(wanted) == sum(map(len, rungs.values())), f"{len(wanted)} rungs were asked for")
    graphs = "--no-graphs" in suite.run([made() / "bin/zerorun", "--help"]).stdout
    expect([r.split(" on ")[0].split(" ")[0] for r in rungs["not run"]] == [*([] if graphs else [f"{MODEL},"]), "PyTorch's", "compute-sanitizer"],
           f"not run: {rungs['not run']}")
    for sentence in ("fake device", "no GPU took part", "host to device", "TFLOP/s", "slowest", "equal to the bit", "gradients within", "by elements of their results",
                     f"{RANKS}, 4 ranks", "| update_host |", "| disk_read |", "the busiest, works", "the plan proves, GiB"):
        expect(sentence in text, f"the report has no '{sentence}'")
    return text.splitlines()[-1]


def with_rungs(name, lines):
    """A copy of the bundle with these rungs alone."""
    folder = suite.work / name
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(made(), folder, copy_function=os.link)
    replace(folder / "rungs", "\n".join(lines) + "\n")
    replace(folder / "sums", re.sub(r"\w+(?=  rungs$)", hashlib.sha256((folder / "rungs").read_bytes()).hexdigest(), (folder / "sums").read_text(), flags=re.M))
    return folder


def asked():
    return (made() / "rungs").read_text().splitlines()


def no_room():
    """What this machine has no room, no processors, no time or too few GPUs for is not begun, and the report says why."""
    ranks, host, disk = (next(line for line in asked() if line.startswith(kind)) for kind in ("ranks 4", "beyond gpt-host", "beyond gpt-disk"))
    words = host.split()
    folder = with_rungs("room", [ranks, host, disk, " ".join([*words[:4], "100000", *words[5:]]), " ".join([*words[:5], "70", "60"]), "machine"])
    found, _ = climb(folder, {"ZERO_FAKE_MEMORY": str(2 << 30)})
    why = ("has 1 GPU, and 4 are wanted", "the GPU has 2.0 GiB free, and 2.0 are wanted", "the GPU has 2.0 GiB free, and 2.0 are wanted", "and 100000 are wanted", "it wants 70 s")
    expect(len(found["not run"]) == len(why), f"not run are {found['not run']}")
    for line, words in zip(found["not run"], why):
        expect(words in line, f"'{line}' does not say '{words}'")
    expect(len(found["ok"]) == 1, f"passed are {found['ok']}")
    found, _ = climb(folder, {"ZERO_GPU_RUNGS": "machine"})
    expect(len(found["ok"]) == 1 and all("ZERO_GPU_RUNGS" in line for line in found["not run"]) and len(found["not run"]) == 5, f"of one kind: {found}")
    return why[0]


def broken(name, rungs, change, failing, env=None, also=()):
    """A copy of the bundle with these rungs alone, changed; exactly the rung that begins with `failing` fails."""
    kept = [line for line in asked() if line.startswith(("set ", *rungs))]
    folder = with_rungs("broken", kept)
    change(folder)
    found, text = climb(folder, env)
    expect(len(found["FAILED"]) == 1 and found["FAILED"][0].startswith(failing), f"failed are {found['FAILED']}")
    expect(len(found["ok"]) == len([k for k in kept if not k.startswith("set ")]) - 1 >= 1, f"of {kept} passed {found['ok']}")
    return found["FAILED"][0][:150]


def replace(path, content):
    """Not through the link."""
    path.unlink()
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def tools(finds=0):
    """A PATH with programs that do as PyTorch and compute-sanitizer do where they are installed; the latter finds so many errors."""
    folder = suite.work / f"tools-{finds}"
    folder.mkdir(exist_ok=True)
    for name, text in {"python3": """[ "$1" = -c ] || echo '{"model": "124M", "tokens_per_s": 1.5, "loss": 4}'""",
                       "compute-sanitizer": f'while [ "${{1#--}}" != "$1" ]; do shift 2; done; "$@" && echo "ERROR SUMMARY: {finds} errors" && exit {finds and 9}'}.items():
        (folder / name).write_text(f"#!/bin/bash\n{text}\n")
        (folder / name).chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def with_tools():
    folder = with_rungs("tools", [line for line in asked() if line.startswith(("benchmark", "peer", "sanitizer"))])
    rungs, text = climb(folder, tools())
    expect(len(rungs["ok"]) == 3 == sum(map(len, rungs.values())), f"of three rungs passed {rungs}")
    ours = int(re.search(r": (\d+) tokens/s", text)[1])
    expect(f"1 tokens/s; zerorun has {ours}.00 times as many" in text, "the ratio is not in the report")
    return rungs["ok"][1]


def wrong_loss(folder):
    path = folder / MODEL / "reference.json"
    reference = json.loads(path.read_text())
    reference["losses"][1] *= 1.01
    replace(path, json.dumps(reference))


def wrong_gradient(folder):
    path = folder / MODEL / "gradients.safetensors"
    gradients = load_file(path)
    gradients[min(gradients)] = gradients[min(gradients)] * np.float32(1.1)
    path.unlink()
    save_file(gradients, path)


def wrong_kernel(folder):
    """One kernel whose sums would have to have the processor's bits."""
    path = folder / MODEL / "f32.json"
    cases = json.loads(path.read_text())
    next(case for case in cases if case["inexact"])["inexact"] = False
    replace(path, json.dumps(cases))


def flipped(folder):
    content = bytearray((folder / MODEL / "data.safetensors").read_bytes())
    content[-1] ^= 1
    replace(folder / RANKS / "data.safetensors", bytes(content))


def missing_plan(folder):
    (folder / MODEL / "f32-host.plan").unlink()


def nothing(folder):
    pass


TWO = (f"kernels {MODEL} f32", f"training {MODEL} f32", f"training {MODEL} bf16")
suite.start()
suite.check("gpu ladder: a bundle is made", bundle)
suite.check("gpu ladder: its programs want glibc alone", self_contained)
suite.check("gpu ladder: all rungs on the stand-ins", passes)
suite.check("gpu ladder: PyTorch and compute-sanitizer are run where they are installed", with_tools)
suite.check("gpu ladder: what this machine has no room for is not run", no_room)
suite.check("gpu ladder: a wrong loss", broken, "loss", TWO[:2], wrong_loss, f"{MODEL}, f32: losses")
suite.check("gpu ladder: a wrong gradient", broken, "gradient", TWO[:2], wrong_gradient, f"{MODEL}, f32: losses")
suite.check("gpu ladder: a wrong kernel", broken, "kernel", TWO[:2], wrong_kernel, f"kernels of {MODEL}, f32")
suite.check("gpu ladder: a changed file", broken, "file", ("whole", "machine"), flipped, "the bundle is whole")
suite.check("gpu ladder: a missing plan", broken, "plan", (TWO[1], "equal"), missing_plan, f"{MODEL}: f32-stage3")
suite.check("gpu ladder: a product that fails", broken, "product", ("machine", "copies", "products"), nothing, "products of",
            {"ZERO_FAKE_FAIL": "cublasLtMatmul:1:later"})
suite.check("gpu ladder: what compute-sanitizer finds", broken, "memory", ("machine", "sanitizer"), nothing, "compute-sanitizer on", tools(3))
suite.finish()
