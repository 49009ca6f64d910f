#!/usr/bin/env bash
# What a machine with NVIDIA GPUs makes of a bundle of test/gpu/bundle.sh, rung by rung, in one report (docs/gpu.md). It wants bash and coreutils,
# no network, no compiler, nothing of ours installed; python3 with PyTorch for the comparison with PyTorch alone. It takes ZERO_GPU_SECONDS (480)
# at most, goes on after failures, and says of everything that was not run why. The last line is `N passed, N failed, N not run`; the exit
# status is 0 only if something passed and nothing failed. Rungs that say what is right, and not how fast, are gone up side by side, ZERO_GPU_JOBS
# (the processors, 12 at most) at a time. ZERO_GPU_RUNGS ("whole machine beyond") names the kinds of rungs to go up, of those
# in the bundle's list; without it all.
#
# usage: test/gpu/run.sh BUNDLE [REPORT.md]     the report is gpu-report.md in the working folder unless named
set -uo pipefail
[ $# -ge 1 ] && [ $# -le 2 ] || { echo "run: usage: run.sh BUNDLE [REPORT.md]" >&2; exit 2; }
bundle=$(cd "$1" 2>/dev/null && pwd) || { echo "run: there is no folder '$1'; make one with test/gpu/bundle.sh" >&2; exit 2; }
[ -f "$bundle/rungs" ] || { echo "run: '$1' is not a bundle: it has no list of rungs; make one with test/gpu/bundle.sh" >&2; exit 2; }
report=${2:-gpu-report.md}
: >"$report" || { echo "run: cannot write '$report'" >&2; exit 2; }

seconds=${ZERO_GPU_SECONDS:-480} # in all
processors=$(nproc)
side=${ZERO_GPU_JOBS:-$((processors < 12 ? processors : 12))} # rungs at a time
work=$(mktemp -d -p "$(cd "${TMPDIR:-$(dirname "$report")}" && pwd)") # not /tmp, which may be memory: it is the disk of some rungs
trap 'rm -rf "$work"' EXIT
# Code that the driver has compiled serves the next run, and nothing of it stays.
export CUDA_CACHE_PATH=$work/cuda-cache CUDA_CACHE_MAXSIZE=4294967296 ZERORUN_CACHE=$work/cache
passed=0 failed=0 deadline=0 note=''
failures=() missing=()

# ------------------------------------------------------------------------------------------ the report
say() { printf '%s\n' "$*" | tee -a "$report"; }
body() { # what a command found, but for its last line
  local text
  text=$(head -n -1 "$work/body")
  [ -z "$text" ] || printf '\n%s\n\n' "$text" >>"$report"
}
tail_of_log() { [ ! -s "$work/log" ] || { echo '```'; tail -n 12 "$work/log"; echo '```'; } >>"$report"; }
not_run() { missing+=("$1: $2"); say "- not run: $1: $2"; }

# rung NAME SECONDS FUNCTION ARGUMENT…: one line of the report, and what its command found. A function yields 0, 3 for what this machine cannot
# run, or another status for a failure; `note` is its result in a few words.
rung() {
  local name=$1 limit=$2 begin=$SECONDS left=$((seconds - SECONDS)) status
  shift 2
  if [ $left -lt 2 ]; then not_run "$name" "its turn came after $seconds seconds"; return; fi
  [ "$limit" -lt $left ] || limit=$left
  deadline=$((SECONDS + limit)) note=''
  : >"$work/body"; : >"$work/log"
  "$@"; status=$?
  case $status in
    0) passed=$((passed + 1)); say "- ok: $name ($((SECONDS - begin)) s): $note"; body ;;
    3) not_run "$name" "$note"; body ;;
    *)
      case $status in 124 | 137) note="it still ran after $limit s" ;; esac
      failed=$((failed + 1)); failures+=("$name: $note")
      say "- FAILED: $name ($((SECONDS - begin)) s): $note"; body; tail_of_log ;;
  esac
}

# beside NAME SECONDS FUNCTION ARGUMENT…: a rung in a shell and a folder of its own, next to others of its like. What became of it is told by
# `gather`, in the order in which they began.
begun=() shells=0
beside() {
  local of=$work/beside-$((shells += 1))
  while [ "$(jobs -rp | wc -l)" -ge "$side" ]; do wait -n; done
  mkdir -p "$of"
  (
    report=$of/report work=$of log=$of/log passed=0 failed=0 failures=() missing=()
    rung "$@" >/dev/null
    {
      echo "passed=\$((passed + $passed)) failed=\$((failed + $failed))"
      for each in ${failures[@]+"${failures[@]}"}; do printf 'failures+=(%q)\n' "$each"; done
      for each in ${missing[@]+"${missing[@]}"}; do printf 'missing+=(%q)\n' "$each"; done
    } >"$of/result"
  ) </dev/null &
  begun+=("$of")
}
gather() {
  local of
  wait
  for of in ${begun[@]+"${begun[@]}"}; do
    if [ -f "$of/result" ]; then
      cat "$of/report" >>"$report"
      grep '^- ' "$of/report"
      . "$of/result"
    else
      failed=$((failed + 1)); failures+=("$of: its shell ended early")
      say "- FAILED: $of: its shell ended early"
    fi
  done
  begun=()
}

# ------------------------------------------------------------------------------------------ commands of a rung
# within COMMAND…: until the rung's time is over.
within() {
  local left=$((deadline - SECONDS))
  [ $left -gt 0 ] || return 124
  timeout -k 5 $left "$@"
}
# The last line that says something.
last_line() {
  local line
  note='it said nothing'
  while IFS= read -r line; do [ -z "$line" ] || note=$line; done <"$1"
}
check() { # COMMAND ARGUMENT… of gpu-check
  local status
  within "$bundle/bin/gpu-check" "$@" >"$work/body" 2>&1; status=$?
  last_line "$work/body"
  return $status
}
# train RUN FOLDER PLAN STEPS [FLAG…]: one rank. The run leaves RUN.jsonl, RUN.safetensors and RUN.gradients.safetensors in the work folder.
train() {
  local run=$1 folder=$2 plan=$3 steps=$4 status flags
  shift 4
  read -ra flags <"$bundle/$folder/flags"
  case $plan in *disk*) flags+=(--disk-path "$work/disk") ;; esac
  ZERO_FAKE_KERNELS=$bundle/$folder/$plan.double.so within ${under[@]+"${under[@]}"} "$bundle/bin/zerorun" "${plans:-$bundle/$folder}/$plan.plan" \
    --steps "$steps" "${flags[@]/#data./$bundle/$folder/data.}" --metrics "$work/$run.jsonl" "$@" >"$log" 2>&1; status=$?
  last_line "$log"
  case $status in 0 | 124 | 137) return $status ;; *) return 1 ;; esac
}
results() { echo --export "$work/$1.safetensors" --gradients "$work/$1.gradients.safetensors"; }
under=() # a command line that zerorun is run by
plans='' # a folder with a copy of the plan, where that is to be taken

# ------------------------------------------------------------------------------------------ rungs
whole() {
  (cd "$bundle" && within sha256sum --check --quiet --strict sums) >"$work/log" 2>&1 || { IFS= read -r note <"$work/log"; return 1; }
  note="$(wc -l <"$bundle/sums") files are as they were made"
}
kernels() { ZERO_FAKE_KERNELS=$bundle/$1/$2.double.so check kernels "$bundle/$1/$2.plan" "$bundle/$1/$2" "${@:3}"; }
products() {
  local plans=() plan
  for plan in "$@"; do plans+=("$bundle/$plan.plan"); done
  check products "${plans[@]}" --square "$square" --limits "$work/limits"
}
training() { # FOLDER PLAN PRECISION STEPS
  local run=$1-$2
  train "$run" "$1" "$2" "$4" $(results "$run") || return
  check training "$bundle/$1" "$3" "$work/$run"
}
# Each plan gives the bits of the first, which another rung has run.
equal() { # FOLDER STEPS BASE PLAN…
  local folder=$1 steps=$2 runs=("$work/$1-$3") plan
  [ -f "${runs[0]}.safetensors" ] || train "$folder-$3" "$folder" "$3" "$steps" $(results "$folder-$3") || return
  for plan in "${@:4}"; do
    train "$folder-$plan" "$folder" "$plan" "$steps" $(results "$folder-$plan") || { note="$plan: $note"; return 1; }
    runs+=("$work/$folder-$plan")
  done
  check equal "${runs[@]}"
}
# Steps launched one by one give the bits of CUDA graphs.
graphs() { # FOLDER PLAN STEPS
  local run=$1-$2 line known=no
  within "$bundle/bin/zerorun" --help >"$work/help" 2>&1 || { note='zerorun does not start'; return 1; }
  while IFS= read -r line; do case $line in *--no-graphs*) known=yes ;; esac done <"$work/help"
  [ $known = yes ] || { note='this zerorun makes no graphs'; return 3; }
  [ -f "$work/$run.safetensors" ] || train "$run" "$1" "$2" "$3" $(results "$run") || return
  train "$run-no-graphs" "$1" "$2" "$3" --no-graphs $(results "$run-no-graphs") || return
  check equal "$work/$run" "$work/$run-no-graphs"
}
# train_ranks WORLD …: train on so many ranks of this machine, on the GPUs that it has.
train_ranks() {
  local rank pids=() status=0 each
  export WORLD_SIZE=$1 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 20000)) NCCL_DEBUG=WARN
  shift
  for ((rank = 0; rank < WORLD_SIZE; ++rank)); do
    (export RANK=$rank; log=$work/log.$rank train "$@") &
    pids+=($!)
  done
  for each in "${pids[@]}"; do wait "$each" || status=$?; done
  for ((rank = WORLD_SIZE - 1; rank >= 0; --rank)); do cat "$work/log.$rank"; done >"$work/log"
  unset WORLD_SIZE MASTER_ADDR MASTER_PORT NCCL_DEBUG
  last_line "$work/log"
  [ $status -eq 0 ] || while IFS= read -r each; do
    case $each in *"Duplicate GPU detected"*) note="NCCL takes no two ranks on one GPU: $each"; status=3 ;; esac
  done <"$work/log"
  return $status
}
# Every plan for so many ranks gives the bits of the first, and that PyTorch's losses and gradients. More than two want a GPU each.
ranks() { # WORLD FOLDER PRECISION STEPS PLAN…
  local world=$1 folder=$2 precision=$3 steps=$4 runs=() plan status
  [ "$world" -le 2 ] || check room --gpus "$world" || return
  for plan in "${@:5}"; do
    train_ranks "$world" "$folder-$plan" "$folder" "$plan" "$steps" $(results "$folder-$plan"); status=$?
    [ $status -eq 0 ] || { [ $status -eq 3 ] || note="$plan: $note"; return $status; }
    runs+=("$work/$folder-$plan")
  done
  check equal "${runs[@]}" || return
  local first=$note
  check training "$bundle/$folder" "$precision" "${runs[0]}" || return
  note="$first; $note"
}
sanitizer() { # FOLDER PLAN STEPS
  local tool status
  tool=$(command -v compute-sanitizer) || tool=/usr/local/cuda/bin/compute-sanitizer
  [ -x "$tool" ] || { note='compute-sanitizer is not installed'; return 3; }
  under=("$tool" --tool memcheck --error-exitcode 9)
  train sanitizer "$1" "$2" "$3"; status=$?
  under=()
  return $status
}
benchmark() { # FOLDER PLAN STEPS FLOPS_PER_TOKEN
  local run=$1-$2
  under=("$bundle/bin/gpu-check" watch "$work/$run.memory")
  train "$run" "$1" "$2" "$3" --trace "$work/$run.trace.json"; local status=$?
  under=()
  [ $status -eq 0 ] || return $status
  check speed "$work/$run" --flops-per-token "$4" --peak "$peak" --limits "$work/limits" || return
  [[ ! $note =~ ^([0-9]+)\ tokens ]] || reached[$1]=${BASH_REMATCH[1]}
}
# The benchmark again, with the algorithms that are fastest here: their table lies beside a copy of the plan.
tuned() { # FOLDER PLAN STEPS FLOPS_PER_TOKEN
  local before=${reached[$1]:-none} status
  { mkdir -p "$work/tuned" && cp "$bundle/$1/$2.plan" "$work/tuned"; } 2>"$log" || { last_line "$log"; return 1; }
  rm -f "$work/tuned/$2.plan.tune"
  within "$bundle/bin/zerorun" "$work/tuned/$2.plan" --tune >"$log" 2>&1; status=$?
  last_line "$log"
  [ $status -eq 0 ] || return $status
  { echo '```'; cat "$log"; echo '```'; } >"$work/measured"
  plans=$work/tuned; benchmark "$@"; status=$?; plans=''
  [ "$before" = none ] || reached[$1]=$before # the folder's speed stays that of the plan as it is
  [ $status -eq 0 ] || return $status
  note="$note; without the table: $before"
  { cat "$work/measured"; echo; cat "$work/body"; } >"$work/both" && mv "$work/both" "$work/body"
}
# State beyond the GPU's memory, where this machine has the room, the processors and the time for it.
beyond() { # FOLDER PLAN STEPS PROCESSORS SECONDS
  local run=$1-$2 left=$((deadline - SECONDS)) status
  [ $left -ge "$5" ] || { note="it wants $5 s, of which $left are left"; return 3; }
  mkdir -p "$work/disk" || return
  check room "$bundle/$1/$2.plan" --disk "$work/disk" --processors "$4" || return
  under=("$bundle/bin/gpu-check" watch "$work/$run.memory")
  train "$run" "$1" "$2" "$3" --trace "$work/$run.trace.json"; status=$?
  under=()
  [ $status -eq 0 ] || return $status
  check tiers "$bundle/$1/$2.plan" "$work/$run"
}
slowest() { # FOLDER PLAN
  [ -f "$work/$1-$2.trace.json" ] || { note="there is no trace of $1"; return 3; }
  check slowest "$bundle/$1/$2.plan" "$work/$1-$2.trace.json" --limits "$work/limits"
}
# PyTorch on the same machine: its last line is a JSON object.
peer() { # FOLDER FLAG…
  local folder=$1 status
  shift
  command -v python3 >/dev/null || { note='python3 is not installed'; return 3; }
  within python3 -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' >"$work/log" 2>&1 || { note='PyTorch with CUDA is not installed'; return 3; }
  within python3 "$bundle/peer.py" "$@" >"$work/log" 2>&1; status=$?
  last_line "$work/log"
  [ $status -eq 0 ] || return $status
  { echo; printf '    %s\n\n' "$note"; } >"$work/body"
  if [[ $note =~ \"tokens_per_s\":\ ([0-9]+) ]] && [ "${BASH_REMATCH[1]}" -gt 0 ]; then
    local theirs=${BASH_REMATCH[1]} ratio=$((100 * ${reached[$folder]:-0} / BASH_REMATCH[1]))
    note="$theirs tokens/s; zerorun has $((ratio / 100)).$(printf %02d $((ratio % 100))) times as many"
    echo >>"$work/body"
  fi
}

# ------------------------------------------------------------------------------------------ the ladder
declare -A reached
peak=989e12 # bf16 without sparsity, H100 and H200 SXM (NVIDIA's data sheets)
square=8192 copies=1024 # of a product, rows; of copies, MiB
large=8388608           # bytes that a kernel moves so that its launch is little of its time
log=$work/log
say "# Plans on GPUs, $(date -u '+%Y-%m-%d %H:%M') UTC"
say
{
  [ -f "$bundle/README" ] && cat "$bundle/README"
  echo
  echo "Machine: $(uname -srm), $(nproc) processors$([ -r /proc/cpuinfo ] && while IFS=: read -r key value; do case $key in model\ name*) echo ",$value"; break ;; esac; done </proc/cpuinfo)"
  [ -r /proc/driver/nvidia/version ] && cat /proc/driver/nvidia/version
  [ -z "${ZERO_CUDA_LIBRARIES:-}" ] || echo "Libraries are looked for in \`$ZERO_CUDA_LIBRARIES\` first. Where those are the stand-ins of test/gpu/fake, no GPU took part in anything below."
  echo
} >>"$report"

while read -r kind arguments; do
  read -ra a <<<"$arguments"
  case $kind in
    '' | '#'*) continue ;;
    set) declare "${a[0]}=${a[1]}"; continue ;; # peak, square, copies, large
  esac
  case " ${ZERO_GPU_RUNGS:-$kind} " in
    *" $kind "*) ;;
    *) not_run "$kind $arguments" 'ZERO_GPU_RUNGS does not name this kind'; continue ;;
  esac
  case $kind in
    kernels | training | equal | graphs) ;;
    *) gather ;;
  esac
  case $kind in
    whole) rung 'the bundle is whole' 20 whole ;;
    machine) rung 'machine and libraries' 30 check machine ;;
    copies) rung 'copies' 40 check copies --mib "$copies" --limits "$work/limits" ;;
    products) rung "products of ${a[*]}" 60 products "${a[@]}" ;;
    kernels) beside "kernels of ${a[0]}, ${a[1]}" 60 kernels "${a[@]}" ;;
    timed) rung "kernels of ${a[0]}, ${a[1]}, timed" 90 kernels "${a[@]}" --limits "$work/limits" --large "$large" ;;
    training) beside "${a[0]}, ${a[1]}: losses and gradients are PyTorch's" 60 training "${a[@]}" ;;
    equal) beside "${a[0]}: ${a[*]:3} have the bits of ${a[2]}" 90 equal "${a[@]}" ;;
    graphs) beside "${a[0]}, ${a[1]}: CUDA graphs have the bits of single launches" 60 graphs "${a[@]}" ;;
    ranks) rung "${a[1]}, ${a[0]} ranks: ${a[*]:4}" 90 ranks "${a[@]}" ;;
    sanitizer) rung "compute-sanitizer on ${a[0]}, ${a[1]}" 90 sanitizer "${a[@]}" ;;
    benchmark) rung "benchmark of ${a[0]}, ${a[1]}" 150 benchmark "${a[@]}" ;;
    tuned) rung "benchmark of ${a[0]}, ${a[1]}, with measured products" 150 tuned "${a[@]}" ;;
    beyond) rung "state beyond the GPU: ${a[0]}, ${a[1]}" "${a[5]}" beyond "${a[@]}" ;;
    slowest) rung "slowest steps of ${a[0]}, ${a[1]}" 20 slowest "${a[@]}" ;;
    peer) rung "PyTorch's ${a[*]}" 150 peer "${a[@]}" ;;
    *) failed=$((failed + 1)); failures+=("$kind: this run.sh knows no such rung"); say "- FAILED: $kind: this run.sh knows no such rung" ;;
  esac
done <"$bundle/rungs"
gather

section() { # TITLE LINE…
  [ $# -gt 1 ] || return 0
  say; say "## $1"; say
  shift
  local line
  for line in "$@"; do say "- $line"; done
}
[ $((passed + failed)) -gt 0 ] || { failed=1; failures+=('no rung was run'); }
section 'What failed' ${failures[@]+"${failures[@]}"}
section 'What was not run' ${missing[@]+"${missing[@]}"}
say
say "$passed passed, $failed failed, ${#missing[@]} not run"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
