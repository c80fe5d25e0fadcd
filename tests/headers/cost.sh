#!/bin/sh
# usage: cost.sh cpp|cu compiler arguments...
# Prints what including costs, in seconds, and with a host compiler what a unit with an optimizer of every rule costs.
# Fails if something does not compile, or if that unit takes more than 300 s. The other times depend on the machine.
kind=$1
rules=$(cd "$(dirname "$0")/../../include/descent/rules" && ls)
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
measure() {  # measure "what" "headers" "code" compiler arguments...
  what=$1
  for header in $2; do echo "#include <$header>"; done > "$work/unit.$kind"
  printf '%s\n' "$3" >> "$work/unit.$kind"
  shift 3
  start=$(date +%s%N)
  "$@" -c "$work/unit.$kind" -o "$work/unit.o" || status=1
  seconds=$(awk -v ns=$(($(date +%s%N) - start)) 'BEGIN { printf "%.2f", ns / 1e9 }')
  echo "include cost: $what (.$kind): $seconds s"
}
measure nothing '' '' "$@"
measure 'one rule and one schedule' 'descent/rules/adamw.hpp descent/schedules/cosine.hpp' '' "$@"
measure descent.hpp descent/descent.hpp '' "$@"
if [ "$kind" = cu ]; then
  measure descent.cuh descent/descent.cuh '' "$@"
  exit $status
fi

code='namespace ds = descent;
template <class Rule> void step(ds::parameters<float> const& p) {
  if constexpr (ds::has_loss<Rule>) ds::optimizer{p, Rule{}, ds::loss_at{}}.step();
  else if constexpr (ds::update_rule<Rule>) ds::optimizer{p, Rule{}}.step();
  else ds::optimizer{p, ds::sgd{}, ds::matrices{Rule{}}}.step();
}
void step_each(ds::parameters<float> const& p) {'
headers='descent/descent.hpp descent/matrix.hpp'
for header in $rules; do
  rule=${header%.hpp}
  headers="$headers descent/rules/$header"
  case $rule in larc) rule='larc<ds::sgd>' ;; layerwise) rule='layerwise<ds::adam>' ;; esac
  code="$code step<ds::$rule>(p);"
done
measure 'every rule, one optimizer each' "$headers" "$code }" "$@"
awk -v s="$seconds" 'BEGIN { exit s > 300 }' || { echo "every rule: more than 300 s"; status=1; }
exit $status
