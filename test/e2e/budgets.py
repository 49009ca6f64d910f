#!/usr/bin/env python3
"""Budgets are kept, and what they cost is bytes copied, never bits.

gpt2 and llama of models/tiny and a wider GPT, on 1 rank and on 2 at stages 2 and 3, with --device-memory from all they need down to the least there is a plan for:
each plan needs no more than its budget, copies no less than a roomier one, and trains to the bits of the run without a budget. With
--host-memory and --disk-memory these are kept as well. So it is in bf16, where logits of tiles wait for backward or are made again. What auto chooses of stages and tiles trains to the bits of the same choice without a budget.
"""
import json
import os
import re

import numpy as np
from safetensors.numpy import load_file, save_file

from harness import TINY, Suite, expect

STEPS = 4
suite = Suite(__doc__)


def facts(flags, *budgets):
    """The plan's numbers, or None where zeroc says that it does not fit."""
    result = suite.zeroc(*flags, "--quiet", *budgets, check=False)
    if result.returncode:
        expect("would help" in result.stderr and len(result.stderr.splitlines()) == 1, f"zeroc said: {result.stderr}")
        return None
    return json.loads(suite.run([suite.bin / "zero-inspect", flags[1], "--json"]).stdout)


def needs(plan, tier):
    return (plan["memory"] if tier == "device" else plan["memory"].get(tier, {"total_bytes": 0}))["total_bytes"]


def trained(plan, data, world, clip=("--clip", 0.7)):
    suite.zerorun(plan, "--data", data, "--steps", STEPS, "--lr", "1e-3", "--seed", 3, "--threads", 1, "--export", "out.safetensors", *clip,
                  "--metrics", "out.jsonl", "--disk-path", suite.work / "disk", world=world)
    return load_file(suite.work / "out.safetensors")


def kept(model, data, world, stage, accumulate):
    flags = [model[0], "x.plan", *model[1:], "--world", world, "--stage", stage, "--accumulate", accumulate]
    free = facts(flags)
    wanted = trained("x.plan", data, world)
    least = facts([*flags, "--offload-params", "disk", "--offload-optimizer", "disk", "--offload-activations", "disk"])
    top, bottom = needs(free, "device"), needs(least, "device")
    expect(bottom < top, f"offloading all saves nothing: {bottom} of {top} bytes")
    copied = []
    for part in (1, 0.8, 0.25):
        budget = int(bottom * 1.02 + (top - bottom * 1.02) * part) if part < 1 else top
        plan = facts(flags, "--device-memory", budget)
        expect(plan is not None, f"no plan for {budget} bytes, between {bottom} and {top}")
        expect(needs(plan, "device") <= budget, f"{needs(plan, 'device')} bytes where {budget} are allowed")
        copied.append(sum(lane["bytes_touched"] for name, lane in plan["lanes"].items() if name.startswith(("disk", "to_"))))
        if part < 1:
            found = trained("x.plan", data, world)
            different = [n for n in wanted if wanted[n].tobytes() != found[n].tobytes()]
            expect(not different, f"at {budget} bytes {len(different)} of {len(wanted)} parameters differ, such as {min(different, default='')}")
    expect(sorted(copied) == copied and copied[-1] > 0, f"{copied} bytes are copied as the budget shrinks")
    expect(copied[0] == 0, f"{copied[0]} bytes are copied though everything fits")
    expect(facts(flags, "--device-memory", bottom // 2) is None, f"a plan for {bottom // 2} bytes where {bottom} are the least")
    return f"{top} to {bottom} bytes, copied {copied}"


def tiers(model):
    flags = [model[0], "x.plan", *model[1:]]
    free = facts(flags)
    budget = int(needs(free, "device") * 0.6)
    disk = facts(flags, "--device-memory", budget)
    away = needs(disk, "disk")
    both = facts(flags, "--device-memory", budget, "--host-memory", away // 2)
    expect(0 < needs(both, "host") <= away // 2, f"{needs(both, 'host')} bytes of the host where {away // 2} are allowed and {away} leave the device")
    expect(0 < needs(both, "disk") < away, f"{needs(both, 'disk')} bytes on disk beside the host, {away} without it")
    host = facts(flags, "--device-memory", budget, "--host-memory", 2 * away, "--disk-memory", 0)
    expect(needs(host, "disk") == 0, f"{needs(host, 'disk')} bytes on disk where none are allowed")
    expect(facts(flags, "--device-memory", budget, "--disk-memory", away // 2) is None, f"half of {away} bytes of disk are enough")
    return f"{away} bytes away, {needs(both, 'host')} of them on the host"


def named_elsewhere(model):
    """Where the host or the disk is too small: as many bytes as a refusal names are enough."""
    flags = [model[0], "x.plan", *model[1:], "--target", "sim"]
    top, refused = needs(facts(flags), "device"), 0
    for part in (0.6, 0.3):
        device = ("--device-memory", int(part * top))
        away = needs(facts(flags, *device), "disk")
        for host, disk in ((0, 0), (away // 8, 0), (away * 9 // 10, 0), (away // 4, away // 4), (None, away // 2)):
            budgets = {flag: bytes for flag, bytes in (("--host-memory", host), ("--disk-memory", disk)) if bytes is not None}
            said = suite.zeroc(*flags, "-q", *device, *[word for pair in budgets.items() for word in pair], check=False).stderr
            numbers = {f"--{tier}-memory": int(bytes.replace(" ", "")) for bytes, tier in re.findall(r"needs ([0-9 ]+) bytes[^,]*, [0-9 ]+ more than --(\w+)-memory", said)}
            if not said:
                continue
            expect(numbers and numbers.keys() <= budgets.keys(), f"with {budgets} beside {device} it says of {numbers}: {said}")
            plan = facts(flags, *device, *[word for pair in {**budgets, **numbers}.items() for word in pair])
            expect(plan is not None, f"with {budgets} beside {device} it names {numbers}, which are refused, too")
            refused += 1
    expect(refused > 4, f"only {refused} were refused")
    return f"{refused} refusals"


def decision(plan, subject):
    """(choice, reason)."""
    found = [(d["choice"], d["reason"]) for d in plan["decisions"] if d["subject"] == subject]
    expect(len(found) == 1, f"{len(found)} decisions about {subject}: {plan['decisions']}")
    return found[0]


def autos(model):
    """--stage auto and --tile auto: what they choose trains to the bits of the same choice without a budget."""
    flags = [model[0], "x.plan", *model[1:], "--world", 2]
    top = needs(facts([*flags, "--stage", 0]), "device")
    said = []
    for auto, budget in ((["--stage", "auto"], int(top * 0.7)), (["--stage", 3, "--tile", "auto"], int(top * 0.22))):
        plan = facts([*flags, *auto], "--device-memory", budget)
        expect(plan is not None and needs(plan, "device") <= budget, f"no plan for {budget} of {top} bytes with {auto}")
        chosen = decision(plan, "form")[0]
        found = trained("x.plan", "wide.safetensors", 2)
        facts([*flags, *auto[:-2], *chosen.split()])
        wanted = trained("x.plan", "wide.safetensors", 2)
        different = [n for n in wanted if wanted[n].tobytes() != found[n].tobytes()]
        expect(not different, f"with {chosen} {len(different)} of {len(wanted)} parameters differ, such as {min(different, default='')}")
        said.append(f"{budget} bytes: {chosen}")
    expect("off" not in said[1], f"{said[1]}, where only tiles fit")
    return "; ".join(said)


def made_again(model):
    """Where nothing may leave the device, blocks are made again, as few as fit, with the bits of keeping everything."""
    flags = [model[0], "x.plan", *model[1:], *[flag for what in ("params", "optimizer", "activations") for flag in (f"--offload-{what}", "none")]]
    top = needs(facts(flags), "device")
    wanted = trained("x.plan", "deep.safetensors", 1)
    low = needs(facts([*flags, "--recompute", "full"]), "device")
    expect(low < 0.8 * top, f"{low} of {top} bytes with all blocks made again")
    budget = (top + low) // 2
    plan = facts(flags, "--device-memory", budget)
    expect(plan is not None and low < needs(plan, "device") <= budget, f"no plan between {low} and {budget} bytes")
    again = decision(plan, "recomputation")[0]
    found = trained("x.plan", "deep.safetensors", 1)
    expect(all(wanted[n].tobytes() == found[n].tobytes() for n in wanted), f"other bits with {again}")
    expect(facts([*flags, "--recompute", "none"], "--device-memory", budget) is None, "--recompute none keeps the budget too")
    nearly = facts(flags, "--device-memory", top - (top - low) // 20)
    expect(needs(nearly, "device") > top - (top - low) // 3, f"{needs(nearly, 'device')} bytes where a twentieth of {top - low} was to be spared of {top}")
    return f"{again.split(' made')[0]}, {needs(plan, 'device')} of {top} bytes"


def slow_disk(model):
    """No less than what the disk takes where that is slow, and computation where the disk is fast."""
    flags = [model[0], "x.plan", *model[1:], "--target", "sim"]
    top = needs(facts(flags), "device")
    times = []
    for disk in (1e6, 1e12):
        (suite.work / "machine.json").write_text(json.dumps({"disk_read": disk, "disk_write": disk}))
        why = decision(facts(flags, "--device-memory", int(top * 0.6), "--machine", suite.work / "machine.json"), "memory")[1]
        found = re.search(r"estimated ([\d.e-]+) s for a step with --clip, no less than ([\d.e-]+) s of (the processors|the disk)", why)
        expect(found, f"no estimate: {why}")
        expect(float(found[1]) >= float(found[2]) * 0.999, f"less than its least: {found[0]}")
        expect((found[3] == "the processors") == (disk > 1e9), f"a disk of {disk} bytes per second: {found[0]}")
        times.append(float(found[1]))
    expect(times[0] > 10 * times[1], f"{times} seconds")
    return f"{times[0]} s with a slow disk, {times[1]} s with a fast one"


def open_flags():
    """What is left open fits wherever a flag that could be said fits, and is estimated to be no slower, but for three hundredths: of many tokens,
    whose activations are most of the memory, of many parameters, and of many blocks, where it costs most that buffers share bytes."""
    suite.gpt("tokens.onnx", "--layers", "8", "--hidden", "256", "--heads", "4", "--vocab", "2048", "--seq", "512", "--batch", "8", "--no-weights")
    suite.gpt("parameters.onnx", "--layers", "6", "--hidden", "512", "--heads", "8", "--vocab", "8192", "--seq", "64", "--batch", "2", "--no-weights")
    suite.gpt("blocks.onnx", "--layers", "12", "--hidden", "128", "--heads", "4", "--vocab", "2000", "--seq", "64", "--batch", "2", "--no-weights")
    machine = suite.work / "machine.json"
    fits, worst = 0, 0
    for model, disk, parts in (*((model, disk, (0.55, 0.25, 0.18)) for model in ("tokens", "parameters") for disk in (4e9, 4e8)),
                               ("blocks", 1.5e9, (0.81, 0.805, 0.75))):
        flags = [suite.work / f"{model}.onnx", "x.plan", "--init", "random", "--target", "sim", "--clip", "never", "--machine", machine]
        machine.write_text(json.dumps({"disk_read": disk, "disk_write": disk, "memory": 2e10, "products_f32": 1.9e11}))
        top = needs(facts(flags), "device")
        for part in parts:
            seconds = {}
            for flag in ("", "--recompute full", "--recompute none", "--offload-activations none", "--offload-activations disk"):
                if facts([*flags, *flag.split()], "--device-memory", int(top * part)):
                    told = suite.run([suite.bin / "zero-inspect", "x.plan", "--time", "--machine", machine]).stdout
                    seconds[flag] = float(re.search(r"from step to step +([\d.]+)", told)[1])
            expect(not seconds or "" in seconds, f"{model} with {part} of its memory fits with {list(seconds)} only")
            fits += len(seconds)
            for flag, other in seconds.items():
                expect(seconds[""] <= 1.03 * other, f"{model} with {part} of its memory, a disk of {disk}: {seconds['']} s, {other} with {flag}")
                worst = max(worst, seconds[""] / other)
    expect(fits > 30, f"only {fits} plans fit")
    return f"{fits} plans, {worst:.3f} at most"


def little_elsewhere(model):
    """Tiers that have room for what must leave the device, but not for all that may."""
    flags = [model[0], "x.plan", *model[1:], "--clip", "never", "--target", "sim"]
    device = int(0.6 * needs(facts(flags), "device"))
    least = needs(facts(flags, "--device-memory", device), "disk")
    expect(least > 0, "nothing leaves the device")
    for tier, none in (("--disk-memory", ()), ("--host-memory", ("--disk-memory", 0))):
        for more in (1, 1.2, 1.7):
            plan = facts(flags, "--device-memory", device, tier, int(more * least) + (0 if tier == "--disk-memory" else 1 << 20), *none)
            expect(plan is not None, f"{more} times what {device} bytes of the device leave over is not enough for {tier}")
    return f"{least} bytes elsewhere"


def ranks_open():
    """Of several ranks, whose buckets travel: what is left open is no slower than what a flag says, nor is more memory than less, up to all that is needed,
    but for three hundredths."""
    suite.gpt("ranks.onnx", "--arch", "llama", "--layers", "8", "--hidden", "64", "--heads", "4", "--vocab", "256", "--seq", "64", "--batch", "4", "--no-weights")
    machine = suite.work / "machine.json"
    machine.write_text(json.dumps({"link": 3e8, "link_latency": 1e-5, "products_f32": 1e10}))
    flags = [suite.work / "ranks.onnx", "x.plan", "--init", "random", "--target", "sim", "--clip", "never", "--machine", machine, "--world", 4, "--stage", 3]
    top, worst, smaller = needs(facts(flags), "device"), 0, None
    for part in (0.8, 0.87, 0.93, 0.97, 1, 1.02):
        seconds = {}
        for flag in ("", "--recompute full", "--offload-activations disk"):
            if facts([*flags, *flag.split()], "--device-memory", int(top * part)):
                told = suite.run([suite.bin / "zero-inspect", "x.plan", "--time", "--machine", machine]).stdout
                seconds[flag] = float(re.search(r"from step to step +([\d.]+)", told)[1])
        expect("" in seconds, f"{part} of its memory fits with {list(seconds)} only")
        others = {**seconds, **({"less memory": smaller} if smaller else {})}
        for flag, other in others.items():
            expect(seconds[""] <= 1.03 * other, f"with {part} of its memory {seconds['']} s, {other} with {flag}")
            worst = max(worst, seconds[""] / other)
        smaller = min(seconds[""], smaller or seconds[""])
    return f"{worst:.3f} at most"


def reference(world, clip, data="wide.safetensors"):
    """(parameters, losses) of what x.plan trains."""
    suite.run(["rm", "-f", "out.jsonl"])
    return trained("x.plan", data, world, clip), suite.losses("out.jsonl")


def same(wanted, losses, world, clip, where, data="wide.safetensors"):
    """x.plan keeps its promises, and trains to these bits."""
    suite.run([suite.bin / "zero-inspect", "x.plan", "--check"])
    found, said = reference(world, clip, data)
    expect(said == losses, f"{where} the losses are {said}, not {losses}")
    different = [n for n in wanted if wanted[n].tobytes() != found[n].tobytes()]
    expect(not different, f"{where} {len(different)} of {len(wanted)} parameters differ, such as {min(different, default='')}")


def schedule():
    """The steps of x.plan's first program."""
    return json.loads(suite.run([suite.bin / "zero-inspect", "x.plan", "--json", "--schedule"]).stdout)["programs"][0]["schedule"]


def later(model, world, stage, precision="f32"):
    """Where the disk takes about as long as computation, some updates run beside the next step's forward, with the bits of those after their gradient."""
    flags = [model[0], "x.plan", *model[1:], "--world", world, "--stage", stage, "--clip", "never", "--precision", precision]
    top = needs(facts(flags), "device")
    wanted, losses = reference(world, ())
    late = []
    for part, disk in ((0.4, 1e9), (0.75, 1e9), (0.8, 1e9), (0.85, 3e8), (0.85, 1e9), (0.9, 6e8), (0.7, 2e9)):
        (suite.work / "machine.json").write_text(json.dumps({"disk_read": disk, "disk_write": disk, "memory": 1e10, "products_f32": 2e10}))
        plan = facts(flags, "--device-memory", int(top * part), "--machine", suite.work / "machine.json")
        if plan is None or not any(d["choice"].endswith("on a lane of their own") for d in plan["decisions"]):
            continue
        late.append(part)
        steps = schedule()
        buckets = {step["name"].split(".")[0] for step in steps if step["lane"] == "update"}
        lanes = [step["lane"] for step in steps if step["name"].endswith(".update") and step["name"].split(".")[0] in buckets]
        expect(set(lanes) == {"update"}, f"at {part} of the memory updates of {buckets} are on lanes {lanes}")
        same(wanted, losses, world, (), f"at {part} of the memory")
    expect(late, "no plan has late updates")
    return f"at {late} of the memory"


def spread(model, world, stage):
    """Where copies take long and most moments may stay, those that leave come from all of backward, and the bits stay the same."""
    flags = [model[0], "x.plan", *model[1:], "--world", world, "--stage", stage, "--clip", "never"]
    top = needs(facts(flags), "device")
    wanted, losses = reference(world, ())
    found = []
    for part, disk in ((0.85, 3e8), (0.85, 6e8), (0.9, 3e8), (0.9, 1e9)):
        (suite.work / "machine.json").write_text(json.dumps({"disk_read": disk, "disk_write": disk, "memory": 1e10, "products_f32": 2e10}))
        plan = facts(flags, "--device-memory", int(top * part), "--machine", suite.work / "machine.json")
        if plan is None or not any("spread over backward" in d["choice"] for d in plan["decisions"] if d["subject"] == "memory"):
            continue
        found.append(part)
        same(wanted, losses, world, (), f"at {part} of the memory")
    expect(found, "no plan spreads what leaves over backward")
    return f"at {found} of the memory"


def named(model):
    """With as many bytes as a refusal names there is a plan."""
    said = []
    for more in ([], ["--accumulate", 2], ["--tile", "auto"], ["--precision", "bf16", "--world", 4, "--stage", 3]):
        flags = [model[0], "x.plan", *model[1:], "--target", "sim", *more]
        refusal = suite.zeroc(*flags, "--quiet", "--device-memory", 20000, check=False).stderr
        found = re.search(r"one rank needs ([\d ]+) bytes, ", refusal)
        expect(found, f"20000 bytes are enough, or nothing is named: {refusal}")
        need = int(found[1].replace(" ", ""))
        expect(facts(flags, "--device-memory", need) is not None, f"{need} bytes are named and are not enough, with {more}")
        said.append(need)
    return f"{said} bytes"


def tiled_logits(model, tiles, data):
    """In bf16: logits of tiles that wait for backward are those that are made again, to the bit."""
    flags = [model[0], "x.plan", *model[1:], "--precision", "bf16", "--tile", tiles]
    top = needs(facts(flags), "device")
    wanted, losses = reference(1, (), data)
    waiting = 0
    for part in (0.9, 0.6):
        plan = facts(flags, "--device-memory", int(top * part))
        waiting += any(d["subject"] == "logits" for d in plan["decisions"])
        same(wanted, losses, 1, (), f"at {part} of the memory", data)
    expect(waiting, "no plan keeps logits")
    return f"{waiting} of 2 plans keep logits"


def logits_away(model, world, stage):
    """With more tokens than the model is wide logits of tiles wait for backward on disk, where that copies beside computation, with the bits of logits made again."""
    flags = [model[0], "x.plan", *model[1:], "--tile", 4, "--clip", "never", "--world", world, "--stage", stage]
    top = needs(facts(flags), "device")
    wanted, losses = reference(world, (), "long.safetensors")
    (suite.work / "machine.json").write_text(json.dumps({"disk_read": 1e10, "disk_write": 1e10, "memory": 1e10, "products_f32": 1e9}))
    away = []
    for part in (0.7, 0.5, 0.4):
        plan = facts(flags, "--device-memory", int(top * part), "--machine", suite.work / "machine.json")
        expect(plan is not None, f"no plan for {part} of {top} bytes")
        away.append(sum(step["name"] == "node_logits.evict" for step in schedule()))
        same(wanted, losses, world, (), f"at {part} of the memory", "long.safetensors")
    expect(min(away) > 0, f"{away} tiles wait on disk")
    return f"{away} tiles"


def clipped(model):
    """In bf16, where updates fill the rest of blocks on disk: with a global norm all of them run beside the next step's forward."""
    flags = [model[0], "x.plan", *model[1:], "--clip", "always", "--precision", "bf16"]
    top = needs(facts(flags), "device")
    clip = ("--clip", 0.7)
    wanted, losses = reference(1, clip)
    filled = 0
    (suite.work / "machine.json").write_text(json.dumps({"disk_read": 2e9, "disk_write": 2e9}))
    for part in (0.5, 0.6, 0.8):
        facts(flags, "--device-memory", int(top * part), "--machine", suite.work / "machine.json")
        steps = schedule()
        filled += sum(step["name"].endswith(".compute.padding") for step in steps)
        lanes = [step["lane"] for step in steps if step["name"].endswith((".update", ".compute.padding"))]
        expect(set(lanes) == {"update"}, f"at {part} of the memory updates and what they fill are on lanes {lanes}")
        same(wanted, losses, 1, clip, f"at {part} of the memory")
    expect(filled, "no update fills the rest of a block")
    return f"{filled} blocks filled"


def masters(model):
    """In bf16, where a disk is slow, masters come for each use in place of compute copies, are rounded there and stay for the update, with the same bits."""
    flags = [model[0], "x.plan", *model[1:], "--clip", "never", "--precision", "bf16"]
    top = needs(facts(flags), "device")
    wanted, losses = reference(1, ())
    (suite.work / "machine.json").write_text(json.dumps({"disk_read": 2e8, "disk_write": 2e8}))
    fetched = 0
    for part in (0.36, 0.5):
        plan = facts(flags, "--device-memory", int(top * part), "--machine", suite.work / "machine.json")
        if "as masters without compute copies" in decision(plan, "memory")[0]:
            buckets = [step["name"].removesuffix(".round") for step in schedule() if step["name"].endswith(".round")]
            names = [step["name"] for step in schedule()]
            rested = {bucket for bucket in buckets if f"{bucket}.parameter.fetch" in names}
            fetched += len(rested)
            for bucket in rested:
                times = names.count(f"{bucket}.parameter.fetch")
                expect(times <= buckets.count(bucket), f"the master of {bucket} is fetched {times} times for {buckets.count(bucket)} uses: its update, too, fetches it")
            expect(not any(name.endswith(".compute.evict") and name.split(".")[0] in rested for name in names), "copies are written beside masters")
        same(wanted, losses, 1, (), f"at {part} of the memory")
    expect(fetched, "no plan fetches masters in place of compute copies")
    return f"{fetched} buckets"


def deferred(model, world, stage):
    """With a global norm some of what updates have changed on disk is written after all of them, beside the next step, with the same bits."""
    flags = [model[0], "x.plan", *model[1:], "--world", world, "--stage", stage, "--clip", "always"]
    top, clip = needs(facts(flags), "device"), ("--clip", 0.7)
    wanted, losses = reference(world, clip)
    parts, copies = [], 0
    (suite.work / "machine.json").write_text(json.dumps({"disk_read": 2e9, "disk_write": 2e9, "memory": 1e10, "products_f32": 2e10}))
    for part in (0.5, 0.6, 0.7, 0.8):
        plan = facts(flags, "--device-memory", int(top * part), "--machine", suite.work / "machine.json")
        if not any(d["choice"].endswith("after all updates") for d in plan["decisions"]):
            continue
        parts.append(part)
        lane = [step["name"] for step in schedule() if step["lane"] == "update"]
        updates = max(i for i, name in enumerate(lane) if name.endswith(".update"))
        copies += len(lane) - updates - 1
        expect(len(lane) > updates + 1 and all(name.endswith(".evict") for name in lane[updates + 1:]), f"at {part} of the memory lane update ends with {lane[-3:]}")
        same(wanted, losses, world, clip, f"at {part} of the memory")
    expect(parts, "no plan writes after all updates")
    return f"{copies} copies, at {parts} of the memory"


def early(model):
    """Where the link takes about as long as computation, buckets are gathered for the next step beside the rest of backward, with the bits of those that are not."""
    flags = [model[0], "x.plan", *model[1:], "--world", 2, "--stage", 3, "--clip", "never"]
    top = needs(facts(flags), "device")
    wanted, losses = reference(2, ())
    first = []
    for link in (1e12, 5e8, 2e8, 5e7):
        (suite.work / "machine.json").write_text(json.dumps({"link": link, "link_latency": 1e-6, "products_f32": 2e10}))
        plan = facts(flags, "--device-memory", int(top * 1.5), "--machine", suite.work / "machine.json")
        gathered = [d for d in plan["decisions"] if d["choice"] == "gathered in front of all others"]
        expect(bool(gathered) == ("beside the step before" in decision(plan, "schedule")[0]), f"{len(gathered)} gathers in front of others: {decision(plan, 'schedule')[0]}")
        expect(not gathered or link < 1e12, "gathered in front of others though the link takes no time")
        if not gathered:
            continue
        first.append(link)
        same(wanted, losses, 2, (), f"over a link of {link} bytes per second")
    expect(first, "no plan gathers in front of others")
    return f"over links of {first} bytes per second"


def depth():
    """The search for a plan takes time in proportion to the layers: counted as steps that are scheduled for all choices together."""
    counts = {}
    for layers in (50, 200):
        suite.gpt("layers.onnx", "--layers", layers, "--hidden", "16", "--heads", "2", "--vocab", "97", "--seq", "32", "--no-weights")
        flags = ["layers.onnx", "x.plan", "--target", "sim", "--init", "random", "--world", 4, "--stage", 3]
        top = needs(facts(flags), "device")
        said = suite.zeroc(*flags, "--quiet", "--timing", "--device-memory", int(top * 0.6)).stderr
        found = re.search(r"searched (\d+) choices, (\d+) steps scheduled", said)
        expect(found and int(found[1]) > 5, f"no search of {layers} layers: {said}")
        counts[layers] = int(found[2])
    growth = counts[200] / counts[50] / 4
    expect(growth < 1.3, f"{counts} steps: {growth:.2f} times more than in proportion to the layers")
    return f"{counts} steps scheduled, {growth:.2f} in proportion"


def ahead(name, flags):
    """What other threads find out ahead of the search decides nothing: the plan, or the refusal, is that of one thread, and so is what is said of either."""
    command = [suite.bin / "zeroc", suite.work / f"{name}.onnx", "-o", "x.plan", "--target", "sim", *flags]
    top, plans = needs(facts([suite.work / f"{name}.onnx", "x.plan"]), "device"), 0
    for part in (0.6, 0.25, 0.05):
        made = []
        for processors in (["taskset", "-c", str(min(os.sched_getaffinity(0)))], []):
            (suite.work / "x.plan").unlink(missing_ok=True)
            result = suite.run([*processors, *command, "--device-memory", int(top * part)], check=False)
            written = (suite.work / "x.plan").read_bytes() if result.returncode == 0 else None
            made.append((written, result.stdout, result.stderr))
        expect(made[0][1:] == made[1][1:], f"at {part} of the memory one thread says {made[0][1:]}, several say {made[1][1:]}")
        expect(made[0][0] == made[1][0], f"at {part} of the memory several threads make another plan")
        plans += made[0][0] is not None
    expect(0 < plans < 3, f"{plans} plans")
    return f"{plans} plans and {3 - plans} refusals with {len(os.sched_getaffinity(0))} processors"


suite.start()
models = {}
for name, onnx in (("gpt2", "dynamo_sdpa_dyn.onnx"), ("llama", "ts17_eager_dyn.onnx")):
    models[name] = [TINY / name / onnx, "--bind", f"batch=1,seq={suite.tiny_data(name)}"]
suite.gpt("wide.onnx", "--layers", "4", "--hidden", "128", "--heads", "4", "--vocab", "2000", "--seq", "32", "--batch", "2")
random = np.random.default_rng(1)
tokens = random.integers(0, 2000, (64, 33))
save_file({"input_ids": tokens[:, :-1].copy(), "labels": tokens[:, 1:].copy()}, suite.work / "wide.safetensors")
models["wide"] = [suite.work / "wide.onnx"]
suite.gpt("deep.onnx", "--layers", "6", "--hidden", "64", "--heads", "4", "--vocab", "97", "--seq", "64", "--batch", "8")
tokens = random.integers(0, 97, (64, 65))
save_file({"input_ids": tokens[:, :-1].copy(), "labels": tokens[:, 1:].copy()}, suite.work / "deep.safetensors")
suite.gpt("long.onnx", "--layers", "3", "--hidden", "64", "--heads", "4", "--vocab", "2000", "--seq", "64", "--batch", "4")
tokens = random.integers(0, 2000, (64, 65))
save_file({"input_ids": tokens[:, :-1].copy(), "labels": tokens[:, 1:].copy()}, suite.work / "long.safetensors")
for name, world, stage, accumulate in (("gpt2", 1, 0, 1), ("llama", 1, 0, 2), ("wide", 2, 2, 1), ("wide", 2, 3, 2)):
    suite.check(f"budgets: {name}, {world} ranks, stage {stage}, {accumulate} micro-steps", kept, models[name], f"{name}.safetensors", world, stage, accumulate)
for name, folder, onnx in (("llama", "llama", "ts17_eager_dyn.onnx"), ("bert_mlm", "bert_mlm", "*.onnx"), ("t5", "t5", "*.onnx")):
    suite.check(f"budgets: {name}, as many bytes as a refusal names", named, [*models.get(name, [next((TINY / folder).glob(onnx))])])
suite.gpt("table.onnx", "--arch", "llama", "--layers", "2", "--hidden", "64", "--heads", "4", "--vocab", "4096", "--seq", "64", "--batch", "2")
suite.check("budgets: logits of tiles in bf16", tiled_logits, models["wide"], 4, "wide.safetensors")
suite.check("budgets: logits of two tiles in bf16", tiled_logits, [suite.work / "table.onnx"], 2, "long.safetensors")
for world, stage in ((1, 0), (2, 3)):
    suite.check(f"budgets: logits of tiles on disk, {world} ranks, stage {stage}", logits_away, [suite.work / "long.onnx"], world, stage)
suite.check("budgets: host and disk", tiers, models["wide"])
suite.check("budgets: --stage auto and --tile auto", autos, models["wide"])
suite.check("budgets: blocks made again", made_again, [suite.work / "deep.onnx"])
suite.check("budgets: nothing is worse for being left open", open_flags)
suite.check("budgets: little room elsewhere", little_elsewhere, models["wide"])
suite.check("budgets: what is left open, of several ranks", ranks_open)
suite.check("budgets: the estimate follows the machine", slow_disk, models["wide"])
suite.check("budgets: what a refusal names of the host and the disk", named_elsewhere, models["wide"])
for world, stage in ((1, 0), (2, 3)):
    suite.check(f"budgets: updates beside the next forward, {world} ranks, stage {stage}", later, models["wide"], world, stage)
for world, stage in ((1, 0), (2, 3)):
    suite.check(f"budgets: what leaves is spread over backward, {world} ranks, stage {stage}", spread, models["wide"], world, stage)
suite.check("budgets: updates beside the next forward, bf16", later, models["wide"], 1, 0, "bf16")
suite.check("budgets: updates beside the next forward, bf16 with --clip", clipped, models["wide"])
suite.check("budgets: masters in place of compute copies", masters, models["wide"])
for world, stage in ((1, 0), (2, 1), (2, 3)):
    suite.check(f"budgets: written after all updates, {world} ranks, stage {stage}", deferred, models["wide"], world, stage)
suite.check("budgets: buckets gathered beside the step before", early, models["wide"])
suite.check("budgets: in proportion to the layers", depth)
for name, flags in (("wide", ["--tile", "auto"]), ("deep", ["--tile-tokens", "auto", "--clip", "never"]),
                    ("wide", ["--world", 2, "--stage", "auto", "--accumulate", 2, "--accumulate-order", "auto"])):
    suite.check(f"budgets: as many threads as there are, {' '.join(map(str, [name, *flags]))}", ahead, name, flags)
suite.finish()
