#!/usr/bin/env bash
# Brings a fresh Debian 12 machine to a built tree: packages, a Python environment for the test tools, CMake + Ninja
# into build/, programs in build/bin/. Doing it twice does only what is missing.
#
# usage: tools/setup.sh [--no-build] [--preset release|debug|asan|tsan|runtime-only|portable|fuzz]
set -euo pipefail
cd "$(dirname "$0")/.."

build=yes preset=release
while [ $# -gt 0 ]; do
  case "$1" in
    --no-build) build=no ;;
    --preset) preset=${2:?--preset wants a name}; shift ;;
    -h|--help) sed -n '2,6p' "$0" | sed 's/^# \{0,1\}//'; exit 0 ;;
    *) echo "setup: unknown option '$1'; try --help" >&2; exit 2 ;;
  esac
  shift
done
say() { echo "setup: $*"; }

# For the compiler, the runtime, then build and test tools; the fuzzers alone need clang.
packages=(
  libmlir-19-dev mlir-19-tools llvm-19-dev llvm-19-tools liblld-19-dev lld-19 libonnx-dev libgoogle-perftools-dev
  libprotobuf-dev protobuf-compiler libcli11-dev libopenmpi-dev openmpi-bin libdnnl-dev liburing-dev
  libssl-dev libfmt-dev nlohmann-json3-dev zlib1g-dev
  g++ cmake ninja-build ccache mold python3 python3-venv libgtest-dev bible-kjv git ca-certificates
)
[ "$preset" = fuzz ] && packages+=(clang-19 libclang-rt-19-dev libomp-19-dev)

install_packages() {
  local missing=() p
  for p in "${packages[@]}"; do
    dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q '^install ok installed$' || missing+=("$p")
  done
  [ ${#missing[@]} -eq 0 ] && { say "all ${#packages[@]} Debian packages are there"; return; }
  local sudo=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { say "these packages are missing and need root: ${missing[*]}" >&2; exit 1; }
    sudo=(sudo)
  fi
  say "installing ${#missing[@]} Debian packages: ${missing[*]}"
  local log; log=$(mktemp)
  if ! { "${sudo[@]}" apt-get update -q &&
         "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    say "apt-get failed; the whole log is $log" >&2
    exit 1
  fi
  rm -f "$log"
}

# The environment is made again when the list of requirements changed.
make_venv() {
  local want=test/requirements.txt
  if [ -x .venv/bin/python ] && cmp -s "$want" .venv/requirements.txt; then
    say "the Python environment .venv is there"; return
  fi
  say "making the Python environment .venv ($(grep -cv '^ *\(#\|$\)' "$want") packages)"
  # Debian's own Python where there is one: another one on PATH may lack the venv module.
  local python=/usr/bin/python3; [ -x $python ] || python=python3
  [ -x .venv/bin/python ] || "$python" -m venv .venv
  .venv/bin/python -m pip install -q --disable-pip-version-check -r "$want"
  cp "$want" .venv/requirements.txt
}

build_tree() {
  local dir=build; [ "$preset" = release ] || dir=build-$preset
  mkdir -p "$dir"
  if [ ! -f "$dir/build.ninja" ]; then
    say "configuring $dir ($preset)"
    if ! cmake --preset "$preset" >"$dir/configure.log" 2>&1; then
      tail -n 20 "$dir/configure.log" >&2
      say "configuring failed; the whole log is $dir/configure.log" >&2
      exit 1
    fi
  fi
  say "building $dir (the first time takes some minutes, later seconds)"
  local log=$dir/setup.log start=$SECONDS
  local targets=()
  case $preset in
    fuzz) targets=(plan_fuzz onnx_fuzz data_fuzz) ;;
    portable) targets=(zerorun gpu-check) ;;
    runtime-only) targets=(zerorun zero-inspect) ;; # what runs without the compiler; its tests are those of the whole build
  esac
  if ! ninja -C "$dir" "${targets[@]}" >"$log" 2>&1; then
    grep -E -m 20 'error|FAILED' "$log" >&2 || tail -n 20 "$log" >&2
    say "the build failed; the whole log is $log" >&2
    exit 1
  fi
  say "built in $((SECONDS - start)) s: $(cd "$dir/bin" && ls | grep -v _test | tr '\n' ' ')"
}

install_packages
make_venv
[ $build = no ] || build_tree
