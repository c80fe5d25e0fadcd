#!/bin/sh
# Builds the contestants for a CUDA device with nvcc alone, times them against each other and against its memory
# bandwidth, and writes the numbers as JSON, tables and pictures.
# usage: sh tests/benchmarks/gpu.sh [--quick | --all | --growth | --rules | --huge | --whole] [--out DIR] [--compiled]
#          [options of drive.py, such as --cases gpt2 --recipes adamw --limit 300]
#
# By default, runs the default set; no case begins after --limit SECONDS (360). --quick: a few small cases, to check
# that it runs. --all: each recipe on each case. --growth: cost against numbers of parameters, tensors, groups and
# policies. --rules: each element-wise rule. --huge: Llama-2 7B and 10^9 parameters. --whole: the default set, then the
# launches and products of tests/benchmarks/experiments, Muon, growth, rules and huge. --compiled: also PyTorch's
# compiled step, which takes several minutes more. A run that is interrupted keeps the results so far.
#
#   NVCC, FLAGS, RUN, JOBS   as in tests/gpu.sh: the compiler, its flags for the device (-arch=native), a command that
#                            runs programs for a device in software, how many compilers run at once
#   RUNS                     no: only builds; only: runs what such a call has built, perhaps on another machine
#   PYTHON, JAX_PYTHON       Python with PyTorch (python3); Python with JAX and optax (the same)
#   PEERS                    where these run: cuda, cpu, none (cuda; none with RUN)
#   REVISION                 the version to record in the results if git cannot tell
case ${1-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac
cd "$(dirname "$0")/../.." || exit 1
command="FLAGS='$FLAGS' RUN='$RUN' sh tests/benchmarks/gpu.sh $*"
set=default out= compiled=no
own='--quick --all --growth --rules --huge --whole --out --compiled --help'
passed='--cases --recipes --threads --seconds --least --most --per-turn --sample --sets --limit --patience --memory --note'
left=$#
while [ $left -gt 0 ]; do
  case $1 in
    --quick | --all | --growth | --rules | --huge | --whole) set=${1#--} ;;
    --out) out=$2; shift; left=$((left - 1)) ;;
    --compiled) compiled=yes ;;
    -*)
      case " $own $passed " in
        *" ${1%%=*} "*) set -- "$@" "$1" ;;
        # shellcheck disable=SC2086  # lists
        *) python3 tests/nearest.py 'unknown option' "$1" $own $passed >&2; exit 2 ;;
      esac ;;
    *) set -- "$@" "$1" ;;
  esac
  shift
  left=$((left - 1))
done
NVCC=${NVCC:-nvcc} flags=${FLAGS:--arch=native} python=${PYTHON:-python3} peers=${PEERS:-${RUN:+none}}
peers=${peers:-cuda}
build=build-benchmarks/gpu
out=${out:-$build/results}
mkdir -p "$build" "$out" || exit 1

if [ $set = whole ]; then
  [ $compiled = no ] || set -- --compiled "$@"
  status=0
  part() { sh tests/benchmarks/gpu.sh "$@" --out "$out" || status=1; }
  part "$@"
  # shellcheck disable=SC2086  # lists of words
  made() { [ "$RUNS" = only ] || "$NVCC" -std=c++20 -O3 $flags -Iinclude "tests/benchmarks/$1" -o "$build/$2" $3; }
  if made experiments/experiments.cu experiments; then
    [ "$RUNS" = no ] || $RUN "$build/experiments" ${RUN:+--quick} "$out/experiments_$(date +%F).jsonl" || status=1
  else
    status=1
  fi
  if made experiments/products.cu products -lcublas; then
    [ "$RUNS" = no ] || [ "$RUN" ] || "$build/products" > "$out/products_$(date +%F).txt" || status=1
  else
    status=1
  fi
  if made matrices.cu matrices -lcublas; then
    [ $peers = cuda ] && others=torch,torch_captured,optax || others=
    [ "$RUNS" = no ] || [ "$RUN" ] || "$python" tests/benchmarks/matrices.py "$build/matrices" --device cuda \
      --peers "$others" > "$out/matrices_$(date +%F).md" || status=1
  else
    status=1
  fi
  for set in growth rules huge; do part --$set "$@"; done
  exit $status
fi

units='ours_adamw ours_mixed ours_plain'
[ $set != growth ] || units="$units ours_growth"
[ $set != rules ] || units='rules_adaptive rules_common rules_free rules_momentum rules_torch'
common="-std=c++20 -O2 -Iinclude -DBENCH_FLAGS=\"-O2\""
objects() { for unit in "$@"; do printf '%s/%s.o ' "$build" "$unit"; done; }
own="serve platform_device ours_device ceiling $units"
case $set in growth | rules) program=$build/bench_$set ;; *) program=$build/bench_device ;; esac
[ $set != rules ] || own="$own rules"
{
  for unit in $units; do echo "$unit $flags -x cu tests/benchmarks/$unit.cpp"; done
  echo "ceiling $flags tests/benchmarks/ceiling.cu"
  for unit in serve platform_device ours_device; do echo "$unit tests/benchmarks/$unit.cpp"; done
  for unit in oracle serve platform_host; do echo "host_$unit -Xcompiler=-fopenmp tests/benchmarks/$unit.cpp"; done
  [ $set != rules ] || echo 'rules examples/parts/rules.cpp'
} > "$build/units"
# Programs that have not changed since the last run are not built again.
sum=$({ find include tests/benchmarks examples/parts -name '*.*pp' -o -name '*.cu*' | LC_ALL=C sort | xargs cat
  echo "$common"; } | cksum)
[ "$RUNS" = only ] || echo "Building $(wc -l < "$build/units") units"
export NVCC common build sum
[ "$RUNS" = only ] || xargs -P "${JOBS:-$(nproc)}" -L 1 sh -c '
  object=$build/$0.o
  [ "$sum $*" != "$(cat "$object.of" 2>/dev/null)" ] || exit 0
  rm -f "$object.of"
  if $NVCC $common -c "$@" -o "$object" > "$object.log" 2>&1; then echo "$sum $*" > "$object.of"
  else cat "$object.log"; fi' < "$build/units"
built() { for unit in "$@"; do [ -f "$build/$unit.o.of" ] || return 1; done; }
host='host_oracle host_serve host_platform_host'
# shellcheck disable=SC2046,SC2086  # lists of words
[ "$RUNS" = only ] || { built $own $host && "$NVCC" $flags $(objects $own) -o "$program" &&
  "$NVCC" -Xcompiler=-fopenmp $(objects $host) -o "$build/bench_oracle"; } || exit 1
[ "$RUNS" != no ] || exit 0

has() { $1 -W ignore -c "$2" > "$build/python.log" 2>&1; }
missing() {
  echo "$1 does not take part"
  why=$(tail -n 1 "$build/python.log" | cut -c 1-200)
  set_notes="${set_notes:+$set_notes }$1 does not take part${why:+: $why}."
}
contestants=$build/contestants set_notes=
echo "descent=$RUN $program" > "$contestants"
[ $set = rules ] || echo "descent_captured=$RUN $program captured" >> "$contestants"
if [ "$peers" != none ] && [ $set != rules ]; then
  modes='fused foreach'
  [ "$peers" != cuda ] || modes="$modes captured"
  [ $compiled = no ] || modes="$modes compiled"
  if has "$python" "import torch; torch.zeros(1, device='$peers')"; then
    for mode in $modes; do
      echo "torch_$mode=$python -W ignore tests/benchmarks/torch_peer.py $mode $peers" >> "$contestants"
    done
  else
    missing PyTorch
  fi
  if has "${JAX_PYTHON:-$python}" "import jax, optax; jax.devices('$peers')"; then
    echo "jax=${JAX_PYTHON:-$python} tests/benchmarks/jax_peer.py $peers" >> "$contestants"
  else
    missing JAX
  fi
fi

# Eleven turns of five samples. On a device in software, where times are meaningless, one turn of one sample.
if [ -n "$RUN" ]; then set -- --least 1 --most 1 --seconds 0.01 "$@"
elif [ $set = quick ]; then set -- --least 5 --most 5 --per-turn 5 --sample 1e-3 --seconds 1 --limit 200 "$@"
else set -- --least 55 --most 55 --per-turn 5 --sample 1e-3 --seconds 3 --limit 360 --patience 120 "$@"; fi
while read -r contestant; do set -- "$@" --contestant "$contestant"; done < "$contestants"
name=gpu_$(date +%F)
[ $set = default ] || name=${name}_$set
python3 tests/benchmarks/drive.py --set $set --oracle "$build/bench_oracle" --work "$build/work" \
  --command "$command" --note "$set_notes" --out "$out/$name.json" "$@"
status=$?
[ -f "$out/$name.json" ] || exit 1
python3 tests/benchmarks/report.py "$out/$name.json" --out "$out" || status=1
exit $status
