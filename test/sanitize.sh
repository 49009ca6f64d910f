#!/usr/bin/env bash
# The unit tests, the lit suite (asan) and training of two tiny models, on one rank and on two, under a sanitizer. Not part of
# test/run.sh: the first build takes an hour on two cores. The last line is `N passed, N failed`.
#
# usage: test/sanitize.sh asan|tsan     asan: memory and undefined behaviour, compiler and runtime; tsan: threads, the runtime
set -uo pipefail
cd "$(dirname "$0")/.."
kind=${1:-}
case $kind in asan|tsan) ;; *) sed -n '2,5p' "$0" | sed 's/^# \{0,1\}//' >&2; exit 2 ;; esac
bin=build-$kind/bin
bash tools/setup.sh && bash tools/setup.sh --preset $kind || exit 1

# What the system's MPI keeps until the end is not ours, and without instrumentation its threads look like races: leaks are looked for
# in runs of one rank, and what MPI's libraries do among themselves is ignored. LLVM's, not instrumented either, share its allocators with
# our code, which would poison memory that they use.
export ASAN_OPTIONS=strict_string_checks=1:check_initialization_order=1:allow_user_poisoning=0 UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=second_deadlock_stack=1:ignore_noninstrumented_modules=1
passed=0 failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
check() { # name, command…
  local name=$1; shift
  if "$@" >"$work/log" 2>&1; then passed=$((passed + 1)); echo "ok $name"
  else failed=$((failed + 1)); echo "FAILED $name"; tail -n 60 "$work/log"; fi
}

for t in "$bin"/*_test; do
  [ -x "$t" ] || continue
  case $kind-$(basename "$t") in
    tsan-zerorun_test) ;; # its runs of two ranks
    asan-zerorun_test) check zerorun_test env ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0" "$t" --gtest_brief=1 ;;
    *) check "$(basename "$t")" "$t" --gtest_brief=1 ;;
  esac
done
if [ $kind = asan ]; then
  for ranks in 2 4; do
    for t in comm_test engine_test seam_test; do
      check "$t, $ranks ranks" env ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0" \
        mpirun -np $ranks --oversubscribe --allow-run-as-root "$bin/$t" --gtest_brief=1
    done
  done
fi

if [ $kind = asan ]; then
  check "lit suite" env ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0" ZERO_BUILD="$PWD/build-asan" ZERO_PYTHON="$PWD/.venv/bin/python" \
    python3 /usr/lib/llvm-19/build/utils/lit/lit.py -sv test
fi

zeroc=build/bin/zeroc
[ $kind = asan ] && zeroc=$bin/zeroc
train=(--steps 4 --lr 1e-3 --threads 3 --metrics "$work/m.jsonl" --gradients "$work/g.safetensors" --export "$work/w.safetensors"
  --trace "$work/t.json" --eval-every 2 --every 2)
for model in gpt2/dynamo_sdpa_dyn llama/ts17_eager_dyn; do
  name=${model%%/*} data=$work/${model%%/*}.safetensors
  .venv/bin/python - "models/tiny/$name/batches.npz" "$data" <<'PYTHON'
import sys, numpy as np, safetensors.numpy as s
b = np.load(sys.argv[1])
steps = range(len({k.split("/")[0] for k in b.files}))
s.save_file({to: np.concatenate([b[f"{i}/{at}"] for i in steps]) for to, at in (("input_ids", "input_ids"), ("labels", "targets"))}, sys.argv[2])
PYTHON
  for flags in "--stage 0" "--stage 3 --accumulate 3"; do
    # shellcheck disable=SC2086
    check "zeroc $name $flags" $zeroc models/tiny/$model.onnx -o "$work/x.plan" --bind batch=1,seq=64 $flags
    for clip in 0 0.5; do
      rm -rf "$work/c"
      check "zerorun $name $flags, --clip $clip" "$bin/zerorun" "$work/x.plan" --data "$data" --eval-data "$data" "${train[@]}" --clip $clip \
        --checkpoint "$work/c"
      check "zerorun $name $flags, --clip $clip, resumed" "$bin/zerorun" "$work/x.plan" --data "$data" --steps 6 --threads 3 --resume "$work/c"
    done
  done
done
rm -rf "$work/c"
check "zeroc for two ranks" $zeroc models/tiny/gpt2/dynamo_sdpa_dyn.onnx -o "$work/x.plan" --bind batch=1,seq=64 --stage 3 --accumulate 3 --world 2
check "zerorun on two ranks" env ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0" mpirun -np 2 --oversubscribe --allow-run-as-root \
  "$bin/zerorun" "$work/x.plan" --data "$work/gpt2.safetensors" --eval-data "$work/gpt2.safetensors" "${train[@]}" --clip 0.5 --checkpoint "$work/c"
[ $((passed + failed)) -gt 0 ] || failed=1
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
