#!/usr/bin/env python3
"""What reaches the model is what was meant: labels and their places, tensors that nothing reads, shuffled epochs, and what a run says of them."""
import json
import os

import numpy as np
from safetensors.numpy import load_file, save_file

from harness import Suite, expect, relative

suite = Suite(__doc__)
SAMPLES, SEQ = 10, 8


def run(plan, data, *flags, world=1, steps=3, check=True):
    return suite.zerorun(plan, "--data", data, "--steps", steps, "--threads", 1, *flags, world=world, check=check)


def rows(plan, data, *flags, **kw):
    (suite.work / "m.jsonl").unlink(missing_ok=True)  # a resumed run would go on in it
    run(plan, data, *flags, "--metrics", "m.jsonl", **kw)
    return [json.loads(line) for line in (suite.work / "m.jsonl").read_text().splitlines()]


def losses(*args, **kw):
    return [row["loss"] for row in rows(*args, **kw)]


def refused(*words, plan="one.plan", data="shifted.npz", flags=()):
    result = run(plan, data, *flags, check=False)
    lines = result.stderr.splitlines()
    expect(result.returncode == 1 and len(lines) == 1 and all(word in lines[0] for word in words), f"for {words} it says {result.stderr[:300]}")


# ------------------------------------------------------------------------------------------------ labels
def label_rules():
    """Made beforehand, shifted here, made here: the same run; labels that equal the inputs are another, and said."""
    made = losses("one.plan", "shifted.npz")
    expect(losses("one.plan", "huggingface.npz", "--labels", "shifted") == made, "--labels shifted is not the shift")
    expect(losses("one.plan", "alone.npz", "--labels", "next:input_ids") == made, "--labels next is not the shift")
    copying = run("one.plan", "huggingface.npz")
    expect(copying.stderr.startswith("zerorun: warning: the 'labels' of the first 4 samples in 'huggingface.npz' are 'input_ids' place by place"), copying.stderr)
    expect(len(copying.stderr.splitlines()) == 1, copying.stderr)
    expect(not run("one.plan", "shifted.npz").stderr, "shifted labels are suspected")
    twice = run("one.plan", "shifted.npz", "--labels", "shifted").stderr
    expect("two places later" in twice, twice)
    expect(losses("one.plan", "huggingface.npz", "--eval-data", "huggingface.npz", "--labels", "shifted") == made, "with held-out data")


def wrong_labels():
    refused("no tensor named 'labels'", "--labels next:INPUT", data="alone.npz")
    refused("'words'", data="alone.npz", flags=["--labels", "next:words"])
    refused("holds 'labels', which the plan does not read", data="shifted.npz", flags=["--labels", "next:input_ids"])
    refused("stream of tokens", data="tokens.bin", flags=["--labels", "shifted"])
    refused("same, shifted or next:INPUT", flags=["--labels", "later"])
    run("one.plan", "shifted.npz", "--labels", "next:input_ids", "--ignore-tensor", "labels")


def unread():
    refused("holds 'attention_mask', which the plan does not read", "'input_ids', 'labels'", "--ignore-tensor attention_mask", data="masked.npz")
    refused("'attention_mask', 'token_type_ids'", data="two.safetensors")
    expect(losses("one.plan", "two.safetensors", "--ignore-tensor", "attention_mask", "--ignore-tensor", "token_type_ids") == losses("one.plan", "shifted.npz"),
           "ignored tensors change the loss")
    refused("'attention_musk'", "no data file", flags=["--ignore-tensor", "attention_musk"])
    refused("'input_ids'", "the plan reads", flags=["--ignore-tensor", "input_ids"])


def ignored_types():
    """What is ignored need not be of a type that a model could take; held-out data with a bad value is refused before the first step."""
    strings = np.array([f"sentence {i}" for i in range(SAMPLES)])
    np.savez(suite.work / "texts.npz", input_ids=tokens, labels=labels, text=strings, made=np.array(["2024-01-01"] * SAMPLES, "M8[D]"), wave=tokens * 1j,
             turned=np.asfortranarray(tokens), swapped=tokens.astype(">i4"), anything=np.array([None, {}]))
    names = ("text", "made", "wave", "turned", "swapped", "anything")
    refused("holds 'text', 'made', 'wave', 'turned', 'swapped', 'anything', which the plan does not read", data="texts.npz")
    ignored = [word for name in names for word in ("--ignore-tensor", name)]
    expect(losses("one.plan", "texts.npz", *ignored) == losses("one.plan", "shifted.npz"), "ignored tensors change the loss")
    bad = tokens.copy()
    bad[7, 3] = 256
    np.savez(suite.work / "bad.npz", input_ids=bad, labels=labels)
    refused("sample 7 of 'input_ids' has the value 256 at position 3", flags=["--eval-data", "bad.npz"])
    expect("step 1" not in run("one.plan", "shifted.npz", "--eval-data", "bad.npz", check=False).stdout, "the run begins all the same")


def show_batch():
    shown = run("one.plan", "huggingface.npz", "--labels", "shifted", "--show-batch", steps=0).stdout
    first = tokens[0]
    expect(f"sample 0 of 'huggingface.npz':\n  input_ids  I64  [8]  {' '.join(map(str, first[:SEQ]))}\n" in shown, shown)
    expect(f"      0  {first[0]:>10}  {first[1]:>10}\n" in shown and f"      7  {first[7]:>10}        -100 (does not count)" in shown, shown)
    expect("step" not in shown.split("does not count)")[1], f"a step was made: {shown}")
    going = run("one.plan", "shifted.npz", "--show-batch", "--shuffle").stdout
    expect("sample 0 of" not in going and "step 3/3" in going, f"the run does not go on, or its first sample is not a shuffled one: {going}")
    alone = suite.run([suite.bin / "zerorun", "one.plan", "--steps", 0, "--show-batch"], check=False)
    expect(alone.returncode == 1 and "--show-batch" in alone.stderr and "--data" in alone.stderr, alone.stderr)
    (suite.work / "bytes.txt").write_bytes(b"\x01\x02 \n !\t'\x08\x07 and more than one sample!" * 9)
    suite.zeroc("model.onnx", "wide.plan", "--bind", "batch=2,seq=30", "-q")
    expect('"\\u0001\\u0002 \\n !\\t' in run("wide.plan", "bytes.txt", "--show-batch", steps=0).stdout, "the text is not shown")


# ------------------------------------------------------------------------------------------------ shuffling
def shuffled_ranks():
    """Another order than the file's, the same for all numbers of ranks and micro-steps."""
    plain, one = losses("one.plan", "shifted.npz", steps=6), losses("one.plan", "shifted.npz", "--shuffle", "--seed", 3, steps=6)
    expect(one != plain and one != losses("one.plan", "shifted.npz", "--shuffle", "--seed", 4, steps=6), "the order does not depend on the seed")
    for plan, world in (("two.plan", 2), ("micro.plan", 1)):
        other = losses(plan, "shifted.npz", "--shuffle", "--seed", 3, world=world, steps=6)
        expect(max(map(relative, other, one)) < 1e-5, f"{plan}: {other}, not {one}")


def shuffled_resume():
    go = ["--shuffle", "--seed", 3]
    whole = rows("one.plan", "shifted.npz", *go, "--export", "whole.safetensors", steps=7)
    run("one.plan", "shifted.npz", *go, "--checkpoint", "c", steps=4)
    for flags in (go, []):  # left out, it stays as it was
        tail = rows("one.plan", "shifted.npz", *flags, "--resume", "c", "--export", "tail.safetensors", steps=7)
        expect([r["loss"] for r in tail] == [r["loss"] for r in whole[4:]], "the order after a resume is another one")
        a, b = load_file(suite.work / "whole.safetensors"), load_file(suite.work / "tail.safetensors")
        expect(all(a[n].tobytes() == b[n].tobytes() for n in a), "other bits after a resume")
    run("one.plan", "shifted.npz", "--checkpoint", "plain", steps=4)
    refused("--shuffle", "order of the file", flags=["--shuffle", "--resume", "plain"])
    run("one.plan", "shifted.npz", "--resume", "plain", steps=5)


def epochs():
    told = rows("one.plan", "shifted.npz", "--shuffle", steps=6)
    expect([r["epoch"] for r in told] == [0.4, 0.8, 1.2, 1.6, 2.0, 2.4], f"epochs {[r['epoch'] for r in told]}")
    out = run("one.plan", "shifted.npz", "--shuffle", steps=6).stdout
    expect("step 6/6  epoch 2.40  loss" in out and "10 samples in 'shifted.npz', 4 per step, in another order every epoch" in out, out)


# ------------------------------------------------------------------------------------------------ files
def special_files():
    os.mkfifo(suite.work / "pipe.npz")
    refused("'pipe.npz' is a pipe", data="pipe.npz")
    refused("'/dev/zero' is a device", data="/dev/zero")
    damaged = bytearray((suite.work / "shifted.npz").read_bytes())
    damaged[damaged.index(b"NUMPY") + 200] ^= 1
    (suite.work / "damaged.npz").write_bytes(damaged)
    refused("'damaged.npz'", "CRC-32", data="damaged.npz")


def betas():
    refused("--betas 0.99999999", "single precision", flags=["--betas", "0.9,0.99999999"])


def names():
    """An expression that is found nowhere is refused with names that are near."""
    refused("--no-decay 'h.0.lnn_1'", "near ones are 'transformer.h.0.ln_1.", flags=["--no-decay", "h.0.lnn_1"])
    refused("--lr-scale 'wtf'", "near ones are 'transformer.wte.weight'", flags=["--lr-scale", "wtf=2"])
    refused("--lr-scale '('", "no regular expression", flags=["--lr-scale", "(=2"])
    for text in ("wte", "=2", "wte=x", "wte="):
        refused("--lr-scale", "REGEX=X", flags=["--lr-scale", text])
    refused("--lr-scale", "negative", flags=["--lr-scale", "wte=-1"])


suite.start()
suite.gpt("model.onnx", "--layers", 1, "--hidden", 32, "--heads", 2, "--vocab", 256, "--seq", 30, "--dynamic")
for name, batch, *flags in (("one", 4), ("two", 2, "--world", 2, "--stage", 2), ("micro", 1, "--accumulate", 4)):
    suite.zeroc("model.onnx", f"{name}.plan", "--bind", f"batch={batch},seq={SEQ}", "-q", *flags)
tokens = np.random.default_rng(5).integers(0, 256, (SAMPLES, SEQ))
labels = np.concatenate([tokens[:, 1:], np.full((SAMPLES, 1), -100)], 1)
mask = np.ones_like(tokens)
np.savez(suite.work / "shifted.npz", input_ids=tokens, labels=labels)
np.savez(suite.work / "huggingface.npz", input_ids=tokens, labels=tokens)
np.savez(suite.work / "alone.npz", input_ids=tokens)
np.savez_compressed(suite.work / "masked.npz", input_ids=tokens, labels=labels, attention_mask=mask)
save_file({"input_ids": tokens, "labels": labels, "attention_mask": mask, "token_type_ids": mask}, suite.work / "two.safetensors")
tokens.astype(np.uint16).tofile(suite.work / "tokens.bin")
suite.check("feeding: labels and their places", label_rules)
suite.check("feeding: labels that do not fit", wrong_labels)
suite.check("feeding: tensors that nothing reads", unread)
suite.check("feeding: types that nobody knows", ignored_types)
suite.check("feeding: a batch in words", show_batch)
suite.check("feeding: shuffled, ranks and micro-steps", shuffled_ranks)
suite.check("feeding: shuffled, stopped and resumed", shuffled_resume)
suite.check("feeding: epochs", epochs)
suite.check("feeding: what is no data file", special_files)
suite.check("feeding: moments that never change", betas)
suite.check("feeding: names that are found nowhere", names)
suite.finish()
