"""timeline.py TRACE TIME: no lane does two things at once, and the two in the middle of four estimated steps take what --time says."""
import collections
import json
import re
import sys

events = [e for e in json.load(open(sys.argv[1])) if e["ph"] == "X"]
lanes = collections.defaultdict(list)
for event in events:
    lanes[event["tid"]].append((event["ts"], event["ts"] + event["dur"], event["name"]))
for lane, spans in lanes.items():
    assert all(a[1] <= b[0] + 2e-3 for a, b in zip(spans, spans[1:])), f"lane {lane} overlaps"  # thousandths of a microsecond are rounded
    assert len(spans) % 4 == 0, f"lane {lane} has {len(spans)} steps in four runs"
ends = [max(spans[len(spans) // 4 * run - 1][1] for spans in lanes.values()) for run in (1, 3)]  # of all lanes
seconds = float(re.search(r"from step to step +([0-9.]+)", open(sys.argv[2]).read())[1])
found = (ends[1] - ends[0]) / 2e6
assert abs(found - seconds) < 1e-3 * seconds + 1e-6, f"{found} s a step in the trace, {seconds} by --time"
