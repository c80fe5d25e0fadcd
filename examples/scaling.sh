#!/bin/sh
# Measures train_ranks with 1, 2 and 4 processes and prints what `scaling` reads. The batch is 359 for any number of
# processes; of many short runs in turn, the fastest counts, which other work disturbed least.
#
# usage: sh examples/scaling.sh path-of-train_ranks [runs] > scaling.csv
case ${1-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac
[ $# -gt 0 ] || { sh "$0" --help >&2; exit 2; }
program=$1
runs=${2:-20}
out=$(mktemp -d) || exit 1
trap 'rm -rf "$out"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1
configurations='replicated:1 replicated:2 replicated:4 sharded:1 sharded:2 sharded:4'
for run in $(seq "$runs"); do
  for c in $configurations; do
    mpirun --oversubscribe -np "${c#*:}" "$program" --policy "${c%:*}" --limit 1436 --batch 359 --epochs 6 \
      --out "$out/$c/$run" > "$out/log" 2>&1 || { cat "$out/log" >&2; exit 1; }
  done
done
echo processes,policy,ms,ms_in_step
for c in $configurations; do
  awk -F, -v processes="${c#*:}" -v policy="${c%:*}" '
    FNR == 1 { ++run }
    FNR > 1 { all[run] += $11; step[run] += $12; steps[run] = $3 }
    END {
      best = 1
      for (r in all) if (all[r] < all[best]) best = r
      printf "%d,%s,%.2f,%.2f\n", processes, policy, 1000 * all[best] / steps[best], 1000 * step[best] / steps[best]
    }' "$out/$c"/*/curves.csv
done
