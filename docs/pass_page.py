#!/usr/bin/env python3
"""Give the page of a phase's passes, as mlir-tblgen writes it, a title and an even layout.  usage: pass_page.py PAGE PHASE"""
import re
import sys

page, phase = sys.argv[1:]
text = open(page).read()
text = re.sub(r"^<!--.*?-->\n", "", text)
text = re.sub(r"(?<=[^\n])### `-", "\n\n### `-", text)  # some passes end without a line break
text = re.sub(r"^### `-", "## `-", text, flags=re.M)
text = re.sub(r"^#### ", "### ", text, flags=re.M)
open(page, "w").write(f"# Passes of the phase `{phase}`\n\nIn alphabetical order; `zeroc --print-pipeline` prints the order they run in.\n\n{text.strip()}\n")
