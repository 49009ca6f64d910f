#!/usr/bin/env python3
"""The commands of docs/tutorial.md and of the README, as they are printed there, with fewer steps; and the pages name every flag that exists."""
import os
import re

import numpy as np
import onnxruntime

from harness import ROOT, Suite, expect

suite = Suite(__doc__)
TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text()


def commands(page):
    """Lines of the blocks without a language, continued ones joined."""
    language = None  # of the block the line stands in
    for line in page.replace("\\\n", " ").splitlines():
        if line.startswith("```"):
            language = line[3:] if language is None else None
        elif language == "":
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
    for command in commands(TUTORIAL):
        if command.startswith((".venv/bin/python", "zeroc ", "zero-inspect ", "zerorun ", "mpirun ")):
            suite.run(re.sub(r"(--steps|--every|--warmup) (\d+)0\b", r"\1 \2", command).split(), env=env)
            ran.append(command)
    programs = {word for command in ran for word in command.split() if word in ("zeroc", "zero-inspect", "zerorun", "mpirun")}
    expect(len(programs) == 4, f"the page shows {programs} only")
    logits, = onnxruntime.InferenceSession(suite.work / "trained.onnx").run(["logits"], {"input_ids": np.array([[1, 2, 3]])})
    expect(logits.shape == (1, 3, 256), f"the exported model gives {logits.shape}")
    return f"{len(ran)} commands"


def flags():
    """Every flag a page names is one of its program."""
    known = {p: set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", suite.run([suite.bin / p, "--help"]).stdout)) for p in ("zeroc", "zero-inspect", "zerorun")}
    checked = 0
    for page in ("README.md", "docs/tutorial.md", "docs/inspect.md", "docs/zerorun.md", "docs/architecture.md", "docs/rationale.md", "docs/security.md"):
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
suite.check("tutorial: the pages' flags exist", flags)
suite.finish()
