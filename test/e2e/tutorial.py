#!/usr/bin/env python3
"""The commands of docs/tutorial.md and of the README, as they are printed there, with fewer steps; what the pages show of a plan is printed, and they name flags that exist."""
import os
import re

import numpy as np
import onnxruntime

from harness import ROOT, Suite, expect

suite = Suite(__doc__)
TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text()


def commands(page, without_torch=False):
    """Lines of the blocks without a language, continued ones joined. What follows a command of PyTorch's Python in a block needs what that makes."""
    language, torch = None, False  # of the block the line stands in
    for line in page.replace("\\\n", " ").splitlines():
        if line.startswith("```"):
            language, torch = line[3:] if language is None else None, False
        elif language == "":
            torch |= line.startswith("python ")
            if not (torch and without_torch):
                yield re.sub(r"\s+#.*", "", line).strip()


def walk():
    """From models/gpt.py on: everything that needs neither set-up nor PyTorch."""
    (suite.work / "models").symlink_to(ROOT / "models")
    (suite.work / ".venv").symlink_to(ROOT / ".venv")
    (suite.work / "build" / "demo").mkdir(parents=True)
    (suite.work / "build" / "demo" / "text.txt").write_text(TUTORIAL * 4)
    env = {"PATH": f"{suite.bin}{os.pathsep}{os.environ['PATH']}", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
           "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}
    ran = []
    for command in commands(TUTORIAL, without_torch=True):
        if command.startswith((".venv/bin/python", "zeroc ", "zero-inspect ", "zerorun ", "mpirun ")):
            suite.run(re.sub(r"(--steps|--every|--warmup) (\d+)0\b", r"\1 \2", command).split(), env=env)
            ran.append(command)
    programs = {word for command in ran for word in command.split() if word in ("zeroc", "zero-inspect", "zerorun", "mpirun")}
    expect(len(programs) == 4, f"the page shows {programs} only")
    logits, = onnxruntime.InferenceSession(suite.work / "trained.onnx").run(["logits"], {"input_ids": np.array([[1, 2, 3]])})
    expect(logits.shape == (1, 3, 256), f"the exported model gives {logits.shape}")
    return f"{len(ran)} commands"


def shown():
    """What the README and docs/inspect.md show of the demo's plan for two ranks is what zero-inspect prints, but for the spaces."""
    model = suite.gpt("gpt-half.onnx", *"--layers 4 --hidden 256 --heads 8 --vocab 256 --seq 128 --batch 4".split())
    suite.zeroc(model, "plan2.bin", *"--world 2 --stage 3 --cpu x86-64-v4 -q".split())
    printed = "".join(suite.run([suite.bin / "zero-inspect", "plan2.bin", *page]).stdout for page in ([], ["--peak"], ["--schedule"], ["--schedule", "--operands"]))
    known, checked = {" ".join(line.split()) for line in printed.splitlines()}, 0
    for page, begins in (("README.md", ["gpt-half.onnx:"]), ("docs/inspect.md", ["gpt-half.onnx:", "@step is fullest", "@step: ", "5 compute:2 "])):
        text = (ROOT / page).read_text()
        blocks = [[" ".join(line.split()) for line in block.splitlines()] for block in text.split("```")[1::2]]
        for begin in begins:
            first = next(((block, i) for block in blocks for i, line in enumerate(block) if line.startswith(begin)), None)
            expect(first, f"{page} shows nothing that begins with '{begin}'")
            for line in first[0][first[1]:]:
                if line.startswith("$"):
                    break
                expect(line in known or line in ("", "…"), f"{page} shows a line that is not printed: {line}")
                checked += line in known
    expect(checked > 100, f"only {checked} lines were found")
    return f"{checked} lines"


def flags():
    """Every flag a page names is one of its program."""
    known = {p: set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", suite.run([suite.bin / p, "--help"]).stdout)) for p in ("zeroc", "zero-inspect", "zerorun")}
    checked = 0
    for page in ("README.md", "docs/tutorial.md", "docs/inspect.md", "docs/zerorun.md", "docs/architecture.md", "docs/rationale.md", "docs/rationale-memory.md", "docs/rationale-kernels.md", "docs/rationale-gpu.md", "docs/security.md", "docs/offloading.md", "docs/measurements.md",
                 "docs/simulation.md", "docs/gpu.md", "docs/architectures.md", "docs/reliability.md"):
        for command in [*commands((ROOT / page).read_text()), *re.findall(r"`((?:zeroc|zerorun|zero-inspect) [^`]*)`", (ROOT / page).read_text())]:
            words = command.replace("build/bin/", "").split()
            program = next((w for w in words if w in known), None)
            if program is None:
                continue
            used = {w.split("=")[0] for w in words[words.index(program):] if re.match(r"--?[a-z]", w)}
            expect(used <= known[program], f"{page} gives {program} the unknown {used - known[program]}")
            checked += len(used)
    expect(checked > 20, f"only {checked} flags were found")
    return f"{checked} flags"


suite.start()
suite.check("tutorial: the commands work", walk)
suite.check("tutorial: what the pages show is printed", shown)
suite.check("tutorial: the pages' flags exist", flags)
suite.finish()
