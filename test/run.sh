#!/usr/bin/env bash
# Every test: set-up and build, unit tests, the lit suite, end-to-end tests, and a build of the runtime without LLVM.
# The last line is `N passed, N failed`; the exit status is 0 only if something passed and nothing failed.
#
# usage: test/run.sh [--quick]     --quick leaves out the end-to-end tests and the second build
set -uo pipefail
cd "$(dirname "$0")/.."
quick=no
case "${1:-}" in "") ;; --quick) quick=yes ;; *) echo "run: unknown option '$1'" >&2; exit 2 ;; esac

passed=0 failed=0
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
finish() {
  [ $((passed + failed)) -gt 0 ] || failed=1
  [ ${#failures[@]} -eq 0 ] || { echo; echo "failed:"; printf '  %s\n' "${failures[@]}"; }
  echo "$passed passed, $failed failed"
  [ $failed -eq 0 ]; exit $?
}
failures=()
pass() { passed=$((passed + 1)); }
fail() { failed=$((failed + 1)); failures+=("$1"); }
title() { echo; echo "== $* ($SECONDS s)"; }
# Jobs that use one processor or wait are run two at a time: begins `NAME COMMAND` of each line of standard input, in the background, in order.
begin() {
  xargs -d '\n' -n 1 -P 2 bash -c 'read -r name command <<<"$1"; bash -c "$command" >"$0/$name.log" 2>&1; echo $? >"$0/$name.ends"; mv "$0/$name.ends" "$0/$name.status"' "$logs" <&0 &
  jobs=$!
}
# The exit status of a job that was begun, as soon as there is one; what it said is in $logs/NAME.log.
status_of() {
  while [ ! -e "$logs/$1.status" ] && kill -0 "$jobs" 2>/dev/null; do sleep 0.1; done
  cat "$logs/$1.status" || { echo "it was not run to its end" >>"$logs/$1.log"; echo 1; }
}

title "set-up and build"
if ! bash tools/setup.sh; then fail "tools/setup.sh"; finish; fi
export ZERO_BUILD=$PWD/build ZERO_PYTHON=$PWD/.venv/bin/python

# Every gtest binary says how many of its cases passed and failed; one that says nothing has failed as a whole.
title "unit tests"
tests=$(find build/bin -name '*_test' -executable -printf '%f\n' | sort)
[ -n "$tests" ] || fail "unit tests: none were built"
begin < <(for t in $tests; do echo "$t timeout 300 build/bin/$t --gtest_brief=1"; done)
for t in $tests; do
  status=$(status_of "$t") log=$logs/$t.log
  ok=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' "$log" | tail -1)
  mapfile -t bad < <(sed -n 's/^\[  FAILED  \] \([A-Za-z0-9_/.]*\)\( (.*\)\?$/\1/p' "$log" | sort -u)
  passed=$((passed + ${ok:-0}))
  for b in "${bad[@]}"; do fail "unit $t: $b"; done
  if [ "$status" -ne 0 ] && [ ${#bad[@]} -eq 0 ]; then fail "unit $t: exit $status"; fi
  if [ "$status" -eq 0 ] && [ -z "$ok" ]; then fail "unit $t: ran nothing"; fi
  echo "$t: ${ok:-0} passed, ${#bad[@]} failed"
  sed -n 's/^\[  SKIPPED \] \([0-9]* test.*\)[.,].*$/  skipped: \1/p' "$log"
  [ "$status" -eq 0 ] || tail -n 40 "$log"
done

title "unit tests that are ranks of one run"
for ranks in 2 4; do
  for t in comm_test engine_test seam_test; do
    name="$t on $ranks ranks" log=$logs/$t-$ranks.log
    if OMPI_MCA_mpi_yield_when_idle=1 timeout 300 mpirun -np $ranks --oversubscribe --allow-run-as-root build/bin/$t --gtest_brief=1 >"$log" 2>&1; then
      pass; echo "$name: passed"
    else
      fail "unit $name"; tail -n 40 "$log"
    fi
  done
done

title "lit suite"
log=$logs/lit.log
python3 /usr/lib/llvm-19/build/utils/lit/lit.py -v --no-progress-bar -j2 test >"$log" 2>&1
status=$?
ok=$(sed -n 's/^ *Passed *: *\([0-9]*\).*/\1/p' "$log")
mapfile -t bad < <(grep -E '^(FAIL|UNRESOLVED|TIMEOUT|XPASS): ' "$log" | sed 's/ ([0-9]* of [0-9]*)$//')
passed=$((passed + ${ok:-0}))
for b in "${bad[@]}"; do fail "lit $b"; done
if [ $status -ne 0 ] && [ ${#bad[@]} -eq 0 ]; then fail "lit: exit $status"; fi
[ -n "$ok" ] || { [ ${#bad[@]} -gt 0 ] || fail "lit: no test passed"; }
[ $status -eq 0 ] || grep -vE '^PASS: ' "$log" | head -n 200
echo "lit: ${ok:-0} passed, ${#bad[@]} failed"

if [ $quick = no ]; then
  title "programs to be carried to machines with GPUs, which test/e2e/gpu_ladder.py needs"
  if bash tools/setup.sh --preset portable >"$logs/portable.log" 2>&1; then pass; tail -n 1 "$logs/portable.log"; else
    cat "$logs/portable.log"; fail "the portable programs do not build"
  fi

  # The scripts print `ok …` or `FAILED …` for each check.
  title "end to end, and runs with faults in them: the sample of test/faults/run.py --all and of test/faults/offload.py --moments 100"
  scripts="$(ls test/e2e/*.py | grep -vE '/(harness|ranks|references|make_.*|trained)\.py$') test/faults/run.py test/faults/offload.py"
  job() { sed 's|^test/||; s|/|-|; s|\.py$||' <<<"$1"; }
  begin < <(for script in $scripts; do echo "$(job "$script") timeout 900 .venv/bin/python $script"; done)
  for script in $scripts; do
    status=$(status_of "$(job "$script")") log=$logs/$(job "$script").log
    title "$script"
    cat "$log"
    passed=$((passed + $(grep -c '^ok ' "$log")))
    mapfile -t bad < <(sed -n 's/^FAILED //p' "$log")
    for b in "${bad[@]}"; do fail "$b"; done
    if [ "$status" -ne 0 ] && [ ${#bad[@]} -eq 0 ]; then fail "$script: exit $status"; fi
    grep -qE '^(ok|FAILED) ' "$log" || { [ "$status" -ne 0 ] || fail "$script: ran nothing"; }
  done

  title "the runtime alone, without LLVM"
  if bash tools/setup.sh --preset runtime-only >"$logs/runtime.log" 2>&1; then
    linked=$(ldd build-runtime-only/bin/zerorun | grep -E 'LLVM|MLIR|onnx' || true)
    if [ -n "$linked" ]; then fail "zerorun links the compiler: $linked"; else pass; echo "zerorun builds and links without LLVM"; fi
  else
    cat "$logs/runtime.log"; fail "the runtime does not build without LLVM"
  fi

  # Real files as seeds, then 20000 damaged ones for each reader, or what a minute allows: longer hunts are by hand.
  # A crash leaves its input in build-fuzz/found.
  title "fuzzing the readers of plans, models and data, and the compiler"
  if bash tools/setup.sh --preset fuzz >"$logs/fuzz.log" 2>&1; then
    seeds=build-fuzz/seeds found=build-fuzz/found/
    rm -rf $seeds; mkdir -p $seeds/{plan_fuzz,onnx_fuzz,data_fuzz} $found
    for arch in gpt llama; do
      small=(--arch $arch --layers 1 --hidden 8 --heads 2 --vocab 8 --seq 4 --batch 1)
      .venv/bin/python models/gpt.py "${small[@]}" -o $seeds/onnx_fuzz/$arch.onnx >/dev/null
      .venv/bin/python models/gpt.py "${small[@]}" --dynamic --no-weights -o $seeds/onnx_fuzz/$arch-dynamic.onnx >/dev/null
      { printf '\2'; cat $seeds/onnx_fuzz/$arch.onnx; } >$seeds/data_fuzz/$arch
      # the first byte of a plan seed says what follows: a whole file, as it is or resealed, or its message alone
      if build/bin/zeroc $seeds/onnx_fuzz/$arch.onnx -o $seeds/$arch.plan >/dev/null; then
        for how in '\0' '\2'; do { printf $how; cat $seeds/$arch.plan; } >$seeds/plan_fuzz/$arch${how#?}; done
        { printf '\1'; .venv/bin/python test/plan_file.py $seeds/$arch.plan; } >$seeds/plan_fuzz/$arch-message
      else
        fail "fuzzing: no plan of $arch as a seed"
      fi
    done
    for model in fillers masks rotary_cached sorting router image shared; do
      .venv/bin/python test/compiler/onnx/Inputs/models.py $model $seeds/onnx_fuzz/$model.onnx || fail "fuzzing: no model '$model' as a seed"
    done
    .venv/bin/python -c 'import io, sys, numpy, safetensors.numpy as s; d = {"x": numpy.arange(6).reshape(2, 3)}; z = io.BytesIO(); numpy.savez(z, **d)
for name, byte, data in (("safetensors", b"\0", s.save(d)), ("npz", b"\1", z.getvalue())): open(f"{sys.argv[1]}/{name}", "wb").write(byte + data)' $seeds/data_fuzz || fail "fuzzing: no data as seeds"
    # Damaged models go through the whole compiler, too: an hour by hand is --seconds 3600, with another --seed.
    begin < <(
      echo "compile_fuzz .venv/bin/python test/fuzz/compile_fuzz.py --seconds 60 --seed 1"
      for fuzzer in plan_fuzz onnx_fuzz data_fuzz; do
        echo "$fuzzer build-fuzz/bin/$fuzzer -seed=1 -runs=20000 -max_total_time=60 -mutate_depth=2 -timeout=10 -rss_limit_mb=4096 -max_len=65536 -artifact_prefix=$found $seeds/$fuzzer"
      done
    )
    for fuzzer in compile_fuzz plan_fuzz onnx_fuzz data_fuzz; do
      if [ "$(status_of $fuzzer)" -eq 0 ]; then
        pass; echo "$fuzzer: $(tail -n 1 "$logs/$fuzzer.log")"
      else
        grep -vE '^#[0-9]+' "$logs/$fuzzer.log" | tail -n 40; fail "$fuzzer"
      fi
    done
  else
    cat "$logs/fuzz.log"; fail "the fuzzers do not build"
  fi
fi
finish
