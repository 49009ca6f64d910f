#!/usr/bin/env python3
"""The tutorial's "your own" model, exported as docs/tutorial.md prints it and compiled with the command that follows there. Needs torch, so it runs by hand."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
page = (ROOT / "docs" / "tutorial.md").read_text()
block = re.search(r"```python\n(.*?torch\.onnx\.export.*?)```", page, re.S).group(1)
command = re.search(r"^zeroc model\.onnx .*$", page, re.M).group(0).split()
with tempfile.TemporaryDirectory() as work:
    subprocess.run([sys.executable, "-c", block], cwd=work, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    done = subprocess.run(command, cwd=work, env=dict(os.environ, PATH=f"{ROOT}/build/bin:{os.environ['PATH']}"), capture_output=True, text=True)
print(done.stdout[-600:] if done.returncode == 0 else done.stderr)
print("ok the tutorial's own model" if done.returncode == 0 else "FAILED the tutorial's own model")
sys.exit(done.returncode)
