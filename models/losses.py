#!/usr/bin/env python3
"""Print the losses of a metrics file as a short curve; exit 1 if they did not fall.  usage: losses.py METRICS.jsonl"""
import json
import sys


def main():
    if len(sys.argv) != 2:
        raise SystemExit("losses: which file? Usage: losses.py METRICS.jsonl")
    with open(sys.argv[1]) as f:
        rows = [json.loads(line) for line in f]
    shown = sorted({round(k * (len(rows) - 1) / 9) for k in range(10)}) if rows else []
    for row in (rows[k] for k in shown):
        held = f"   held out {row['eval_loss']:.4f}" if "eval_loss" in row else ""
        print(f"step {row['step']:5}   loss {row['loss']:7.4f}   {'#' * round(8 * row['loss'])}{held}")
    if len(rows) < 2 or not rows[-1]["loss"] < rows[0]["loss"]:
        raise SystemExit(f"losses: {sys.argv[1]} shows no falling loss")


if __name__ == "__main__":
    main()
