#!/usr/bin/env python3
"""Hold the reader against a folder of exports: trainable sets against manifest.json, losses against ref.json.

usage: corpus.py ONNX-EVAL CORPUS [--only SUBSTR]
For every export: the set of parameters equals the manifest's (ties counted as one), and the first batch's cross-entropy, computed
with the reference interpreter, is within 1e-4 of PyTorch's. Prints one line per export that differs and a summary.
"""
import argparse, json, pathlib, subprocess, sys, tempfile
import numpy as np

p = argparse.ArgumentParser()
p.add_argument("tool"); p.add_argument("corpus"); p.add_argument("--only", default=""); p.add_argument("--no-run", action="store_true")
a = p.parse_args()


def loss_of(logits, targets):
    logits = logits.reshape(-1, logits.shape[-1]).astype(np.float64)
    targets = targets.reshape(-1)
    keep = targets != -100
    logits, targets = logits[keep], targets[keep]
    top = logits.max(1, keepdims=True)
    lse = np.log(np.exp(logits - top).sum(1)) + top[:, 0]
    return float((lse - logits[np.arange(len(targets)), targets]).mean())


good = total = 0
for d in sorted(pathlib.Path(a.corpus).iterdir()):
    if not (d / "manifest.json").exists():
        continue
    m = json.loads((d / "manifest.json").read_text())
    ref = json.loads((d / m["files"]["ref"]).read_text())
    batches = np.load(d / m["files"]["batches"])
    for e in m["exports"]:
        if not (d / e["file"]).exists() or a.only not in f"{d.name}/{e['variant']}":
            continue
        total += 1
        why = []
        with tempfile.TemporaryDirectory() as w:
            binds = {}
            for i in e["inputs"]:
                x = batches[f"0/{i['name']}"]
                x.tofile(f"{w}/{i['name']}.bin")
                binds.update({s: r for s, r in zip(i["shape"], x.shape) if isinstance(s, str)})
            cmd = [a.tool, str(d / e["file"])] + ([] if a.no_run else ["--run", w])
            if binds:
                cmd += ["--bind", ",".join(f"{k}={v}" for k, v in binds.items())]
            r = subprocess.run(cmd, capture_output=True, text=True)
            if r.returncode:
                why.append(f"exit {r.returncode}: {r.stderr.strip().splitlines()[-1] if r.stderr.strip() else ''}")
            else:
                report = json.loads(r.stdout)
                have = {x["name"].split("@")[0] for x in report["parameters"]} | {t["alias"] for t in report["ties"]}
                want = set(e["trainable"])
                if want - have:
                    why.append(f"not trained: {sorted(want - have)[:4]}")
                if have - want:
                    why.append(f"trained but constant: {sorted(have - want)[:4]}")
                if not a.no_run:
                    if e.get("hfloss"):
                        loss = float(np.fromfile(f"{w}/out0.bin", np.float32)[0])
                    else:
                        t = batches["0/targets"]
                        loss = loss_of(np.fromfile(f"{w}/out0.bin", np.float32).reshape(t.size, -1), t)
                    expected = ref["loss_curve"][0]
                    if not abs(loss - expected) <= 1e-4:
                        why.append(f"loss {loss} not {expected}")
        good += not why
        if why:
            print(f"{d.name}/{e['variant']}: {'; '.join(why)}", flush=True)
print(f"{good} of {total} exports are read as PyTorch made them")
sys.exit(0 if total and good == total else 1)
