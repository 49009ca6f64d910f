#!/usr/bin/env bash
# From nothing to a trained model: sets up, trains a small byte-level GPT on the King James Bible for about a minute, and then the same
# on two ranks at ZeRO stage 3.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
bash tools/setup.sh

bin=$root/build/bin python=$root/.venv/bin/python
work=$root/build/demo
mkdir -p "$work"
cd "$work"
step() { echo; echo "== $*"; }
run() { echo "\$ $*" | sed "s#$root/build/bin/##g; s#$python#python#g; s#$root/##g"; "$@"; }

step "Text"
# Debian's bible-kjv where setup.sh could install it, else this project's own pages: less to learn, but text.
if [ ! -s text.txt ]; then
  if command -v bible >/dev/null; then
    bible -f gen1:1-rev22:21 >text.partial
  else
    echo "demo: the program 'bible' (package bible-kjv) is not there; training on this project's own pages instead"
    cat "$root"/README.md "$root"/docs/*.md >text.partial
  fi
  mv text.partial text.txt # whole or not there, should this be stopped
fi
echo "$(wc -c <text.txt) bytes; it begins: $(head -c 70 text.txt | tr '\n' ' ')…"
# the last hundredth is held out
bytes=$(wc -c <text.txt)
head -c $((bytes * 99 / 100)) text.txt >train.txt
tail -c +$((bytes * 99 / 100 + 1)) text.txt >held-out.txt

step "A model: bytes in, bytes out, 4 layers x 256"
run "$python" "$root/models/gpt.py" --layers 4 --hidden 256 --heads 8 --vocab 256 --seq 128 --batch 8 -o gpt.onnx

step "Compile it, and read what it will take"
run "$bin/zeroc" -q gpt.onnx -o plan.bin
run "$bin/zero-inspect" plan.bin

step "Train"
run "$bin/zerorun" plan.bin --data train.txt --eval-data held-out.txt --eval-every 100 --steps 500 --lr 1e-3 --schedule cosine --warmup 20 \
  --metrics metrics.jsonl --export trained.onnx
"$python" "$root/models/losses.py" metrics.jsonl

step "What it says, in onnxruntime, with the trained weights"
run "$python" "$root/models/sample.py" trained.onnx "And God said" 160

step "The same on two ranks, parameters, gradients and optimizer state in two halves (stage 3)"
run "$python" "$root/models/gpt.py" --layers 4 --hidden 256 --heads 8 --vocab 256 --seq 128 --batch 4 -o gpt-half.onnx
run "$bin/zeroc" -q gpt-half.onnx -o plan2.bin --world 2 --stage 3
run "$bin/zero-inspect" plan2.bin
run mpirun --oversubscribe --allow-run-as-root -np 2 "$bin/zerorun" plan2.bin --data train.txt --steps 100 --lr 1e-3 --schedule cosine --warmup 20 \
  --threads 1 --metrics metrics2.jsonl
"$python" "$root/models/losses.py" metrics2.jsonl

step "Done: ${work#"$root/"}/trained.onnx is the model with its trained weights"
