#!/usr/bin/env python3
"""What a plan may do to who runs it: signatures, plans for no machine, altered messages, and reading without running."""
import hashlib
import json
import random
import subprocess
import sys

import numpy as np
from safetensors.numpy import save_file

from harness import ROOT, Suite, expect

sys.path.insert(0, str(ROOT / "test"))
import plan_file  # noqa: E402

suite = Suite(__doc__)
TRAIN = ["--data", "data.safetensors", "--steps", "2", "--threads", "1"]
TRAILER = 104  # runtime/plan/signature.h


def openssl(*arguments):
    return subprocess.run(["openssl", *arguments], cwd=suite.work, capture_output=True, check=True).stdout


def keys(name):
    openssl("genpkey", "-algorithm", "ed25519", "-out", f"{name}.key")
    openssl("pkey", "-in", f"{name}.key", "-pubout", "-out", f"{name}.pub")
    return hashlib.sha256(openssl("pkey", "-pubin", "-in", f"{name}.pub", "-outform", "DER")).hexdigest()


def bytes_of(name):
    return (suite.work / name).read_bytes()


def refused(words, program, *arguments):
    result = suite.run([suite.bin / program, *arguments], check=False)
    said = [line for line in result.stderr.splitlines() if line.strip()]
    expect(result.returncode == 1 and len(said) == 1, f"exit {result.returncode}: {result.stderr[-300:]}")
    expect(words in said[0], f"'{words}' is not in '{said[0]}'")


def required(plan, *flags, key="ours"):
    return suite.run([suite.bin / "zerorun", plan, *TRAIN, "--require-signature", f"{key}.pub", *flags], check=False)


# ------------------------------------------------------------------------------------------------ signatures
def signed_runs():
    suite.zeroc("model.onnx", "signed.plan", "-q", "--sign", "ours.key")
    suite.run([suite.bin / "zeroc", "plain.plan", "--sign", "ours.key", "-o", "later.plan", "-q"])
    expect(bytes_of("signed.plan") == bytes_of("later.plan"), "a plan signed later differs from one signed when it was compiled")
    expect(bytes_of("signed.plan")[:-TRAILER] == bytes_of("plain.plan"), "signing changed more than the end of the file")
    for plan, flags in (("plain.plan", []), ("signed.plan", ["--require-signature", "ours.pub"])):
        suite.zerorun(plan, *TRAIN, *flags, "--export", f"{plan}.safetensors")
    expect(bytes_of("plain.plan.safetensors") == bytes_of("signed.plan.safetensors"), "the signature changed what is trained")


def openssl_agrees(fingerprint):
    """The signature is one for any other program, too: the trailer's last 64 bytes, of all bytes before the trailer."""
    whole = bytes_of("signed.plan")
    (suite.work / "content").write_bytes(whole[:-TRAILER])
    (suite.work / "signature").write_bytes(whole[-64:])
    openssl("pkeyutl", "-verify", "-pubin", "-inkey", "ours.pub", "-rawin", "-in", "content", "-sigfile", "signature")
    page = suite.run([suite.bin / "zero-inspect", "signed.plan"]).stdout
    expect(f"signed by key {fingerprint}\n" in page, f"zero-inspect does not name the key: {page[:300]}")
    expect("; not signed\n" in suite.run([suite.bin / "zero-inspect", "plain.plan"]).stdout, "zero-inspect does not say that there is no signature")


def unsigned_refused():
    refused("plain.plan is not signed, and a signature by key", "zerorun", "plain.plan", *TRAIN, "--require-signature", "ours.pub")
    (suite.work / "stripped.plan").write_bytes(bytes_of("signed.plan")[:-TRAILER])
    refused("stripped.plan is not signed", "zerorun", "stripped.plan", *TRAIN, "--require-signature", "ours.pub")


def foreign_refused():
    refused("signed.plan is signed by another key", "zerorun", "signed.plan", *TRAIN, "--require-signature", "theirs.pub")


def changed_refused():
    """Each segment in turn, checksums made right again; then any byte at all."""
    signature, parts = bytes_of("signed.plan")[-TRAILER:], plan_file.segments(suite.work / "plain.plan")
    for i, (kind, content) in enumerate(parts):
        if not content:
            continue
        content = content[:-1] + bytes([content[-1] ^ 1])
        changed = plan_file.compose(parts[:i] + [(kind, content)] + parts[i + 1:])
        (suite.work / "changed.plan").write_bytes(changed + signature)
        refused("changed.plan was changed after it was signed by key", "zerorun", "changed.plan", *TRAIN, "--require-signature", "ours.pub")
        refused("changed.plan was changed after it was signed by key", "zero-inspect", "changed.plan")
    whole, places = bytes_of("signed.plan"), random.Random(5)
    for place in [8, 12, 115, 116, len(whole) - 1, len(whole) - 70, len(whole) - 100] + [places.randrange(len(whole)) for _ in range(20)]:
        (suite.work / "changed.plan").write_bytes(whole[:place] + bytes([whole[place] ^ 0x20]) + whole[place + 1:])
        result = required("changed.plan")
        expect(result.returncode == 1 and "changed.plan" in result.stderr, f"byte {place}: exit {result.returncode} {result.stderr[-200:]}")


def two_ranks_require():
    suite.zeroc("model.onnx", "pair.plan", "-q", "--world", 2, "--sign", "ours.key")
    suite.zerorun("pair.plan", *TRAIN, "--require-signature", "ours.pub", world=2)
    result = suite.zerorun("pair.plan", *TRAIN, "--require-signature", "theirs.pub", world=2, check=False)
    expect(result.returncode != 0 and "signed by another key" in result.stderr, f"exit {result.returncode}: {result.stderr[-300:]}")


def keys_refused():
    before = bytes_of("ours.key")
    refused("the plan would overwrite the key 'ours.key'", "zeroc", "model.onnx", "--sign", "ours.key", "-o", "ours.key")
    refused("the plan would overwrite the key 'ours.key'", "zeroc", "plain.plan", "--sign", "ours.key", "-o", "ours.key")
    expect(bytes_of("ours.key") == before, "the key is gone")
    refused("'ours.pub' holds no private Ed25519 key", "zeroc", "model.onnx", "--sign", "ours.pub", "-o", "x.plan")
    refused("'ours.key' holds no public Ed25519 key", "zerorun", "signed.plan", *TRAIN, "--require-signature", "ours.key")
    refused("cannot open the key 'no.pub'", "zerorun", "signed.plan", *TRAIN, "--require-signature", "no.pub")
    refused("--world has no say over a plan that is compiled already", "zeroc", "plain.plan", "--sign", "ours.key", "-o", "x.plan", "--world", "2")
    refused("the model is a plan already", "zeroc", "plain.plan", "-o", "x.plan")
    expect(not (suite.work / "x.plan").exists(), "a plan was written all the same")


# ------------------------------------------------------------------------------------------------ without machine code
def target_sim():
    suite.zeroc("model.onnx", "bare.plan", "-q", "--target", "sim")
    bare, plain = (json.loads(suite.run([suite.bin / "zero-inspect", plan, "--json", "--schedule"]).stdout) for plan in ("bare.plan", "plain.plan"))
    different = sorted(key for key in plain if bare.get(key) != plain[key])
    expect(different == ["cpu", "machine_code_bytes", "process", "target"], f"the plan differs in {different}")
    expect((bare["target"], bare["cpu"], plain["target"]) == ("sim", "", "cpu"), f"{bare['target']} {bare['cpu']} {plain['target']}")
    expect(dict(plan_file.segments(suite.work / "bare.plan"))[2] == b"", "there is code in it")
    refused("'bare.plan' was compiled for sim, and this zerorun runs plans for cpu and cuda only; compile with --target cpu", "zerorun", "bare.plan", *TRAIN)
    plan_file.write(suite.work / "stripped.plan", suite.work / "plain.plan", kernels=b"")
    refused("'stripped.plan' has no machine code for its kernels", "zerorun", "stripped.plan", *TRAIN)
    refused("--cpu has no say with --target sim", "zeroc", "model.onnx", "-o", "x.plan", "--target", "sim", "--cpu", "x86-64-v3")
    page = suite.run([suite.bin / "zero-inspect", "bare.plan", "--check"]).stdout
    expect("bare.plan holds" in page, page)
    pages = [suite.run([suite.bin / "zero-inspect", plan]).stdout.splitlines() for plan in ("bare.plan", "plain.plan")]
    expect(pages[0][1] == "no machine code: it can be read, not run; not signed", pages[0][1])
    for page in pages:  # up to what a process takes, which has room for the code
        del page[next(i for i, line in enumerate(page) if line.startswith("the process of one rank")):]
    expect(pages[0][2:] == pages[1][2:] and len(pages[0]) > 20, "the page differs from that of the plan with code")


def reading_runs_nothing():
    """A plan whose code would leave a mark as soon as it is loaded: zero-inspect leaves none, whatever it is asked; zerorun does."""
    mark = suite.work / "mark"
    (suite.work / "evil.c").write_text(f'#include <fcntl.h>\n__attribute__((constructor)) void f(void) {{ open("{mark}", O_CREAT, 0600); }}\n')
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "evil.so", "evil.c"], cwd=suite.work, check=True)
    plan_file.write(suite.work / "evil.plan", suite.work / "plain.plan", kernels=bytes_of("evil.so"))
    for flags in ([], ["--check"], ["--peak"], ["--schedule", "--operands"], ["--kernels"], ["--why"], ["--json", "--check"]):
        suite.run([suite.bin / "zero-inspect", "evil.plan", *flags])
        expect(not mark.exists(), f"zero-inspect {' '.join(flags)} has run the plan's code")
    suite.run([suite.bin / "zeroc", "evil.plan", "--sign", "ours.key", "-o", "evil-signed.plan", "-q"])
    expect(not mark.exists(), "zeroc --sign has run the plan's code")
    required("evil.plan")
    expect(not mark.exists(), "zerorun has loaded code that the required key did not sign")
    refused("'", "zerorun", "evil.plan", *TRAIN)
    expect(mark.exists(), "the code leaves no mark when it is loaded: this test shows nothing")


# ------------------------------------------------------------------------------------------------ altered messages
def launches(plan):
    for program in plan.programs:
        for step in program.steps:
            kind = step.WhichOneof("what")
            if kind in ("launch", "update"):
                yield step, step.launch if kind == "launch" else step.update.launch


def extents_refused():
    plan = plan_file.read(suite.work / "plain.plan")
    for _, launch in launches(plan):
        launch.extent *= 1_000_000
    plan_file.write(suite.work / "far.plan", suite.work / "plain.plan", plan)
    for program, flags in (("zerorun", TRAIN), ("zero-inspect", [])):
        refused("which is made for", program, "far.plan", *flags)
    # The kernels' entries altered with them: the validator has nothing to compare, the code has.
    for kernel in plan.kernels:
        kernel.extent *= 1_000_000
    plan_file.write(suite.work / "far.plan", suite.work / "plain.plan", plan)
    refused("iterations of", "zerorun", "far.plan", *TRAIN)  # of an update the validator knows the elements
    altered = {launch.kernel for _, launch in launches(plan)} - {step.update.launch.kernel for program in plan.programs for step in program.steps
                                                              if step.WhichOneof("what") == "update"}
    plan = plan_file.read(suite.work / "plain.plan")
    for _, launch in launches(plan):
        launch.extent *= 1_000_000 if launch.kernel in altered else 1
    for index in altered:
        plan.kernels[index].extent *= 1_000_000
    plan_file.write(suite.work / "far.plan", suite.work / "plain.plan", plan)
    refused("but the plan says", "zerorun", "far.plan", *TRAIN)


def rows_refused():
    """Another number of elements for an iteration: in an update, and in kernels' entries."""
    plan, changed = plan_file.read(suite.work / "plain.plan"), 0
    for program in plan.programs:
        for step in program.steps:
            if step.WhichOneof("what") == "update" and step.update.row > 1:
                step.update.row -= 1
                changed += 1
    expect(changed, "no update says its row")
    plan_file.write(suite.work / "row.plan", suite.work / "plain.plan", plan)
    refused("says that an iteration of kernel", "zerorun", "row.plan", *TRAIN)
    # In entries that no update is held against: the validator has nothing to compare, the code has.
    plan = plan_file.read(suite.work / "plain.plan")
    updates = {step.update.launch.kernel for program in plan.programs for step in program.steps if step.WhichOneof("what") == "update"}
    for index, kernel in enumerate(plan.kernels):
        kernel.row += index not in updates
    plan_file.write(suite.work / "row.plan", suite.work / "plain.plan", plan)
    refused("but the plan says", "zerorun", "row.plan", *TRAIN)


def references_refused():
    """Smaller buffers than a kernel was made for, in the launch and in the kernel's entry."""
    original, count = plan_file.read(suite.work / "plain.plan"), 0
    for i, kernel in enumerate(original.kernels):
        plan = type(original)()
        plan.CopyFrom(original)
        half = kernel.arg_bytes[0] // 2 // 4 * 4
        plan.kernels[i].arg_bytes[0] = half
        for step, launch in launches(plan):
            if launch.kernel == i:
                (step.reads or step.writes)[0].bytes = half
        plan_file.write(suite.work / "small.plan", suite.work / "plain.plan", plan)
        result = suite.run([suite.bin / "zerorun", "small.plan", *TRAIN], check=False)
        expect(result.returncode == 1 and f"kernel '{kernel.symbol}' is made for" in result.stderr, f"{kernel.symbol}: {result.returncode} {result.stderr}")
        count += 1
    return f"{count} kernels"


def indices_held():
    """Tokens beyond the table, where the message no longer says that they are indices: wrong numbers, but nothing is left."""
    plan = plan_file.read(suite.work / "plain.plan")
    for entry in plan.inputs:
        entry.limit = 0
    plan_file.write(suite.work / "unlimited.plan", suite.work / "plain.plan", plan)
    tokens = np.random.default_rng(1).integers(-2**62, 2**62, (8, 8))
    save_file({"input_ids": tokens, "labels": tokens[::-1].copy()}, suite.work / "wild.safetensors")
    result = suite.run([suite.bin / "zerorun", "unlimited.plan", "--data", "wild.safetensors", "--steps", "3"], check=False)
    expect(result.returncode in (0, 1), f"exit {result.returncode}: {result.stderr[-200:]}")
    expect(result.returncode == 0 or "loss" in result.stderr, result.stderr[-200:])


suite.start()
suite.gpt("model.onnx", "--layers", "1", "--hidden", "32", "--heads", "2", "--vocab", "50", "--seq", "8", "--batch", "2")
tokens = np.random.default_rng(0).integers(0, 50, (8, 9))
save_file({"input_ids": tokens[:, :-1].copy(), "labels": tokens[:, 1:].copy()}, suite.work / "data.safetensors")
suite.zeroc("model.onnx", "plain.plan", "-q")
ours, _ = keys("ours"), keys("theirs")
check = suite.check
check("trust: a signed plan runs, to the same bits", signed_runs)
check("trust: openssl agrees with the signature", openssl_agrees, ours)
check("trust: an unsigned plan is refused", unsigned_refused)
check("trust: a foreign plan is refused", foreign_refused)
check("trust: a changed plan is refused", changed_refused)
check("trust: two ranks require a signature", two_ranks_require)
check("trust: keys that are none", keys_refused)
check("trust: a plan without machine code is read, not run", target_sim)
check("trust: reading a plan runs none of it", reading_runs_nothing)
check("trust: extents beyond the buffers are refused", extents_refused)
check("trust: rows that no kernel has are refused", rows_refused)
check("trust: buffers too small for a kernel are refused", references_refused)
check("trust: indices stay inside their tables", indices_held)
suite.finish()
