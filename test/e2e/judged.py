#!/usr/bin/env python3
"""The judge rejects what is wrong with a real plan, and says what.

Plans of a small GPT are changed in one place each: every wait dropped, lowered and raised, every step taken out, every buffer laid over a
living one or taken its first or last step, every update moved or made twice, collectives resized. The compiler makes no wait and no step
that is not needed, so each change must be refused, with the sentence of the promise it breaks (but for steps that only change what they
read in place).
"""
import itertools
import json
import math
import re
import sys

from harness import ROOT, Suite, expect

sys.path.insert(0, str(ROOT / "test"))
import plan_file  # noqa: E402

suite = Suite(__doc__)


def refused(original, plan, pattern, what):
    plan_file.write(suite.work / "changed.plan", original, plan)
    result = suite.run([suite.bin / "zero-inspect", "changed.plan", "--check"], check=False)
    expect(result.returncode == 1, f"{what}: exit {result.returncode} {result.stderr[-200:]}")
    said = result.stdout + result.stderr
    expect(re.search(pattern, said), f"{what}: the judge says {said.strip()[:300]}")


def changes(name, every, pattern):
    """Applies each change that `every` yields as (plan, text) for the plan of that name."""
    original = suite.work / name
    count = 0
    for plan, what in every(plan_file.read(original)):
        refused(original, plan, pattern, what)
        count += 1
    expect(count, "nothing was changed")
    return f"{count} changes"


def copy(plan):
    other = type(plan)()
    other.CopyFrom(plan)
    return other


UPDATE = 7  # plan.Lane
SUM = 3  # plan.StateTensor.GRADIENT


def places(plan, wanted=lambda step: True):
    """(program, step) of the programs that train and of evaluation."""
    return [(p, s) for p, program in enumerate(plan.programs) for s, step in enumerate(program.steps) if wanted(step)]


def waits(change):
    def every(plan):
        for p, s in places(plan, lambda step: step.waits):
            for w in range(len(plan.programs[p].steps[s].waits)):
                other = copy(plan)
                change(other.programs[p].steps[s].waits, w)
                yield other, f"wait {w} of step {s} of {plan.programs[p].name}"
    return every


def entry_waits(change):
    """Each wait of an entry, changed: lanes run on from another program too early."""
    def every(plan):
        for p, program in enumerate(plan.programs):
            for e, entry in enumerate(program.entries):
                for w in range(len(entry.waits)):
                    other = copy(plan)
                    change(other.programs[p].entries[e].waits, w)
                    yield other, f"wait {w} of {program.name} after {plan.programs[entry.after].name}"
    return every


def results(plan):
    """The host reads the results without waiting for who writes them."""
    for p, program in enumerate(plan.programs):
        for w in range(len(program.result_waits)):
            other = copy(plan)
            del other.programs[p].result_waits[w]
            yield other, f"wait {w} for the results of {program.name}"


def drop(waits, w):
    del waits[w]


def lower(waits, w):
    waits[w].tick -= 1


def raised(waits, w):
    waits[w].tick += 1000


def in_place(step):
    """It only changes what it reads: without it the old value would stand there, and nobody could tell."""
    key = lambda ref: ref.SerializeToString()
    return step.HasField("launch") and {key(x) for x in step.writes} <= {key(x) for x in step.reads}


def without_step(plan):
    for p, s in places(plan, lambda step: not in_place(step)):
        other = copy(plan)
        steps = other.programs[p].steps
        del steps[s]
        step = plan.programs[p].steps[s]
        # The ticks after it are one lower: what is wrong shall be the missing step alone.
        tick = sum(x.lane == step.lane for x in plan.programs[p].steps[:s])
        following = [entry for program in other.programs for entry in program.entries if entry.after == p]
        waiting = [later.waits for later in steps[s:]] + [other.programs[p].result_waits] + [entry.input_waits for entry in following] + [entry.waits for entry in following]
        for wait in itertools.chain(*waiting):
            wait.tick -= wait.lane == step.lane and wait.tick > tick
        for entry in other.programs[p].entries:
            for w in reversed(range(len(entry.waits))):
                if entry.waits[w].step == s:
                    del entry.waits[w]
                else:
                    entry.waits[w].step -= entry.waits[w].step > s
        for buffer in other.buffers:
            if buffer.program == p:
                if buffer.first == buffer.last == s:
                    buffer.bytes = 0  # nobody else knew it
                buffer.last -= buffer.last >= s and buffer.last > 0
                buffer.first = min(buffer.first - (buffer.first > s), buffer.last)
        yield other, f"without step {s} '{step.name}' of {plan.programs[p].name}"


def over_another(plan):
    """Each buffer at the place of the next one that lives at the same time."""
    for p in range(len(plan.programs)):
        own = [b for b, buffer in enumerate(plan.buffers) if buffer.program == p and buffer.bytes]
        for a, b in itertools.pairwise(own):
            x, y = plan.buffers[a], plan.buffers[b]
            if x.first <= y.last and y.first <= x.last and y.offset + x.bytes <= plan.programs[p].arena_bytes[x.arena]:
                other = copy(plan)
                other.buffers[a].offset = y.offset
                yield other, f"'{x.name}' over '{y.name}'"


def shorter_life(plan):
    for b, buffer in enumerate(plan.buffers):
        if buffer.program < 0 or buffer.first == buffer.last:
            continue
        other = copy(plan)
        other.buffers[b].first += 1
        yield other, f"'{buffer.name}' without its first step"


def unaligned(plan):
    for b, buffer in enumerate(plan.buffers):
        if buffer.bytes:
            other = copy(plan)
            other.buffers[b].offset += 32
            yield other, f"'{buffer.name}' half a line further"


def one_less(plan):
    """A reference fewer than the step's kind has."""
    for p, s in places(plan):
        for side in ("reads", "writes"):
            if getattr(plan.programs[p].steps[s], side):
                other = copy(plan)
                del getattr(other.programs[p].steps[s], side)[-1]
                yield other, f"step {s} of {plan.programs[p].name} without one of its {side}"


def collective(change):
    def every(plan):
        for p, s in places(plan, lambda step: step.HasField("collective")):
            other = copy(plan)
            change(other.programs[p].steps[s].collective)
            yield other, f"step {s} '{plan.programs[p].steps[s].name}' of {plan.programs[p].name}"
    return every


def resized(collective):
    collective.count -= 1


def sum_of(change):
    """Each sum over ranks, changed; `change` takes its collective and the references it writes, of which the second is the staging room."""
    def every(plan):
        for p, s in places(plan, lambda step: step.HasField("collective") and step.collective.order):
            other = copy(plan)
            step = other.programs[p].steps[s]
            change(step.collective, step.writes)
            yield other, f"step {s} '{step.name}' of {plan.programs[p].name}"
    return every


def unordered(collective, writes):
    collective.order = 0


def endless(collective, writes):
    collective.slice = 0


def too_long(collective, writes):
    collective.slice = collective.count + 1


def finer(collective, writes):
    collective.slice = (collective.slice + 1) // 2
    writes[1].bytes = writes[1].bytes // 4


def gathers_by_slices(plan):
    for p, s in places(plan, lambda step: step.HasField("collective") and not step.collective.order):
        other = copy(plan)
        other.programs[p].steps[s].collective.slice = 1
        yield other, f"step {s} '{plan.programs[p].steps[s].name}' of {plan.programs[p].name}"


def moved(target):
    """Each update at another place; lives and waits stay as they are."""
    def every(plan):
        for p, s in places(plan, lambda step: step.HasField("update")):
            other = copy(plan)
            steps = [type(x).FromString(x.SerializeToString()) for x in other.programs[p].steps]
            target(steps, s)
            del other.programs[p].steps[:]
            other.programs[p].steps.extend(steps)
            yield other, f"the update at step {s} of {plan.programs[p].name}"
    return every


def whole(plan):
    """Updates of a shard that are said to be of the whole bucket."""
    for p, s in places(plan, lambda step: step.HasField("update") and step.update.part == 2):
        other = copy(plan)
        other.programs[p].steps[s].update.part = 1
        yield other, f"the update at step {s} of {plan.programs[p].name}"


def to_front(steps, s):
    steps.insert(0, steps.pop(s))


def twice(steps, s):
    steps.insert(s + 1, steps[s])


def elsewhere(plan):
    """Updates of another bucket's state, and results that no step computes."""
    for p, program in enumerate(plan.programs):
        other = copy(plan)
        other.programs[p].loss.buffer = plan.inputs[0].ref.buffer
        other.programs[p].loss.offset = 0
        yield other, f"the loss of {program.name}"


def tensors(change):
    """Each tensor of each bucket, changed."""
    def every(plan):
        for b, bucket in enumerate(plan.buckets):
            for t in range(len(bucket.tensors)):
                other = copy(plan)
                change(other.buckets[b].tensors, t)
                yield other, f"tensor {t} of bucket {b}"
    return every


def other_part(tensors, t):
    tensors[t].part = 3 - tensors[t].part


def other_type(tensors, t):
    tensors[t].dtype = 2


def larger(tensors, t):
    tensors[t].ref.bytes -= 4


def without(tensors, t):
    del tensors[t]


def over_its_neighbour(tensors, t):
    tensors[t].ref.CopyFrom(tensors[(t + 1) % len(tensors)].ref)


def pieces(change):
    """Each parameter's list of pieces, changed."""
    def every(plan):
        for p, parameter in enumerate(plan.parameters):
            other = copy(plan)
            change(other.parameters[p])
            yield other, f"parameter '{parameter.name}'"
    return every


def half(parameter):
    parameter.pieces[0].begin.extend([0] * len(parameter.shape))
    parameter.pieces[0].size.extend([parameter.shape[0] // 2, *parameter.shape[1:]])


def doubled(parameter):
    parameter.pieces.add().CopyFrom(parameter.pieces[0])


def over_the_next(plan):
    """Each parameter one element further, where another begins after it."""
    for p, parameter in enumerate(plan.parameters):
        place, = parameter.pieces
        end = place.offset_elements + math.prod(parameter.shape)
        if any(q.pieces[0].bucket == place.bucket and q.pieces[0].offset_elements == end for q in plan.parameters):
            other = copy(plan)
            other.parameters[p].pieces[0].offset_elements += 1
            yield other, f"parameter '{parameter.name}' one further"


def crossed(plan):
    """Collectives that take what is one bucket's to where another's belongs."""
    for p, s in places(plan, lambda step: step.HasField("collective")):
        to = plan.programs[p].steps[s].writes[0].buffer
        for b in range(len(plan.buckets)):
            if plan.buffers[to].HasField("bucket") and plan.buffers[to].bucket != b and plan.buckets[b].elements == plan.buckets[plan.buffers[to].bucket].elements:
                other = copy(plan)
                other.buffers[to].bucket = b
                yield other, f"step {s} of {plan.programs[p].name} into bucket {b}"


def half_published(plan):
    """Each rank sends half of what it has updated of a bucket that all of them keep whole."""
    for p, s in places(plan, lambda step: step.HasField("collective") and step.name.endswith(".publish")):
        other = copy(plan)
        step = other.programs[p].steps[s]
        step.collective.count //= 2
        for ref in (step.reads[0], step.writes[0]):
            ref.bytes //= 2
        yield other, f"step {s} '{step.name}' of {plan.programs[p].name}"


def strideless(kind, pick):
    """Each reference that `pick` takes of a step of this kind and that differs between ranks, at rank 0's place on all of them."""
    def every(plan):
        for p, s in places(plan, lambda step: step.HasField(kind)):
            refs = pick(plan.programs[p].steps[s])
            if any(any(ref.strides) for ref in refs):
                other = copy(plan)
                for ref in pick(other.programs[p].steps[s]):
                    del ref.strides[:]
                yield other, f"step {s} '{plan.programs[p].steps[s].name}' of {plan.programs[p].name}"
    return every


def exchanged(plan):
    """Each update with the gradient of the next one that is as large."""
    for p, program in enumerate(plan.programs):
        updates = [s for s, step in enumerate(program.steps) if step.HasField("update")]
        for s, t in itertools.combinations(updates, 2):
            if program.steps[s].reads[1].bytes == program.steps[t].reads[1].bytes and program.steps[s].update.bucket != program.steps[t].update.bucket:
                other = copy(plan)
                other.programs[p].steps[s].reads[1].CopyFrom(program.steps[t].reads[1])
                yield other, f"steps {s} and {t} of {program.name}"
                break


def over_operand(plan):
    """Products that write where they still read."""
    for p, s in places(plan, lambda step: step.HasField("matmul") and step.writes[0].bytes <= step.reads[0].bytes):
        other = copy(plan)
        step = other.programs[p].steps[s]
        step.writes[0].buffer, step.writes[0].offset = step.reads[0].buffer, step.reads[0].offset
        yield other, f"step {s} '{step.name}' of {plan.programs[p].name}"


def forgotten(plan):
    """Micro-steps add their gradient to itself in place of what the earlier ones have left."""
    sums = {tensor.ref.buffer for bucket in plan.buckets for tensor in bucket.tensors if tensor.role == SUM}
    for p, program in enumerate(plan.programs):
        for s, step in enumerate(program.steps):
            if step.HasField("launch") and len(step.reads) == 2 and step.reads[0].buffer in sums:
                other = copy(plan)
                other.programs[p].steps[s].reads[0].CopyFrom(step.reads[1])
                yield other, f"step {s} '{step.name}' of {program.name}"


def updates_of(program):
    return [s for s, step in enumerate(program.steps) if step.HasField("update")]


def without_norm(plan):
    """Each update that waits for the norm with another number in its place."""
    for p, program in enumerate(plan.programs):
        for s in updates_of(program) if program.clips else []:
            other = copy(plan)
            norm = other.programs[p].steps[s].reads[-1]
            norm.CopyFrom(program.loss)
            norm.bytes = 4
            yield other, f"the update at step {s} of {program.name}"


def squares(plan):
    """(program, step) of launches that sum the squares of a gradient for the norm, by the name of their kernel."""
    return places(plan, lambda step: step.HasField("launch") and plan.kernels[step.launch.kernel].symbol.startswith("sum_squares"))


def of_another(plan):
    """The norm has the squares of one gradient twice, and those of another never."""
    for p, s in squares(plan):
        for q, t in squares(plan):
            read, instead = plan.programs[p].steps[s].reads[0], plan.programs[q].steps[t].reads[0]
            if p == q and t < s and read.bytes == instead.bytes:
                other = copy(plan)
                other.programs[p].steps[s].reads[0].CopyFrom(instead)
                yield other, f"step {s} of {plan.programs[p].name} sums what step {t} does"
                break


def over_persistent(kind):
    """Each launch that writes a buffer of its own with a persistent one of that kind in its place."""
    def every(plan):
        targets = [b for b, buffer in enumerate(plan.buffers) if buffer.program < 0 and buffer.kind == kind]
        for p, s in places(plan, lambda step: step.HasField("launch")):
            ref = plan.programs[p].steps[s].writes[0]
            for target in targets:
                if plan.buffers[ref.buffer].program >= 0 and plan.buffers[target].bytes >= ref.bytes:
                    other = copy(plan)
                    ref = other.programs[p].steps[s].writes[0]
                    ref.buffer, ref.offset = target, 0
                    del ref.strides[:]
                    yield other, f"step {s} of {plan.programs[p].name} into '{plan.buffers[target].name}'"
                    break
    return every


def unfilled(plan):
    for c in range(len(plan.constants)):
        other = copy(plan)
        del other.constants[c]
        yield other, f"constant {c}"


def unsummed(plan):
    """Each step that leaves a sum of gradients for the next micro-step writes it somewhere else."""
    sums = {tensor.ref.buffer for bucket in plan.buckets for tensor in bucket.tensors if tensor.role == SUM}
    for p, program in enumerate(plan.programs):
        for s, step in enumerate(program.steps) if program.role in (1, 2) else []:
            for w, ref in enumerate(step.writes):
                if ref.buffer in sums:
                    other = copy(plan)
                    extra = other.buffers.add()
                    extra.CopyFrom(plan.buffers[ref.buffer])
                    extra.name = "elsewhere"
                    arena = other.arenas[extra.arena]
                    extra.offset = arena.bytes
                    arena.bytes += (extra.bytes + arena.alignment - 1) // arena.alignment * arena.alignment
                    other.programs[p].steps[s].writes[w].buffer = len(other.buffers) - 1
                    yield other, f"step {s} '{step.name}' of {program.name}"


def first_inputs(plan):
    """Each read of a later micro-step's input reads the first one's."""
    first = {i.name: i.ref.buffer for i in plan.inputs if i.micro_step == 0}
    later = {i.ref.buffer: first[i.name] for i in plan.inputs if i.micro_step}
    for p, s in places(plan, lambda step: any(ref.buffer in later for ref in step.reads)):
        other = copy(plan)
        for ref in other.programs[p].steps[s].reads:
            ref.buffer = later.get(ref.buffer, ref.buffer)
        yield other, f"step {s} of {plan.programs[p].name}"


suite.start()
suite.gpt("gpt.onnx", "--layers", "2", "--hidden", "16", "--heads", "2", "--vocab", "13", "--seq", "4", "--batch", "1")
plans = {}
for stage, accumulate in ((0, 1), (1, 1), (2, 2), (3, 3)):
    plans[stage] = f"{stage}.plan"
    types = ("--precision", "f16", "--reduce-type", "bf16") if stage == 2 else ()
    suite.zeroc("gpt.onnx", plans[stage], "--quiet", "--world", 2, "--stage", stage, "--accumulate", accumulate, "--bucket-elements", 1500, *types)
for stage in (1, 3):
    suite.check(f"judged: stage {stage}, without a wait", changes, plans[stage], waits(drop), "without waiting for")
    suite.check(f"judged: stage {stage}, an earlier wait", changes, plans[stage], waits(lower), "without waiting for")
    suite.check(f"judged: stage {stage}, without a wait for the program before", changes, plans[stage], entry_waits(drop), "after @.* without waiting for .* of the program before")
    suite.check(f"judged: stage {stage}, an earlier wait for the program before", changes, plans[stage], entry_waits(lower), "after @.* without waiting for .* of the program before")
    suite.check(f"judged: stage {stage}, results read too early", changes, plans[stage], results, "the host reads buffer .* without waiting for")
suite.check("judged: stage 3, a wait the program before never meets", changes, plans[3], entry_waits(raised), "after program .* waits for tick [0-9]+ of lane .*, which has only")
suite.check("judged: stage 2, a wait that is never met", changes, plans[2], waits(raised), "which has|cycle")
for stage in (0, 3):
    suite.check(f"judged: stage {stage}, without a step", changes, plans[stage], without_step,
                "dead store|before anything is written|last written through|never updated|never reaches|no step writes|is (reduced|gathered for an update) 0 times|not summed|without waiting")
suite.zeroc("gpt.onnx", "vertical.plan", "--quiet", "--world", 2, "--stage", 3, "--accumulate", 2, "--accumulate-order", "vertical", "--bucket-elements", 1500)
suite.check("judged: all micro-steps in one program, without a wait", changes, "vertical.plan", waits(drop), "without waiting for")
suite.check("judged: all micro-steps in one program, without a step", changes, "vertical.plan", without_step,
            "dead store|before anything is written|last written through|never updated|never reaches|no step writes|is reduced 1 times, not 2 times|not summed|without waiting")
suite.zeroc("gpt.onnx", "four.plan", "--quiet", "--world", 4, "--stage", 2, "--bucket-elements", 1500)
suite.check("judged: four ranks, without a wait", changes, "four.plan", waits(drop), "without waiting for")
suite.check("judged: four ranks, without a wait for the program before", changes, "four.plan", entry_waits(drop), "after @.* without waiting for .* of the program before")
suite.check("judged: stage 1, all ranks update the first shard", changes, plans[1], strideless("update", lambda step: [step.reads[0], step.writes[0]]), "updates the .* where it does not rest")
for stage in (1, 3):
    suite.check(f"judged: stage {stage}, updates with another's gradient", changes, plans[stage], exchanged, "with the gradient of other elements|last written through|before anything|outside its life")
suite.check("judged: stage 1, the first shard's gradient for all ranks", changes, plans[1], strideless("update", lambda step: [step.reads[1]]), "with the gradient of other elements")
suite.check("judged: stage 1, all ranks send the first shard", changes, plans[1], strideless("collective", lambda step: [step.reads[0]]), "gathers from a place among what rank 1 gets from others")
suite.check("judged: stage 1, half of a shard is sent", changes, plans[1], half_published, "moves [0-9]+ elements of each rank, where a shard of bucket .* has|gathers from a place among")
suite.zeroc("gpt.onnx", "fetched.plan", "--quiet", "--world", 2, "--stage", 1, "--bucket-elements", 1500, "--offload-params", "disk", "--offload-optimizer", "host")
suite.check("judged: stage 1, all ranks update the first shard of what was fetched", changes, "fetched.plan", strideless("update", lambda step: [step.reads[0], step.writes[0]]), "of another rank")
suite.check("judged: a product over its operand", changes, plans[1], over_operand, "has C in bytes of A|where the step reaches")
suite.check("judged: sums of earlier micro-steps forgotten", changes, plans[3], forgotten, "have summed of the gradient of elements .* is never used")
suite.zeroc("gpt.onnx", "clips.plan", "--quiet", "--world", 2, "--stage", 3, "--clip", "always", "--bucket-elements", 1500)
suite.check("judged: an update that does not wait for the norm", changes, "clips.plan", without_norm, "does not read the norm of all gradients")
suite.check("judged: a norm of other gradients", changes, "clips.plan", of_another, "the squares in the norm are not those of the gradient that bucket")
for kind, what, says in ((3, "moments", "(writes the (first|second) moment of bucket .* but is not its update|changes the .* moment of bucket .* in evaluation)"), (5, "inputs", "which only the host fills")):
    suite.check(f"judged: a kernel that writes {what}", changes, plans[1], over_persistent(kind), says)
suite.gpt("rotary.onnx", "--arch", "llama", "--layers", "1", "--hidden", "64", "--heads", "2", "--vocab", "13", "--seq", "8", "--batch", "1")
suite.zeroc("rotary.onnx", "rotary.plan", "--quiet")
suite.check("judged: constants that nobody fills", changes, "rotary.plan", unfilled, "which nothing ever fills")
suite.zeroc("gpt.onnx", "summed.plan", "--quiet", "--accumulate", 3, "--bucket-elements", 1500)
suite.check("judged: a gradient left out of the sum", changes, "summed.plan", unsummed, "no sum of the gradient of elements .* is left for the next micro-step")
suite.check("judged: micro-steps that read the first one's inputs", changes, "vertical.plan", first_inputs, "is read by [0-9]+ steps of micro-step 1, and by [0-9]+ of the first")
suite.check("judged: a buffer over another", changes, plans[3], over_another, "share bytes|ends beyond its arena")
suite.check("judged: a buffer between lines", changes, plans[2], unaligned, "is not a multiple of 64|outside the")
suite.check("judged: a reference missing", changes, plans[2], one_less, "one of its kind|arguments; it takes")
suite.check("judged: a shorter life", changes, plans[2], shorter_life, "outside its life|share bytes")
suite.check("judged: a smaller collective", changes, plans[3], collective(resized), "where the step reaches")
suite.check("judged: a gather by slices", changes, plans[3], gathers_by_slices, "gathers, but says how it sums")
for stage in (0, 2):
    suite.check(f"judged: stage {stage}, a sum in no order", changes, plans[stage], sum_of(unordered), "in the order ORDER_UNSPECIFIED; expected RANK")
    suite.check(f"judged: stage {stage}, slices of nothing", changes, plans[stage], sum_of(endless), "in slices of 0 elements, which do not cover")
    suite.check(f"judged: stage {stage}, slices beyond the end", changes, plans[stage], sum_of(too_long), "in slices of [0-9]+ elements, which do not cover")
    suite.check(f"judged: stage {stage}, no room for a slice", changes, plans[stage], sum_of(finer), "the staging room of step .* where the step reaches")
suite.check("judged: a part said to be another", changes, plans[3], tensors(other_part), "has [0-9]+ bytes where (a shard|the whole bucket) in F32 takes")
suite.check("judged: a type said to be another", changes, plans[1], tensors(other_type), "in BF16 takes")
suite.check("judged: a tensor of another size", changes, plans[0], tensors(larger), "has [0-9]+ bytes where (a shard|the whole bucket) in F32 takes")
suite.check("judged: a tensor missing", changes, plans[1], tensors(without), "keeps no|never written|accumulator")
suite.check("judged: two tensors in one place", changes, plans[3], tensors(over_its_neighbour), "shares bytes with")
suite.check("judged: a piece missing", changes, plans[3], pieces(half), "the pieces of parameter .* hold [0-9]+ of its [0-9]+ elements")
suite.check("judged: a piece doubled", changes, plans[0], pieces(doubled), "pieces 0 and 1 of parameter .* hold the same elements")
suite.check("judged: a parameter over another", changes, plans[3], over_the_next, "share element [0-9]+ of bucket")
suite.check("judged: a collective into another bucket", changes, plans[3], crossed, "to where those of bucket|is reduced|works for|asks for")
suite.check("judged: an update too early", changes, plans[1], moved(to_front), "outside its life|after their update|waits for itself")
suite.check("judged: an update of half the bucket", changes, plans[3], whole, "are never updated")
suite.check("judged: an update twice", changes, plans[0], moved(twice), "a second time|outside its life")
def away(plan, step):
    """The copy goes to a state that rests in another tier, or comes from there."""
    tier = lambda ref: plan.arenas[plan.buffers[ref.buffer].arena].tier
    return step.HasField("copy") and (tier(step.reads[0]) or tier(step.writes[0]))


def other_home(plan):
    """Copies from and to other tiers that take another bucket's tensor, of the same bytes."""
    homes = [tensor.ref for bucket in plan.buckets for tensor in bucket.tensors]
    for p, s in places(plan, lambda step: away(plan, step)):
        step = plan.programs[p].steps[s]
        side = "reads" if plan.arenas[plan.buffers[step.reads[0].buffer].arena].tier else "writes"
        ref = getattr(step, side)[0]
        for home in homes:
            if home.buffer != ref.buffer and plan.buffers[home.buffer].bytes == plan.buffers[ref.buffer].bytes and \
                    plan.buffers[home.buffer].arena == plan.buffers[ref.buffer].arena:
                other = copy(plan)
                getattr(other.programs[p].steps[s], side)[0].buffer = home.buffer
                yield other, f"step {s} '{step.name}' of {plan.programs[p].name} with '{plan.buffers[home.buffer].name}'"
                break


def on_compute(plan):
    for p, s in places(plan, lambda step: away(plan, step)):
        other = copy(plan)
        other.programs[p].steps[s].lane = 0
        yield other, f"step {s} '{plan.programs[p].steps[s].name}' of {plan.programs[p].name} on lane compute"


def smaller_tier(plan):
    for a, arena in enumerate(plan.arenas):
        if arena.tier:
            other = copy(plan)
            other.arenas[a].bytes -= arena.alignment
            yield other, f"arena '{arena.name}'"


def has_some_away(name):
    away = [buffer.name for buffer in plan_file.read(suite.work / name).buffers if buffer.name.endswith(".away")]
    expect(away, "no activation waits in another tier")
    return f"{len(away)} buffers"


suite.gpt("wider.onnx", "--layers", "2", "--hidden", "32", "--heads", "2", "--vocab", "13", "--seq", "32", "--batch", "1")
for stage, homes, accumulate in ((0, ("disk", "host", "host"), 1), (3, ("host", "disk", "disk"), 2), (1, ("disk", "disk", "host"), 1)):
    name = f"offloaded-{stage}.plan"
    suite.zeroc("wider.onnx", name, "--quiet", "--world", 2, "--stage", stage, "--accumulate", accumulate, "--bucket-elements", 9000,
                "--offload-params", homes[0], "--offload-optimizer", homes[1], "--offload-activations", homes[2])
    how = f"stage {stage}, parameters on {homes[0]}, optimizer on {homes[1]}, activations on {homes[2]}"
    suite.check(f"judged: {how}", has_some_away, name)
    suite.check(f"judged: {how}, without a wait", changes, name, waits(drop), "without waiting for")
    suite.check(f"judged: {how}, without a wait for the program before", changes, name, entry_waits(drop), "after @.* without waiting for .* of the program before")
    suite.check(f"judged: {how}, an earlier wait for the program before", changes, name, entry_waits(lower), "after @.* without waiting for .* of the program before")
    suite.check(f"judged: {how}, without a step", changes, name, without_step,
                "dead store|before anything is written|last written through|never updated|never reaches|never returns|not brought up to date|to which it was not fetched|no step writes|is (reduced|gathered for an update) 0 times|not summed|without waiting|without what the other ranks")
    suite.check(f"judged: {how}, another home", changes, name, other_home,
                "something else belongs|is for its update to do|does not hold it|to which it was not fetched|before what|has bytes|to where those of bucket|after their update|but does not bring back|without waiting|never returns|not brought up to date")
    suite.check(f"judged: {how}, on another lane", changes, name, on_compute, "lane|without waiting")
    suite.check(f"judged: {how}, a tier too small", changes, name, smaller_tier, "outside the|needs [0-9]+ bytes of arena")


def writes_last(name):
    """A plan under a budget that writes some of the optimizer's state to disk after all updates (plan-defer-writes)."""
    (suite.work / "machine.json").write_text(json.dumps({"disk_read": 2e9, "disk_write": 2e9, "memory": 1e10, "products_f32": 2e10}))
    flags = ["--quiet", "--world", 2, "--stage", 3, "--clip", "always", "--bucket-elements", 3000]
    suite.zeroc("wider.onnx", name, *flags)
    all_there = json.loads(suite.run([suite.bin / "zero-inspect", name, "--json"]).stdout)["memory"]["total_bytes"]
    suite.zeroc("wider.onnx", name, *flags, "--device-memory", all_there * 6 // 10, "--machine", suite.work / "machine.json")
    plan = plan_file.read(suite.work / name)
    last = places(plan, lambda step: step.lane == UPDATE and step.HasField("copy"))
    expect(last, "nothing is written after all updates")
    return f"{len(last)} copies"


suite.check("judged: written after all updates", writes_last, "last.plan")
for how, change, says in (("without a wait", waits(drop), "without waiting for"),
                          ("without a wait for the program before", entry_waits(drop), "after @.* without waiting for .* of the program before"),
                          ("without a step", without_step, "dead store|before anything is written|last written through|never updated|never reaches|never returns|not brought up to date|to which it was not fetched|no step writes|is (reduced|gathered for an update) 0 times|not summed|without waiting|without what the other ranks"),
                          ("on another lane", on_compute, "lane|without waiting")):
    suite.check(f"judged: written after all updates, {how}", changes, "last.plan", change, says)
suite.check("judged: a loss that no step computes", changes, plans[0], elsewhere, "no step writes the loss")
suite.finish()
