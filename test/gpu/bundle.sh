#!/usr/bin/env bash
# Makes beforehand, on a machine without a GPU, all that test/gpu/run.sh wants on one: programs that start on any x86-64 Linux with a glibc no
# older than this machine's, plans for cuda of every model of models/tiny with their data and PyTorch's losses and gradients, kernels in
# their form for processors, plans of GPT-2 for benchmarks, and the list of rungs. 48 MiB at most (docs/gpu.md).
#
# usage: test/gpu/bundle.sh BUNDLE [--peer FILE.py] [--stand-ins]
#   BUNDLE       a folder that is not there yet
#   --peer       the program that trains GPT-2 with PyTorch; its last line is a JSON object with "tokens_per_s"
#   --stand-ins  a small bundle for the stand-ins of test/gpu/fake: one model, with its kernels in the double of a GPU
set -euo pipefail
cd "$(dirname "$0")/../.." && root=$PWD
case "${1:-}" in '' | -*) sed -n '6,9p' "$root/test/gpu/bundle.sh" | sed 's/^# \{0,1\}//' >&2; exit 2 ;; esac
[ -f build/build.ninja ] || cmake --preset release >/dev/null
[ -f build-portable/build.ninja ] || cmake --preset portable >/dev/null
ninja -C build zeroc zero-inspect gpu-reference gpu-double >/dev/null
ninja -C build-portable zerorun gpu-check >/dev/null
exec "${ZERO_PYTHON:-.venv/bin/python}" test/gpu/bundle.py "$@"
