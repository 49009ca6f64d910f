#!/usr/bin/env python3
"""The bandwidth of the disk lanes: reads, writes and both at once, beside fio with requests of the same size and as many under way.

They take turns, since disks of virtual machines change their speed from minute to minute; each number is the median of the rounds, and
each ratio the median of the ratios of a round. Without fio its columns are left out, with a sentence. Then the same in smaller transfers:
a lane makes one after another, so that little of the disk is asked of at once.

usage: test/bench/disk.py [--path DIR[,DIR]] [--megabytes N] [--seconds S] [--rounds N]
"""
import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
p.add_argument("--bin", default=str(ROOT / "build" / "bin"))
p.add_argument("--path", help="folders, each on a disk of its own (default: a new one in the temporary folder)")
p.add_argument("--megabytes", type=int, default=1024, help="size of what is read and written")
p.add_argument("--seconds", type=float, default=4, help="of each measurement")
p.add_argument("--rounds", type=int, default=3)
args = p.parse_args()

MODES, ENGINES = ("read", "write", "mixed"), ("io_uring", "plain", "threads")
SIZES = (1, 2, 4, 8, 16, 64)
FIO = shutil.which("fio")


def ours(folders, mode, engine, transfer=64):
    result = subprocess.run([args.bin + "/disk_bench", ",".join(folders), mode, engine, str(args.megabytes), str(args.seconds), str(transfer)],
                            capture_output=True, text=True)
    if result.returncode:
        raise SystemExit(result.stderr.strip())
    return float(result.stdout)


def fio(folders, mode):
    """Two jobs for both at once, as there are two lanes; requests as ours, of a megabyte in turns over several disks, of 8 on one. Its files are written whole before, as ours."""
    files = ":".join(f"{folder}/fio.bin" for folder in folders)
    command = [FIO, "--output-format=json", "--ioengine=io_uring", "--direct=1", f"--bs={1 if len(folders) > 1 else 8}m", f"--iodepth={32 * len(folders)}", "--fixedbufs=1",
               "--registerfiles=1", f"--filename={files}", f"--size={args.megabytes}m", "--file_service_type=roundrobin", "--time_based",
               f"--runtime={args.seconds}", "--invalidate=0", "--overwrite=1", "--fallocate=none", "--thread"]
    for job in ("read", "write") if mode == "mixed" else (mode,):
        command += [f"--name={job}", f"--rw={job}"]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        raise SystemExit(result.stderr.strip())
    return sum(job["read"]["bw_bytes"] + job["write"]["bw_bytes"] for job in json.loads(result.stdout)["jobs"])


def show(folders):
    print(f"{args.megabytes} MB in {' and '.join(folders)}, GB/s" + ("" if FIO else "; fio is not installed, so there is nothing beside it"))
    print(f"{'':8}" + "".join(f"{name:>10}" + (f"{'/fio':>7}" if FIO else "") for name in ENGINES) + (f"{'fio':>10}" if FIO else ""))
    for mode in MODES:
        rounds = [({engine: ours(folders, mode, engine) for engine in ENGINES}, fio(folders, mode) if FIO else None) for _ in range(args.rounds)]
        line = f"{mode:8}"
        for engine in ENGINES:
            line += f"{statistics.median(found[engine] for found, _ in rounds) / 1e9:10.2f}"
            if FIO:
                line += f"{statistics.median(found[engine] / beside for found, beside in rounds):7.2f}"
        print(line + (f"{statistics.median(beside for _, beside in rounds) / 1e9:10.2f}" if FIO else ""), flush=True)
    print("io_uring in transfers of MB" + "".join(f"{size:>8}" for size in SIZES))
    for mode in MODES[:2]:
        rounds = [{size: ours(folders, mode, "io_uring", size) for size in SIZES} for _ in range(args.rounds)]
        print(f"{mode:27}" + "".join(f"{statistics.median(found[size] for found in rounds) / 1e9:8.2f}" for size in SIZES), flush=True)


if args.path:
    folders = args.path.split(",")
    try:
        show(folders)
    finally:
        for folder in folders:
            pathlib.Path(folder, "fio.bin").unlink(missing_ok=True)
else:
    with tempfile.TemporaryDirectory(prefix="zero-disk-") as folder:
        show([folder])
