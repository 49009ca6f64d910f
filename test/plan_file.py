#!/usr/bin/env python3
"""Reads and writes plan.bin in Python: message classes made from plan.proto by protoc, the container as runtime/plan/container.h describes it.

usage: plan_file.py PLAN                writes the bytes of the plan message to stdout
       plan_file.py TEXT.textproto OUT  makes a plan without kernels and constants of a message in protobuf's text form
"""
import pathlib
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


def message(path):
    data = pathlib.Path(path).read_bytes()
    if data[:8] != b"ZEROPLAN":
        raise ValueError(f"{path} is not a plan")
    for i in range(struct.unpack_from("<I", data, 12)[0]):
        kind, _, offset, size, _ = struct.unpack_from("<IIQQQ", data, 16 + 32 * i)
        if kind == 1:
            return data[offset:offset + size]
    raise ValueError(f"{path} has no plan segment")


def read(path):
    return plan_class().FromString(message(path))


def make(path, plan):
    """The container with the message alone; the segments of kernels and constants are empty."""
    page, body = 4096, plan.SerializeToString()
    end = (page + len(body) + page - 1) // page * page
    segments = [(1, body, page), (2, b"", end), (3, b"", end)]
    data = b"ZEROPLAN" + struct.pack("<II", plan.format, len(segments))
    for kind, content, offset in segments:
        data += struct.pack("<IIQQQ", kind, zlib.crc32(content), offset, len(content), 0)
    pathlib.Path(path).write_bytes(data.ljust(page, b"\0") + body.ljust(end - page, b"\0"))


def write(path, original, plan):
    """The file `original` with another plan message: its segment is appended and the table points there."""
    data, body = bytearray(pathlib.Path(original).read_bytes()), plan.SerializeToString()
    for i in range(struct.unpack_from("<I", data, 12)[0]):
        at = 16 + 32 * i
        if struct.unpack_from("<I", data, at)[0] == 1:
            data.extend(b"\0" * (-len(data) % 4096))
            struct.pack_into("<IIQQ", data, at, 1, zlib.crc32(body), len(data), len(body))
            data.extend(body)
            pathlib.Path(path).write_bytes(data)
            return
    raise ValueError(f"{original} has no plan segment")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        make(sys.argv[2], text_format.Parse(pathlib.Path(sys.argv[1]).read_text(), plan_class()()))
    else:
        sys.stdout.buffer.write(message(sys.argv[1]))
