#!/usr/bin/env python3
"""zeroc --report: a page that stands alone and is well formed, with the tables of zero-inspect and drawings; or its numbers."""
import html.parser
import json

import onnx

from harness import Suite, expect

suite = Suite(__doc__)
VOID = {"meta", "rect", "line", "polygon"}  # written without an end, or closed in their tag
LOADS = {"src", "href", "srcset", "data", "action", "background", "onload", "onclick"}


class Page(html.parser.HTMLParser):
    """Tags that are opened and not closed, and what is counted."""

    def __init__(self, text):
        super().__init__()
        self.open, self.count, self.text, self.spans = [], {}, "", []
        self.feed(text)
        expect(not self.open, f"{self.open} are not closed")

    def handle_starttag(self, tag, attributes):
        self.count[tag] = self.count.get(tag, 0) + 1
        expect(tag not in ("script", "link", "img", "iframe") and not LOADS & {name for name, _ in attributes}, f"<{tag}> {attributes} loads or runs something")
        if tag == "rect":
            values = dict(attributes)
            self.spans.append((float(values["x"]), float(values["x"]) + float(values["width"])))
        if tag not in VOID or tag == "rect":
            self.open.append(tag)

    handle_startendtag = handle_starttag

    def handle_endtag(self, tag):
        expect(self.open and self.open[-1] == tag, f"</{tag}> where {self.open[-3:]} are open")
        self.open.pop()

    def handle_data(self, data):
        self.text += data


def inspect(plan, *flags):
    return suite.run([suite.bin / "zero-inspect", plan, *flags]).stdout


def page(*flags):
    """All of the text pages stand in it, each lane has bars within the drawing, and each program that runs a drawing of its memory."""
    suite.zeroc("model.onnx", "x.plan", "--report", "x.html", "-q", *flags)
    text = (suite.work / "x.html").read_text()
    found = Page(text)
    for flag in ("--peak", "--why", "--time"):
        wanted = inspect("x.plan", flag)
        wanted = wanted[: wanted.index("on this machine")] if flag == "--time" else wanted
        expect(wanted.strip() in found.text, f"{flag} is not on the page")
    numbers = json.loads(inspect("x.plan", "--json"))
    expect(all(lane in found.text for lane in numbers["lanes"]), f"not all of {list(numbers['lanes'])}")
    expect(len(found.spans) > 20 and all(109 < begin < end < 1211 for begin, end in found.spans), f"bars {found.spans[:3]} … of {len(found.spans)}")
    expect(max(end for _, end in found.spans) > 1200, "the last bar does not reach the end")
    return f"{found.count['rect']} bars, {found.count['polygon']} areas, {len(text)} bytes"


def strange_names():
    """Names of a model are text on the page, whatever they hold."""
    model = onnx.load(suite.work / "model.onnx")
    strange = lambda name: name.replace("transformer.h.", '<script src="x">&amp;.h.')
    for tensor in model.graph.initializer:
        tensor.name = strange(tensor.name)
    for node in model.graph.node:
        node.input[:] = [strange(name) for name in node.input]
        node.output[:] = [strange(name) for name in node.output]
    onnx.save(model, suite.work / "strange.onnx")
    suite.zeroc("strange.onnx", "strange.plan", "--report", "strange.html", "-q")
    expect('<script src="x">&amp;.h.0' in Page((suite.work / "strange.html").read_text()).text, "names of layers are not on the page")


def numbers():
    suite.zeroc("model.onnx", "x.plan", "--report", "x.json", "-q", "--stage", "3", "--world", "2")
    expect(json.loads((suite.work / "x.json").read_text()) == json.loads(inspect("x.plan", "--json", "--schedule")), "not what zero-inspect says")


def refused():
    before = (suite.work / "model.onnx").read_bytes()
    for path, word in (("x.txt", ".html"), ("no/x.html", "no"), ("x.plan", ".html")):
        result = suite.run([suite.bin / "zeroc", "model.onnx", "-o", "y.plan", "--report", path], check=False)
        expect(result.returncode == 1 and "--report" in result.stderr and word in result.stderr and len(result.stderr.splitlines()) == 1, result.stderr)
        expect(not (suite.work / "y.plan").exists(), "a plan was written all the same")
    expect((suite.work / "model.onnx").read_bytes() == before, "the model has changed")


suite.start()
suite.gpt("model.onnx", "--layers", "2", "--hidden", "64", "--heads", "4", "--vocab", "96", "--seq", "16", "--batch", "2")
suite.check("report: a page", page)
suite.check("report: a page of several ranks, micro-steps and tiers", page, "--world", "2", "--stage", "3", "--accumulate", "5", "--offload-optimizer", "disk",
            "--offload-activations", "host", "--clip", "always")
suite.check("report: a page of strange names", strange_names)
suite.check("report: numbers", numbers)
suite.check("report: wrong uses", refused)
suite.finish()
