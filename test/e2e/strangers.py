#!/usr/bin/env python3
"""Strangers at every port of a run over TCP: scans, floods, noise, greetings that are cut, replayed or of somebody who guesses the secret.

They come from before the second rank is started until the last step; the run trains to the bits of one that nobody disturbs. `--seconds N`
goes on for longer."""
import os
import socket
import struct
import threading
import time

import numpy as np
from safetensors.numpy import load_file, save_file

from harness import Suite, expect
from ranks import Ranks, free_port, sentences, world

suite = Suite(__doc__)
suite.parser.add_argument("--seconds", type=float, default=2, help="how long strangers come before the second rank does [2]")

SECRET = "5f1b0c9a7d3e48d2a6c4e0b19f8d7c36"
MAGIC = b"zerorun\n"
KINDS = {"hello": 1, "challenge": 2, "join": 3, "link": 4, "welcome": 5, "table": 6, "refusal": 7, "denied": 8}


def frame(kind, body, version=3, size=None):
    return MAGIC + struct.pack("<IIII", version, KINDS.get(kind, 77), len(body) if size is None else size, 0) + body


def hello(purpose, rank=1, ranks=2, callee=0, mesh=0):
    return frame("hello", struct.pack("<IIIIII", KINDS[purpose], rank, ranks, callee, mesh, 0) + os.urandom(32))


def listening(pids):
    """The ports at which these processes listen, of the kernel's tables."""
    inodes = set()
    for pid in pids:
        try:
            for fd in os.listdir(f"/proc/{pid}/fd"):
                link = os.readlink(f"/proc/{pid}/fd/{fd}")
                if link.startswith("socket:["):
                    inodes.add(link[8:-1])
        except OSError:
            continue
    ports = set()
    for table in "/proc/net/tcp", "/proc/net/tcp6":
        try:
            rows = open(table).read().splitlines()[1:]
        except OSError:
            continue
        for row in map(str.split, rows):
            if row[3] == "0A" and row[9] in inodes:
                ports.add(int(row[1].rsplit(":", 1)[1], 16))
    return ports


class Recorder(threading.Thread):
    """Stands between a rank and rank 0, passes everything on and keeps what the rank has said, to say it again."""

    def __init__(self, target):
        super().__init__(daemon=True)
        self.door, self.target, self.heard = socket.create_server(("127.0.0.1", 0)), target, []
        self.port = self.door.getsockname()[1]

    def run(self):
        while True:
            caller, _ = self.door.accept()
            try:
                callee = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                caller.close()
                continue
            self.heard.append(bytearray())
            for source, sink, log in (caller, callee, self.heard[-1]), (callee, caller, bytearray()):
                threading.Thread(target=self.pump, args=(source, sink, log), daemon=True).start()

    @staticmethod
    def pump(source, sink, log):
        try:
            while data := source.recv(65536):
                log += data
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass


class Strangers:
    """Threads that call all ports of some processes, each in its own way."""

    def __init__(self, pids, recorder):
        self.pids, self.recorder = pids, recorder
        self.calls, self.ports, self.ends = {}, set(), threading.Event()
        ways = [self.scan, self.hold, self.noise, self.cut, self.guess, self.huge, self.replay]
        self.threads = [threading.Thread(target=self.come, args=(way,)) for way in [self.look, *ways]]
        for thread in self.threads:
            thread.start()

    def look(self, *_):
        self.ports = listening(self.pids)
        time.sleep(0.01)

    def come(self, way):
        while not self.ends.is_set():
            if way == self.look:
                way()
                continue
            for port in list(self.ports):
                try:
                    with socket.create_connection(("127.0.0.1", port), timeout=1) as call:
                        call.settimeout(0.2)
                        self.calls[way.__name__] = self.calls.get(way.__name__, 0) + 1
                        way(call)
                except OSError:
                    pass
            time.sleep(0.002)

    def scan(self, call):
        """Connects and hangs up, or sends a reset."""
        if self.calls["scan"] % 2:
            call.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def hold(self, call):
        """Says nothing and stays: more of them than are let wait."""
        held = self.__dict__.setdefault("held", [])
        for _ in range(40):
            held.append(socket.create_connection(call.getpeername(), timeout=1))
        while len(held) > 800:
            held.pop(0).close()

    def noise(self, call):
        for _ in range(20):
            call.sendall(os.urandom(65536))

    def cut(self, call):
        whole = hello(["join", "link"][self.calls["cut"] % 2])
        call.sendall(whole[: self.calls["cut"] % len(whole)])
        call.recv(100)

    def guess(self, call):
        purpose = ["join", "link"][self.calls["guess"] % 2]
        call.sendall(hello(purpose))
        call.recv(56)
        call.sendall(frame(purpose, (b"" if purpose == "link" else bytes(128)) + os.urandom(32)))
        call.recv(100)

    def huge(self, call):
        call.sendall([frame("hello", b"", size=0xFFFFFFFF), frame("hello", b"", version=99), frame("table", bytes(56)), frame("?", b"")][self.calls["huge"] % 4])
        call.recv(100)

    def replay(self, call):
        for said in list(self.recorder.heard):
            call.sendall(said[:80])
            call.recv(56)
            call.sendall(said[80:])
            call.recv(100)

    def end(self):
        self.ends.set()
        for thread in self.threads:
            thread.join()
        for each in self.__dict__.get("held", []):
            each.close()


def prepare():
    suite.gpt("model.onnx", "--layers", "2", "--hidden", "24", "--heads", "3", "--vocab", "37", "--seq", "8")
    tokens = np.random.default_rng(0).integers(0, 37, (40, 9))
    save_file({"input_ids": np.ascontiguousarray(tokens[:, :8]), "labels": np.ascontiguousarray(tokens[:, 1:])}, suite.work / "data.safetensors")
    suite.zeroc("model.onnx", "plan", "-q", "--world", 2, "--stage", 3)


def command(name):
    return [suite.bin / "zerorun", suite.work / "plan", "--data", suite.work / "data.safetensors", "--steps", 500, "--threads", 1,
            "--metrics", f"{name}.jsonl", "--export", suite.work / f"{name}.safetensors"]


def variables(**more):
    return [{**own, "ZERORUN_SECRET": SECRET, **more} for own in world(2)]


def undisturbed():
    with Ranks(suite, variables(), command("alone")) as run:
        statuses, said = run.end(60)
    expect(statuses == [0, 0], f"exit {statuses}: {sentences(said)}")


def disturbed(seconds):
    undisturbed()
    port = free_port()
    recorder = Recorder(port)
    recorder.start()
    first, second = variables()
    second["MASTER_PORT"] = recorder.port
    with Ranks(suite, [first], command("disturbed"), port=port) as run:
        strangers = Strangers([run.processes[0].pid], recorder)
        try:
            time.sleep(seconds)
            expect(strangers.ports, "no port was found")
            run.start(1, second, command("disturbed"))
            strangers.pids.append(run.processes[1].pid)
            run.await_step(3, "disturbed.jsonl")
            open_ports = listening(strangers.pids)
            expect(not open_ports, f"ports {sorted(open_ports)} are open while the run trains")
            statuses, said = run.end(90)
        finally:
            strangers.end()
    expect(statuses == [0, 0], f"exit {statuses}: {sentences(said)}")
    one, two = load_file(suite.work / "alone.safetensors"), load_file(suite.work / "disturbed.safetensors")
    different = [name for name in one if one[name].tobytes() != two[name].tobytes()]
    expect(set(one) == set(two) and not different, f"{len(different)} of {len(one)} parameters differ")
    lines = sentences(said)
    expect(0 < len(lines) <= 30 and all("sent off a process at " in line for line in lines), f"said: {lines}")
    expect(SECRET not in "".join(said), "the secret was printed")
    expect(len(strangers.calls) >= 6, f"calls: {strangers.calls}")
    return ", ".join(f"{count} {way}" for way, count in sorted(strangers.calls.items()))


def replayed():
    """What a rank of one run has said opens no door of another one with the same secret."""
    port = free_port()
    recorder = Recorder(port)
    recorder.start()
    first, second = variables()
    second["MASTER_PORT"] = recorder.port
    with Ranks(suite, [first, second], command("recorded"), port=port) as run:
        statuses, said = run.end(60)
    expect(statuses == [0, 0] and recorder.heard, f"exit {statuses}: {sentences(said)}")
    with Ranks(suite, [{**first, "ZERORUN_START_TIMEOUT": 3}], command("recorded")) as run:
        until = time.time() + 5
        while not listening([run.processes[0].pid]) and time.time() < until:
            time.sleep(0.01)
        with socket.create_connection(("127.0.0.1", run.port), timeout=2) as call:
            said = bytes(recorder.heard[0])
            call.sendall(said[:80])
            challenge = call.recv(56)
            call.sendall(said[80:])
            answer = call.recv(100)
        expect(len(challenge) == 56 and answer == frame("denied", b""), f"answers: {challenge!r}, {answer!r}")
        statuses, said = run.end(10)
    expect("does not know the secret of this run" in said[0] and "for rank 1 of 2" in said[0], f"said: {said}")


args = suite.start()
prepare()
suite.check("strangers: a run goes on, bitwise", disturbed, args.seconds)
suite.check("strangers: a recorded greeting", replayed)
suite.finish()
