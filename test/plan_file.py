#!/usr/bin/env python3
"""Reads and writes plan.bin in Python: message classes made from plan.proto by protoc, the container as runtime/plan/container.h describes it.

usage: plan_file.py PLAN                writes the bytes of the plan message to stdout
       plan_file.py TEXT.textproto OUT  makes a plan without kernels and constants of a message in protobuf's text form
"""
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import zlib

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

ROOT = pathlib.Path(__file__).resolve().parents[1]


def plan_class():
    with tempfile.NamedTemporaryFile() as out:
        subprocess.run(["protoc", f"--proto_path={ROOT}", f"--descriptor_set_out={out.name}", "runtime/plan/plan.proto"], check=True)
        files = descriptor_pb2.FileDescriptorSet.FromString(pathlib.Path(out.name).read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("zero.plan.Plan"))


PAGE = 4096
FORMAT = int(re.search(r"kFormat = (\d+)", (ROOT / "runtime/plan/container.h").read_text())[1])


def segments(path):
    """(kind, bytes) of each, in the order of the file."""
    data = pathlib.Path(path).read_bytes()
    if data[:8] != b"ZEROPLAN":
        raise ValueError(f"{path} is not a plan")
    table = [struct.unpack_from("<IIQQQ", data, 16 + 32 * i) for i in range(struct.unpack_from("<I", data, 12)[0])]
    return [(kind, data[offset:offset + size]) for kind, _, offset, size, _ in table]


def compose(parts):
    """The file of these segments, without a signature."""
    head, body = b"ZEROPLAN" + struct.pack("<II", FORMAT, len(parts)), b""
    for kind, content in parts:
        head += struct.pack("<IIQQQ", kind, zlib.crc32(content), PAGE + len(body), len(content), 0)
        body += content + b"\0" * (-len(content) % PAGE)
    return (head + struct.pack("<I", zlib.crc32(head))).ljust(PAGE, b"\0") + body


def message(path):
    for kind, content in segments(path):
        if kind == 1:
            return content
    raise ValueError(f"{path} has no plan segment")


def read(path):
    return plan_class().FromString(message(path))


def make(path, plan):
    """The container with the message alone; the segments of kernels and constants are empty."""
    pathlib.Path(path).write_bytes(compose([(1, plan.SerializeToString()), (2, b""), (3, b"")]))


def write(path, original, plan=None, kernels=None):
    """The file `original` with another plan message or other kernels, and without its signature."""
    other = {1: None if plan is None else plan.SerializeToString(), 2: kernels}
    parts = [(kind, content if other.get(kind) is None else other[kind]) for kind, content in segments(original)]
    pathlib.Path(path).write_bytes(compose(parts))


if __name__ == "__main__":
    if len(sys.argv) == 3:
        make(sys.argv[2], text_format.Parse(pathlib.Path(sys.argv[1]).read_text(), plan_class()()))
    else:
        sys.stdout.buffer.write(message(sys.argv[1]))
