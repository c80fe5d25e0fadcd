#!/bin/sh
# Installs missing packages, builds the contestants, times them against each other and against the memory bandwidth, and
# writes the numbers as JSON, tables and pictures.
# usage: sh tests/benchmarks/run.sh [--quick | --all | --growth | --rules | --huge] [--out DIR] [--systems omp,tbb,cpp]
#          [--no-torch] [options of drive.py, such as --cases gpt2 --recipes adamw --threads 2 --seconds 8]
#        sh tests/benchmarks/run.sh --loader [--quick] [--out DIR] [--no-torch] [options of loader.py]
#
# By default, runs the default set, which takes at most 10 minutes on two cores. --quick: a few small cases, some
# seconds. --all: each recipe on each case. --growth: cost against numbers of parameters, tensors, groups and policies.
# --rules: each element-wise rule. --huge: 10^9 parameters, only the library. --loader: the data loader; see loader.py.
case ${1-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac
cd "$(dirname "$0")/../.." || exit 1
command="sh tests/benchmarks/run.sh $*"
set=default out= systems=omp torch=yes loader=
own='--quick --loader --all --growth --rules --huge --out --systems --no-torch --help'
passed='--cases --recipes --threads --seconds --least --most --per-turn --sample --sets --limit --patience --memory --note --file-bytes --repetitions --turns'
left=$#
while [ $left -gt 0 ]; do
  case $1 in
    --quick) set=quick; [ $torch = no ] || torch=installed ;;
    --loader) loader=yes ;;
    --all | --growth | --rules | --huge) set=${1#--} ;;
    --out) out=$2; shift; left=$((left - 1)) ;;
    --systems) systems=$2; shift; left=$((left - 1)) ;;
    --no-torch) torch=no ;;
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
more_packages='libeigen3-dev python3-venv'
. tests/setup.sh
build=build-benchmarks
out=${out:-$build/results}
mkdir -p "$build" "$out" || exit 1

[ $set != rules ] || systems=rules
programs='tests/benchmarks/bench_loop tests/benchmarks/bench_oracle tests/benchmarks/bench_eigen'
for system in $(echo "$systems" | tr , ' '); do programs="$programs tests/benchmarks/bench_$system"; done
[ -z "$loader" ] || programs=tests/benchmarks/bench_loader
echo "Building in $build"
configured=
[ ! -f "$build/build.ninja" ] || configured=--reconfigure
meson setup $configured "$build" > "$build/setup.log" 2>&1 || { cat "$build/setup.log"; exit 1; }
ninja -C "$build" $programs > "$build/build.log" 2>&1 || { cat "$build/build.log"; exit 1; }

peers="loop=$build/tests/benchmarks/bench_loop eigen=$build/tests/benchmarks/bench_eigen"
notes='ensmallen does not take part: Debian 12 has no package of it, and PyPI only bindings for Python, in double'
case $set in
  huge) peers= ;;
  rules) peers=; torch=no ;;
esac
[ $set != huge ] || torch=no
if [ $torch = yes ]; then sh tests/benchmarks/torch.sh "$build/torch" || true; fi
if [ -n "$loader" ]; then
  [ $set = quick ] || set=loader
  python="env LD_LIBRARY_PATH=$build/torch/cuda $build/torch/bin/python -W ignore"
  if [ $torch != no ] && [ -f "$build/torch/ready" ]; then
    set -- --contestant "torch=$python tests/benchmarks/loader_torch.py" "$@"
  elif [ $torch != no ]; then
    set -- --note 'PyTorch is not installed, so it does not take part' "$@"
  fi
  file=$out/loader.json
  python3 tests/benchmarks/loader.py --set $set --contestant "descent=$build/tests/benchmarks/bench_loader" --work "$build/work" \
    --out "$file" --command "$command" "$@"
  status=$?
  [ -f "$file" ] || exit 1
  python3 tests/benchmarks/report.py "$file" --out "$out" || status=1
  exit $status
fi
first=yes
arguments=$(mktemp) || exit 1
trap 'rm -f "$arguments"' EXIT
{
  for system in $(echo "$systems" | tr , ' '); do
    name=descent
    [ $first = yes ] || name=descent_$system
    first=no
    echo "$name=$build/tests/benchmarks/bench_$system"
  done
  for peer in $peers; do echo "$peer"; done
  if [ $torch != no ] && [ -f "$build/torch/ready" ]; then
    for mode in fused foreach; do
      python="env LD_LIBRARY_PATH=$build/torch/cuda $build/torch/bin/python -W ignore"
      echo "torch_$mode=$python tests/benchmarks/torch_peer.py $mode"
    done
  fi
} > "$arguments"
[ $torch = no ] || [ -f "$build/torch/ready" ] || notes="$notes; PyTorch is not installed, so it does not take part"
[ $set != quick ] || set -- --least 3 --most 3 --seconds 1 "$@"
while read -r contestant; do set -- "$@" --contestant "$contestant"; done < "$arguments"
python3 tests/benchmarks/drive.py --set $set --oracle "$build/tests/benchmarks/bench_oracle" --work "$build/work" \
  --out "$out/$set.json" --note "$notes" "$@"
status=$?
[ -f "$out/$set.json" ] || exit 1
python3 tests/benchmarks/report.py "$out/$set.json" --out "$out" || status=1
exit $status
