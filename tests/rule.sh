#!/bin/sh
# usage: rule.sh NAME     (sh tests/run.sh rule NAME)
# Runs the checks of one rule in less than a minute: its header by itself; laws, sizes, steps, systems, convergence,
# storage types and stochastic rounding of its rows; the tests of recorded values that name it; the code of its kernel;
# and whether its section, rows and mutants exist. Use sh tests/run.sh for everything else. Ends with `N passed, N
# failed`.
case ${1-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;; esac
tests=$(cd "$(dirname "$0")" && pwd) && root=$(dirname "$tests") || exit 1
rule=$1
CUDA_HOME=${CUDA_HOME:-$(sh "$tests/cuda_home.sh")} || exit 1
header=$root/include/descent/rules/$rule.hpp
# shellcheck disable=SC2046  # a list
[ -f "$header" ] || {
  python3 "$tests/nearest.py" 'no rule' "$rule" $(cd "$root/include/descent/rules" && ls ./*.hpp | sed 's,^\./,,; s/\.hpp$//') >&2
  exit 2
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' HUP INT TERM
compiler=g++
! sh "$tests/links.sh" clang++ 2>/dev/null || compiler=clang++
bare="-std=c++20 -I$root/include -isystem $CUDA_HOME/include/cccl -isystem $CUDA_HOME/include"
flags="$bare -I$tests -fopenmp -Wall -Wextra -Werror -O0"
export DESCENT_TESTS_DIR="$tests" OMP_WAIT_POLICY="${OMP_WAIT_POLICY-passive}"

cat > "$work/one" <<'END'
#!/bin/sh
# usage: one work-folder name command...
work=$1 name=$2
shift 2
if "$@" > "$work/log.$name" 2>&1; then echo "pass $name"; else { echo "FAIL $name"; tail -n 40 "$work/log.$name"; }; fi
END
cat > "$work/unit" <<'END'
#!/bin/sh
# usage: unit work-folder name compiler arguments...     Compiles and runs work-folder/name.cpp.
work=$1 name=$2
shift 2
"$@" "$work/$name.cpp" "$work/main.o" -o "$work/$name" -ltbb && "$work/$name"
END
{
  # shellcheck disable=SC2086  # lists
  $compiler $flags -c "$tests/main.cpp" -o "$work/main.o" || exit 1
  echo "#include <descent/rules/$rule.hpp>" > "$work/header.cpp"
  echo "header g++ $bare -Wall -Wextra -Werror -fsyntax-only $work/header.cpp"
  echo "section python3 $tests/docs/optimizers.py $root"
  echo "lists sh $tests/lists.sh $tests $(cd "$tests" && find . -name '*_test.c*' -o -path './cuda/*.cu' -o -path './contract/*.c*' |
    sed 's,^\./,,' | tr '\n' ' ')"
  rows=$(grep -lE "descent::$rule[{<]" "$tests"/support/rows_*.hpp | head -n 1)
  if [ -n "$rows" ]; then
    family=$(basename "$rows" .hpp | sed 's/^rows_//')
    of="-DDESCENT_RULE_FAMILY=$family"
    # A rule around another rule has as many types as rows.
    ! grep -qE "^struct $rule( |:|\$)" "$header" || grep -B 1 -E "^struct $rule( |:|\$)" "$header" | grep -q '^template' ||
      of="$of -DDESCENT_ONE_RULE=descent::$rule"
    for unit in laws storage stochastic; do
      case $unit in
        laws) sources='rules/converge rules/laws rules/sizes rules/steps rules/systems' ;;
        storage) sources='rules/packs rules/sixteen_bits rules/storage' ;;
        stochastic) sources=rules/stochastic ;;
      esac
      # shellcheck disable=SC2046,SC2086  # a list
      python3 "$tests/unite.py" "$tests" "$work/$unit.cpp" $(printf '%s_test.cpp ' $sources)
      echo "$unit sh $work/unit $work $unit $compiler $flags $of"
    done
  else
    echo "$rule has no row in tests/support: is it for matrices alone? sh tests/run.sh matrices/matrices" >&2
  fi
  for source in $(grep -lE "ds::$rule[^a-z_]" "$tests"/rules/reference*_test.cpp); do
    name=$(basename "$source" _test.cpp)
    cp "$source" "$work/$name.cpp"
    echo "$name sh $work/unit $work $name $compiler $flags"
  done
  if [ -n "$rows" ] && [ -x "$CUDA_HOME/bin/nvcc" ]; then
    # A rule around another rule has its own name there, such as larc_of_sgd.
    { grep -v '^RULE(' "$tests/cuda/rules.cu"; grep -E "^RULE\(${rule}(_[a-z_]+)?\)" "$tests/cuda/rules.cu"; } > "$work/rules.cu"
    echo "kernel sh $work/kernel"
    cat > "$work/kernel" <<END
grep -q '^RULE(' "$work/rules.cu" || { echo "tests/cuda/rules.cu has no line for $rule"; exit 1; }
cd "$work" && sh "$tests/cuda/compile.sh" sm_90 rules.cu rules.d cubin ptx log -- "$CUDA_HOME/bin/nvcc" -std=c++20 "-I$root/include" -O3 &&
  python3 "$tests/cuda/guard.py" rules.cu ptx log
END
  fi
} > "$work/tests" || exit 1
sed 's/ *$//' "$work/tests" | xargs -P "$(nproc)" -L 1 sh "$work/one" "$work" | tee "$work/results"
failed=$(grep -c '^FAIL' "$work/results")
echo "rule $rule: $(grep -c '^pass' "$work/results") passed, $failed failed"
[ "$failed" -eq 0 ]
